// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package author_test

import (
	"encoding/xml"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hookgate/hookgate/command/internal/commandtest"
	"github.com/hookgate/hookgate/internal/cli/cmdline"
)

const testedRule = `apiVersion: hookgate.dev/v1alpha1
kind: HookRule
metadata: {name: approval}
spec:
  hook: BeforeClusterUpgrade
  namespaceSelector: {matchLabels: {team: red}}
  hold:
  - if: now < timestamp("2026-07-04T01:00:00Z")
    message: '"not before July"'
  - unless: request.cluster.spec.topology.version == request.toKubernetesVersion
    message: '"never"'
`

// ruleFolder returns a folder with the rule, and with tests of it that have the cases.
func ruleFolder(t *testing.T, rule, cases string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range map[string]string{
		"rule.yaml": rule,
		"test.yaml": "apiVersion: hookgate.dev/v1alpha1\nkind: HookRuleTest\nmetadata: {name: approval}\n" +
			"spec:\n  rule: approval\n  cases:\n" + cases,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// Cases are judged as a gateway judges calls: by the clock, the labels of the namespace, and what an expression that
// cannot be evaluated makes of the call.
func TestRuleTest(t *testing.T) {
	const cases = `
  - name: early
    given: {namespaceLabels: {team: red}}
    want: {message: not before July, retryAfterSeconds: 30}
  - name: late
    given: {now: "2026-07-04T01:00:00Z", namespaceLabels: {team: red}, request: {cluster: {spec: {topology: {version: v1.36.0}}}}}
  - name: other team
    want: {excluded: true}
  - name: no topology
    given: {now: "2026-07-04T01:00:00Z", namespaceLabels: {team: red}}
    want: {error: 'handler "rule.approval": HookRule "approval": spec.hold[1].unless: the expression fails for this request: no such key: topology'}
  - name: wrong message
    given: {namespaceLabels: {team: red}}
    want: {message: not before June}
  - name: wrongly excluded
    given: {namespaceLabels: {team: red}}
    want: {excluded: true}
  - name: wrongly included
    want: {retryAfterSeconds: 1}
  - name: misspelt
    given: {namespaceLabels: {team: red}, request: {toKubernetesVerson: v1.36.0}}
`
	dir := ruleFolder(t, testedRule, cases)
	for _, path := range []string{dir, filepath.Join(dir, "test.yaml")} {
		got := commandtest.Hookgate(t, "", "rule", "test", path)
		if got.Code != cmdline.ExitFailed || !strings.HasSuffix(got.ErrOut, "hookgate: rule test: 4 of 8 cases failed\n") {
			t.Errorf("%s: exit status %d: %s", path, got.Code, got.ErrOut)
		}
		commandtest.Golden(t, "rule/test.table", strings.ReplaceAll(got.Out, dir+string(filepath.Separator), ""))
	}
	audits := ruleFolder(t, strings.Replace(testedRule, "spec:\n", "spec:\n  action: Audit\n", 1), cases)
	as := commandtest.Hookgate(t, "", "rule", "test", audits)
	commandtest.Golden(t, "rule/test.table", strings.ReplaceAll(as.Out, audits+string(filepath.Separator), "")) // as if it counted
	got := commandtest.Hookgate(t, "", "rule", "test", dir, "-o", "json")
	commandtest.Golden(t, "rule/test.json", strings.ReplaceAll(got.Out, dir+string(filepath.Separator), ""))

	var suite struct {
		Tests    int `xml:"tests,attr"`
		Failures int `xml:"failures,attr"`
		Cases    []struct {
			Name    string  `xml:"name,attr"`
			Line    int     `xml:"line,attr"`
			Failure *string `xml:"failure"`
		} `xml:"testcase"`
	}
	got = commandtest.Hookgate(t, "", "rule", "test", dir, "-o", "junit")
	if err := xml.Unmarshal([]byte(got.Out), &suite); err != nil {
		t.Fatal(err)
	}
	if suite.Tests != 8 || suite.Failures != 4 || len(suite.Cases) != 8 || suite.Cases[3].Failure != nil ||
		suite.Cases[4].Line != 18 || suite.Cases[4].Failure == nil ||
		!strings.HasSuffix(*suite.Cases[4].Failure, "test.yaml:18\nmessage: got \"not before July\", want \"not before June\"\n"+
			"retryAfterSeconds: got 30, want 0") {
		t.Errorf("got %s", got.Out)
	}
}

// Each example has tests, which pass.
func TestExampleRules(t *testing.T) {
	folders, err := filepath.Glob("../../../examples/rules/*")
	if err != nil || len(folders) == 0 {
		t.Fatalf("%d folders: %v", len(folders), err)
	}
	for _, folder := range folders {
		if got := commandtest.Hookgate(t, "", "rule", "test", folder); got.Code != cmdline.ExitDone {
			t.Errorf("exit status %d: %s\n%s", got.Code, got.ErrOut, got.Out)
		}
	}
}

func TestRuleTestMistakes(t *testing.T) {
	good := "  - {name: one, want: {excluded: true}}\n"
	for name, tt := range map[string]struct {
		args []string
		code int
		want string
	}{
		"Nothing":      {nil, cmdline.ExitUsage, "want files with HookRuleTests"},
		"Format":       {[]string{"-o", "xml", "."}, cmdline.ExitUsage, `--output "xml": want table, json or junit`},
		"Absent":       {[]string{"none.yaml"}, cmdline.ExitFailed, "none.yaml"},
		"NoTest":       {[]string{filepath.Join(ruleFolder(t, testedRule, good), "rule.yaml")}, cmdline.ExitFailed, "rule.yaml has no HookRuleTest"},
		"OtherRule":    {[]string{ruleFolder(t, strings.Replace(testedRule, "approval", "other", 1), good)}, cmdline.ExitFailed, `test.yaml:5: HookRuleTest "approval": spec.rule: no HookRule "approval" is in `},
		"Twice":        {[]string{ruleFolder(t, testedRule+"---\n"+testedRule, good)}, cmdline.ExitFailed, `rule.yaml:13: HookRule "approval": metadata.name: Duplicate value: already defined at `},
		"Expression":   {[]string{ruleFolder(t, strings.Replace(testedRule, "now <", "now =", 1), good)}, cmdline.ExitFailed, `rule.yaml:8: HookRule "approval": spec.hold[0].if: Invalid value:`},
		"UnknownField": {[]string{ruleFolder(t, strings.Replace(testedRule, "hold:", "held:", 1), good)}, cmdline.ExitFailed, `rule.yaml:7: HookRule "approval": unknown field "spec.held": did you mean "hold"?`},
		"Case":         {[]string{ruleFolder(t, testedRule, good+"  - {name: two, wants: {}}\n")}, cmdline.ExitFailed, `test.yaml:8: HookRuleTest "approval": unknown field "spec.cases[1].wants": did you mean "want"?`},
	} {
		got := commandtest.Hookgate(t, "", append([]string{"rule", "test"}, tt.args...)...)
		if got.Code != tt.code || !strings.Contains(got.ErrOut, tt.want) {
			t.Errorf("%s: exit status %d, want %d: %q, want %q", name, got.Code, tt.code, got.ErrOut, tt.want)
		}
	}
	if got := commandtest.Hookgate(t, "", "rule"); got.Code != cmdline.ExitUsage || !strings.Contains(got.ErrOut, "say what to do with rules: test or rbac") {
		t.Errorf("exit status %d: %s", got.Code, got.ErrOut)
	}
}
