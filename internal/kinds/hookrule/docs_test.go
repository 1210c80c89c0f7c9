// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package hookrule_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/hookgate/hookgate/internal/calls/policy"
)

var mistakeRow = regexp.MustCompile("(?m)^\\| ([^|]*?) \\| `(.*)` \\|$")

// The page about rules has the texts of the mistakes that need an explanation.
func TestMistakesOnThePage(t *testing.T) {
	specs := map[string]string{
		"`hold` for a hook at which Cluster API does not wait": "hook: AfterControlPlaneInitialized\nhold: [{if: 'true', message: '\"a\"'}]",
		"a misspelled member":                      "hook: BeforeClusterUpgrade\nhold: [{if: request.toKubernetesVerson == 'v1', message: '\"a\"'}]",
		"a message without inner quotes":           "hook: BeforeClusterUpgrade\nhold: [{if: 'true', message: not now}]",
		"a path that Cluster API does not compare": "hook: CanUpdateMachine\nallow: [{path: /machine/metadata}]",
		"a patch that Cluster API would drop":      "hook: GeneratePatches\npatches: [{selector: {kind: A}, jsonPatches: [{op: add, path: /metadata/name, value: '1'}]}]",
		"an absent member":                         "hook: BeforeClusterUpgrade\nhold: [{if: request.cluster.spec.topology.version == '', message: '\"a\"'}]",
	}
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "rules.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "## Mistakes")
	rows := mistakeRow.FindAllStringSubmatch(table, -1)
	if len(rows) != len(specs) {
		t.Errorf("the page has %d mistakes, this test %d", len(rows), len(specs))
	}
	for _, row := range rows {
		spec, want := specs[row[1]], row[2]
		if spec == "" {
			t.Errorf("%s: not known to this test", row[1])
			continue
		}
		reg, got := compile(t, spec)
		if got == "" {
			request := upgrade("v1.36.0")
			request.Cluster.Raw = []byte(`{"apiVersion":"cluster.x-k8s.io/v1beta2","kind":"Cluster","metadata":{"name":"c"},"spec":{}}`)
			if _, err := reg.InProcess.Answer(t.Context(), request, policy.Guard{}); err != nil {
				got = err.Error()
			}
		}
		if got != want {
			t.Errorf("%s:\ngot  %s\nwant %s", row[1], got, want)
		}
	}
}

// The texts of other mistakes say by themselves what is wrong.
func TestOtherMistakes(t *testing.T) {
	for spec, want := range map[string]string{
		"hook: BeforeClusterUpgrad\nhold: [{if: 'true', message: '\"a\"'}]":                                       `spec.hook: Invalid value: "BeforeClusterUpgrad": not a hook that a rule can answer: did you mean "BeforeClusterUpgrade"?`,
		"hook: BeforeClusterUpgrade":                                                                              `spec: Required value: must have one of hold, fail, windows and concurrency`,
		"hook: CanUpdateMachine\nallow: [{path: /machine/spec}]\nhold: [{if: 'true', message: '\"a\"'}]":          `spec.hold: Forbidden: rules of CanUpdateMachine cannot have hold, fail, windows, concurrency`,
		"hook: AfterClusterUpgrade\nconcurrency: {limit: 1}":                                                      `spec.concurrency: Forbidden: no hook that follows AfterClusterUpgrade frees a place`,
		"hook: BeforeClusterUpgrade\nparams: [{name: a, admitted: true}]\nhold: [{if: 'true', message: '\"a\"'}]": `spec.params[0].admitted: Forbidden: a Cluster shows whether it is past BeforeClusterCreate, but not whether it is past another hook`,
		// A text without inner quotes, also one of a single word or with an apostrophe, and what may be an expression.
		"hook: BeforeClusterDelete\nfail: [{if: 'true', message: Protected}]":                    `spec.fail[0].message: Invalid value: line 1, column 1: undeclared reference to 'Protected' (in container ''); a literal text needs quotes inside the value: '"Protected"'`,
		"hook: BeforeClusterDelete\nfail: [{if: 'true', message: Cluster isn't empty}]":          `spec.fail[0].message: Invalid value: line 1, column 12: Syntax error: token recognition error at: ''t empty'; line 1, column 9: Syntax error: extraneous input 'isn' expecting <EOF>; a literal text needs quotes inside the value: '"Cluster isn''t empty"'`,
		"hook: BeforeClusterDelete\nfail: [{if: 'true', message: request.cluster.metadata.nam}]": `spec.fail[0].message: Invalid value: line 1, column 25: undefined field 'nam'`,
		"hook: BeforeClusterDelete\nfail: [{if: 'true', message: 'name + \"x\"'}]":               `spec.fail[0].message: Invalid value: line 1, column 1: undeclared reference to 'name' (in container '')`,
	} {
		if _, got := compile(t, spec); got != want {
			t.Errorf("%s:\ngot  %s\nwant %s", spec, got, want)
		}
	}
}
