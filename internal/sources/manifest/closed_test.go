// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"slices"
	"strings"
	"testing"

	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/kinds"
	"github.com/hookgate/hookgate/internal/kinds/hookrule"
)

// A document closes what it names even if its YAML has no form in JSON; one that is not known to be of any kind is
// unreadable, but another program's file is none of objects.
func TestMistakenDocuments(t *testing.T) {
	const rule = "apiVersion: hookgate.dev/v1alpha1\nkind: HookRule\nmetadata: {name: r}\nspec: "
	for name, tc := range map[string]struct {
		text       string
		hook       string // that HookRule r closes
		unreadable bool
	}{
		"KeyTwice":       {text: rule + "{hook: AfterClusterUpgrade, hold: [], hold: []}", hook: "AfterClusterUpgrade"},
		"HookTwice":      {text: rule + "{hook: BeforeClusterCreate, hook: AfterClusterUpgrade}", hook: "AfterClusterUpgrade"},
		"SpecTwice":      {text: rule + "{hook: AfterClusterUpgrade}\nspec: {}", hook: "AfterClusterUpgrade"},
		"NoFormInJSON":   {text: rule + "{hook: AfterClusterUpgrade, x: .inf, y: !foo 1}", hook: "AfterClusterUpgrade"},
		"KeyThatIsAList": {text: rule + "{hook: AfterClusterUpgrade, [a]: b}", hook: "AfterClusterUpgrade"},
		"Merged":         {text: rule + "\n  <<: &x {hook: AfterClusterUpgrade}\n  <<: *x", hook: "AfterClusterUpgrade"},
		"TooDeep":        {text: rule + "{hook: AfterClusterUpgrade, x: " + strings.Repeat("[", 999) + strings.Repeat("]", 999) + "}", hook: "AfterClusterUpgrade"},
		"NoAPIVersion":   {text: strings.TrimPrefix(rule, "apiVersion: hookgate.dev/v1alpha1\n") + "{hook: AfterClusterUpgrade}", hook: "AfterClusterUpgrade"},
		"NeitherOfBoth":  {text: "apiversion: hookgate.dev/v1alpha1\nKind: HookRule\nspec: {}", unreadable: true},
		"NoObject":       {text: "spec: {hook: AfterClusterUpgrade}", unreadable: true},
		"Text":           {text: "apiVersion", unreadable: true},
		"ListOfNoKind":   {text: "- " + strings.ReplaceAll(rule, "\n", "\n  ") + "{}", unreadable: true},
		"ListWithoutAny": {text: "apiVersion: v1\nkind: List\nitemz: []", unreadable: true},
		"ItemOfNoKind":   {text: "apiVersion: v1\nkind: List\nitems: [{spec: {}}]", unreadable: true},
		"OtherProgram":   {text: "resources: [a.yaml]"},
		"OtherKind":      {text: "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: r}"},
		"OtherKindAlone": {text: "kind: Nothing"},
		"NothingInAList": {text: "apiVersion: v1\nkind: List\nitems: []"},
	} {
		t.Run(name, func(t *testing.T) {
			v, problems := (&Inventory{}).Next([]File{{file: "r.yaml", content: []byte(tc.text)}}, newDecoder(t))
			if got := len(v.Unreadable) > 0; got != tc.unreadable {
				t.Errorf("unreadable: %t, want %t: %v", got, tc.unreadable, problems)
			}
			closed := slices.ContainsFunc(v.Closed[hookrule.Kind], func(c *kinds.Closed) bool {
				return c.Name == "r" && len(c.Hooks) > 0 && slices.ContainsFunc(c.Hooks, func(gh hook.GroupHook) bool { return gh.Hook == tc.hook })
			})
			if closed != (tc.hook != "") {
				t.Errorf("HookRule r closes %q: %t: %v", tc.hook, closed, problems)
			}
		})
	}
}
