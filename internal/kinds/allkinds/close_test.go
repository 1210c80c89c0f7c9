// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package allkinds

import (
	"slices"
	"strings"
	"testing"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/kinds/extensionpolicy"
	"github.com/hookgate/hookgate/internal/kinds/handlerchain"
	"github.com/hookgate/hookgate/internal/kinds/hookrule"
	"github.com/hookgate/hookgate/internal/kinds/rollout"
)

// What a mistaken object closes is what its spec names where a name belongs, in whichever form it is written there.
func TestClose(t *testing.T) {
	hooks := catalog.New()
	many := make([]string, 2*limits.ChainSteps)
	for i := range many {
		many[i] = `{"handler":"step` + string(rune('a'+i%26)) + strings.Repeat("x", i/26) + `.m"}`
	}
	for name, tc := range map[string]struct {
		kind, spec string
		closed     []string // extensions, handlers and hooks
		open       []string
	}{
		"TargetInAList": {
			extensionpolicy.Kind, `{"targetRef":{"name":["m","n"]}}`, []string{"m", "n"}, []string{"all"},
		},
		"TwoTargets": {
			extensionpolicy.Kind, `{"targetRef":{"name":["m","n"],"handler":"h"}}`, []string{"m", "n"}, []string{"h.m", "all"},
		},
		"HookInAList": {
			hookrule.Kind, `{"hook":["AfterClusterUpgrade"]}`, []string{"AfterClusterUpgrade", "BeforeClusterCreate"}, nil,
		},
		"RolloutOfOtherTexts": {
			rollout.Kind, `{"stabel":"m","approved":["n"],"candidateFor":{"clusterSelector":{"matchLabels":{"a":"o"}}}}`,
			[]string{"m", "object"}, []string{"n", "o"},
		},
		"ChainOfOtherTexts": {
			handlerchain.Kind, `{"hook":"GeneratePatches","steps":["a.m",{"handlr":"b.m","settings":{"host":"c.m"}}]}`,
			[]string{"a.m", "b.m", "GeneratePatches"}, []string{"c.m"},
		},
		"ChainOfTooManySteps": {
			handlerchain.Kind, `{"hook":"GeneratePatches","steps":[` + strings.Join(many, ",") + `]}`,
			[]string{"stepa.m", "stepwxxxx.m"}, nil,
		},
		"RuleThatAudits": {hookrule.Kind, `{"hook":"AfterClusterUpgrade","action":"Audit"}`, nil, []string{"AfterClusterUpgrade"}},
	} {
		t.Run(name, func(t *testing.T) {
			c := Close(tc.kind, "object", []byte(`{"spec":`+tc.spec+`}`), "mistake", hooks)
			all := slices.Concat(c.Extensions, c.Handlers)
			if c.AllHooks {
				all = append(all, "all")
			}
			for _, gh := range c.Hooks {
				all = append(all, gh.Hook)
			}
			for _, want := range tc.closed {
				if !slices.Contains(all, want) {
					t.Errorf("%s is not closed; closed are %v", want, all)
				}
			}
			for _, no := range tc.open {
				if slices.Contains(all, no) {
					t.Errorf("%s is closed", no)
				}
			}
			if c.Nothing() != (len(tc.closed) == 0) {
				t.Errorf("nothing is closed: %t", c.Nothing())
			}
		})
	}
}
