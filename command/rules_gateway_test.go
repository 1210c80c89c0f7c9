// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hookgate/hookgate/command/internal/commandtest"
	"github.com/hookgate/hookgate/internal/cli/cmdline"
)

// heldRule is the manifest of a rule that holds each upgrade, and says to which version.
const heldRule = `apiVersion: hookgate.dev/v1alpha1
kind: HookRule
metadata: {name: approved}
spec:
  hook: BeforeClusterUpgrade
  hold:
  - if: "true"
    message: '"waits for approval of " + request.toKubernetesVersion'
    retryAfterSeconds: 60
`

// TestRulesAreHandlers calls a gateway that has a rule and no extension.
func TestRulesAreHandlers(t *testing.T) {
	g := commandtest.NewClusterGateway(t, heldRule)
	request := filepath.Join("..", "examples", "requests", "before-cluster-upgrade.yaml")
	for name, handler := range map[string]string{"All": "", "Named": "rule.approved", "Label": "rule--approved"} {
		args := []string{"call", "BeforeClusterUpgrade", "--kubeconfig", g.Kubeconfig, "--ca", g.CA, "-f", request}
		if handler != "" {
			args = append(args, "--handler", handler)
		}
		got := commandtest.Hookgate(t, "", args...)
		if !strings.Contains(got.Out, "waits for approval of v1.") || !strings.Contains(got.Out, "60") {
			t.Errorf("%s: %+v", name, got)
		}
	}
	got := commandtest.Hookgate(t, "", "explain", "BeforeClusterUpgrade", "-f", request, "--kubeconfig", g.Kubeconfig, "--ca", g.CA)
	if got.Code != cmdline.ExitDone || !strings.Contains(got.Out, "rule.approved") {
		t.Errorf("explain: %+v", got)
	}
}

// TestRulesAreListed shows a rule that is served, one that was never valid, and one whose name an ExtensionConfig has, too.
func TestRulesAreListed(t *testing.T) {
	config, _, _ := strings.Cut(strings.Replace(commandtest.LintConfig, `, caBundle: ""`, "", 1), "status:")
	g := commandtest.NewClusterGateway(t, heldRule+"---\n"+commandtest.LintRule("wrong", "BeforeClusterCreate", "1")+"---\n"+config+"---\n"+commandtest.LintRule("acme", "BeforeClusterDelete", `"no"`)+
		"---\n"+commandtest.LintChain("chain", "BeforeClusterUpgrade", "rule.approved")+
		"---\napiVersion: hookgate.dev/v1alpha1\nkind: ExtensionPolicy\nmetadata: {name: p}\nspec: {targetRef: {name: acme}, onUndiscovered: Ignore}\n")
	call := commandtest.Hookgate(t, "", "call", "BeforeClusterUpgrade", "--handler", "rule.approved", "--kubeconfig", g.Kubeconfig, "--ca", g.CA,
		"-f", filepath.Join("..", "examples", "requests", "before-cluster-upgrade.yaml"))
	if call.Code != cmdline.ExitDone {
		t.Errorf("call: %+v", call)
	}
	ask := func(args ...string) string {
		t.Helper()
		got := commandtest.Hookgate(t, "", append(args, "--diagnostics", "http://"+g.Address)...)
		if got.Code != cmdline.ExitDone || got.ErrOut != "" {
			t.Errorf("%v: exit status %d: %s", args, got.Code, got.ErrOut)
		}
		return got.Out
	}
	list, messages, _ := strings.Cut(ask("get", "rules"), "\n\n")
	if diff := cmp.Diff([][]string{
		{"NAME", "HOOK", "READY", "REASON", "CALLS", "FAILED"},
		{"acme", "BeforeClusterDelete", "True", "Ready", "0", "0"},
		{"approved", "BeforeClusterUpgrade", "True", "Ready", "1", "0"},
		{"wrong", "BeforeClusterCreate", "False", "Invalid", "0", "0"},
	}, commandtest.Columns(list)); diff != "" {
		t.Errorf("rules (-want +got):\n%s", diff)
	}
	for _, want := range []string{"spec.fail[0].message: Invalid value: must be a text"} {
		if !strings.Contains(messages, want) {
			t.Errorf("lacks %q:\n%s", want, messages)
		}
	}
	for of, want := range map[string]struct {
		shown string
		words []string
	}{
		"the rule":       {ask("describe", "rule", "approved"), []string{"Ready:", "True, Ready", "rule.approved", "step of chain", "payments-eu-west-1"}},
		"the other one":  {ask("describe", "rules/wrong"), []string{"False, Invalid", "must be a text"}},
		"the handlers":   {ask("get", "handlers"), []string{"beforeclusterupgrade", "rule.approved", "Ready"}},
		"the chain":      {ask("describe", "chain", "chain"), []string{"rule.approved", "Ready"}},
		"the extensions": {ask("get", "extensions", "-o", "name"), []string{"acme\n"}},
	} {
		for _, word := range want.words {
			if !strings.Contains(want.shown, word) {
				t.Errorf("%s lack %q:\n%s", of, word, want.shown)
			}
		}
	}
	if got := commandtest.Hookgate(t, "", "describe", "approved", "--diagnostics", "http://"+g.Address); got.Code != cmdline.ExitFailed || !strings.Contains(got.ErrOut, `"approved" is a HookRule: use "hookgate describe rule approved"`) {
		t.Errorf("describe: %+v", got)
	}
	if got := commandtest.Hookgate(t, "", "describe", "rule", "aproved", "--diagnostics", "http://"+g.Address); got.Code != cmdline.ExitFailed || !strings.Contains(got.ErrOut, `there is no HookRule "aproved": did you mean "approved"?`) {
		t.Errorf("describe: %+v", got)
	}

	response, err := http.Get("http://" + g.Address + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	metrics, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`hookgate_hook_rule_ready{hook="BeforeClusterUpgrade",rule="approved"} 1`, `hookgate_hook_rule_ready{hook="BeforeClusterCreate",rule="wrong"} 0`,
		`hookgate_handler_calls_total{handler="rule.approved",hook="BeforeClusterUpgrade",kind="",outcome="success"} 1`,
	} {
		if !strings.Contains(string(metrics), want) {
			t.Errorf("the metrics lack %s", want)
		}
	}
	if strings.Contains(string(metrics), `extension="approved"`) {
		t.Errorf("a rule has metrics of an extension:\n%s", metrics)
	}
}

// TestChainStopsWhileARuleHolds calls a gateway with a chain whose first step keeps the second from being called until
// the Cluster is approved.
func TestChainStopsWhileARuleHolds(t *testing.T) {
	request, err := os.ReadFile(filepath.Join("..", "examples", "requests", "before-cluster-upgrade.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	approved := strings.Replace(string(request), "environment: production", "environment: test", 1)
	waits := strings.Replace(heldRule, `"true"`, `request.cluster.metadata.labels["environment"] == "production"`, 1)
	chain := strings.Replace(commandtest.LintChain("gates", "BeforeClusterUpgrade", "rule.approved", "rule.backup"),
		"rule.approved}", "rule.approved, onHold: Stop}", 1)
	g := commandtest.NewClusterGateway(t, waits+"---\n"+commandtest.LintRule("backup", "BeforeClusterUpgrade", `"no room for a backup"`)+"---\n"+chain)
	for in, want := range map[string]string{
		string(request): `waits for approval of v1.34.0, these handlers are not called while handler "rule.approved" holds: "rule.backup"`,
		approved:        `handler "gates": handler "rule.backup": no room for a backup`,
	} {
		got := commandtest.Hookgate(t, in, "call", "BeforeClusterUpgrade", "--kubeconfig", g.Kubeconfig, "--ca", g.CA, "-f", "-", "-o", "json")
		var answer struct{ Message string }
		if err := json.Unmarshal([]byte(got.Out), &answer); err != nil || answer.Message != want {
			t.Errorf("got %+v, %v; want %s", got, err, want)
		}
	}
	explained := commandtest.Hookgate(t, string(request), "explain", "BeforeClusterUpgrade", "-f", "-", "--kubeconfig", g.Kubeconfig, "--ca", g.CA)
	if want := "STOPS WHILE IT HOLDS: rule.approved"; !strings.Contains(explained.Out, want) {
		t.Errorf("the explanation lacks %q: %+v", want, explained)
	}
	shown := commandtest.Hookgate(t, "", "describe", "chain", "gates", "--diagnostics", "http://"+g.Address)
	if want := "while it holds, the steps after it are not called"; !strings.Contains(shown.Out, want) {
		t.Errorf("the description lacks %q: %+v", want, shown)
	}
}
