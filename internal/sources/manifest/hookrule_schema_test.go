// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

func TestHookRuleCRDIsValid(t *testing.T) {
	isValid(t, readCRD(t, "hookrules"), "Hook", "Ready", "Reason", "Age")
}

// The schema refuses windows whose mistakes it can see; the others are for the compiler of rules.
func TestHookRuleWindowsInTheSchema(t *testing.T) {
	schema := readCRD(t, "hookrules")
	for name, tc := range map[string]struct{ window, want string }{
		"All":      {`{cron: "0 2 * * 6", duration: 4h, timeZone: Europe/Berlin}`, ""},
		"Longest":  {`{cron: "0 2 * * 6", duration: 743h59m60s}`, ""},
		"Shortest": {`{cron: "0 2 * * 6", duration: 1m}`, ""},
		"NoCron":   {`{duration: 4h}`, "spec.windows[0].cron: Required value"},
		"Short":    {`{cron: "* * * *", duration: 4h}`, "spec.windows[0].cron"},
		"Zero":     {`{cron: "0 2 * * 6", duration: 0h}`, "must be between 1m and 744h"},
		"Longer":   {`{cron: "0 2 * * 6", duration: 745h}`, "must be between 1m and 744h"},
		"Overflow": {`{cron: "0 2 * * 6", duration: 999999999999999h}`, "spec.windows[0].duration"},
		"Days":     {`{cron: "0 2 * * 6", duration: 1d}`, "spec.windows[0].duration"},
		"Negative": {`{cron: "0 2 * * 6", duration: -4h}`, "spec.windows[0].duration"},
		"Local":    {`{cron: "0 2 * * 6", duration: 4h, timeZone: Local}`, "must be the name of a time zone"},
	} {
		object := map[string]any{}
		text := "apiVersion: hookgate.dev/v1alpha1\nkind: HookRule\nmetadata: {name: r}\n" +
			"spec: {hook: BeforeClusterUpgrade, windows: [" + tc.window + "]}\n"
		if err := yaml.Unmarshal([]byte(text), &object); err != nil {
			t.Fatal(err)
		}
		got := strings.Join(schema.Problems(t, object, nil), "\n")
		if tc.want == "" && got != "" || !strings.Contains(got, tc.want) {
			t.Errorf("%s: got %q, want %q", name, got, tc.want)
		}
	}
}
