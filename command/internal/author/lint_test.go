// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package author_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/owenrumney/go-sarif/v3/pkg/report/v210/sarif"

	"github.com/hookgate/hookgate/command/internal/commandtest"
	"github.com/hookgate/hookgate/internal/cli/cmdline"
)

// lintPolicy returns a policy with a condition on its last line.
func lintPolicy(name, target, expression string) string {
	return "apiVersion: hookgate.dev/v1alpha1\nkind: ExtensionPolicy\nmetadata: {name: " + name + "}\nspec:\n  targetRef: " + target +
		"\n  matchConditions:\n  - name: a\n    expression: " + expression + "\n"
}

// lintFiles writes manifests into a directory that is the working directory from now on.
func lintFiles(t *testing.T, files map[string]string) {
	t.Helper()
	t.Chdir(t.TempDir())
	for name, text := range files {
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestLint(t *testing.T) {
	lintFiles(t, map[string]string{
		"good/policy.yaml": lintPolicy("p", "{name: acme}", "request.items.exists(i, i.uid != '')"),
		"good/rule.yaml": "apiVersion: hookgate.dev/v1alpha1\nkind: HookRule\nmetadata: {name: for-a-cluster}\nspec:\n  hook: BeforeClusterUpgrade\n" +
			"  params: [{name: self, self: true}]\n  hold: [{if: params.self.status.phase == 'Pending', message: \"'waits'\"}]\n",
		"bad/a.yaml": lintPolicy("typo", "{name: other}", "request.nmespace == 'a'"),
		"bad/b.yaml": strings.Replace(commandtest.LintConfig, `, caBundle: ""`, "", 1) + "---\n" + lintPolicy("clusters", "{name: acme}", "has(request.cluster)") +
			"---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n",
		"bad/c.yaml": lintPolicy("second", "{name: other}", "request.x ==") + "---\n" + lintPolicy("third", "{name: other}", "true"),
	})
	if got := commandtest.Hookgate(t, "", "lint", "good/policy.yaml", "good/rule.yaml"); got.Code != cmdline.ExitDone || got.Out+got.ErrOut != "" {
		t.Errorf("exit status %d: %s%s", got.Code, got.Out, got.ErrOut)
	}
	const absent = `good/policy.yaml:5: warning: ExtensionPolicy "p": spec.targetRef.name: there is no ExtensionConfig, HookRule or HookJob "acme"` + "\n"
	if got := commandtest.Hookgate(t, "", "lint", "good"); got.Code != cmdline.ExitDone || got.Out+got.ErrOut != absent {
		t.Errorf("exit status %d: %s%s", got.Code, got.Out, got.ErrOut)
	}
	const place = "spec.matchConditions[0].expression: Invalid value: "
	want := strings.Join([]string{
		`bad/a.yaml:5: warning: ExtensionPolicy "typo": spec.targetRef.name: there is no ExtensionConfig, HookRule or HookJob "other"`,
		`bad/a.yaml:8: error: ExtensionPolicy "typo": ` + place + "does not suit the requests of any hook; in a request of AfterClusterDelete: " +
			"line 1, column 8: undefined field 'nmespace'",
		`bad/b.yaml:17: error: ExtensionPolicy "clusters": ` + place + "in a request of GeneratePatches: line 1, column 4: undefined field 'cluster'",
		`bad/b.yaml:19: warning: ConfigMap "c": `,
		`bad/c.yaml:8: error: ExtensionPolicy "second": ` + place + "line 1, column 13: Syntax error: ",
		`bad/c.yaml:10: error: ExtensionPolicy "typo"`,
	}, "\n")
	got := commandtest.Hookgate(t, "", "lint", "bad", "good/policy.yaml")
	lines, wanted := strings.Split(got.Out, "\n"), strings.Split(want, "\n")
	if got.Code != cmdline.ExitFailed || got.ErrOut != "hookgate: lint: 5 mistakes\n" {
		t.Errorf("exit status %d: %s", got.Code, got.ErrOut)
	}
	for i, prefix := range wanted[:5] {
		if i >= len(lines) || !strings.HasPrefix(lines[i], prefix) {
			t.Fatalf("want line %d to begin with\n%s\nin\n%s", i, prefix, got.Out)
		}
	}

	got = commandtest.Hookgate(t, "", "lint", "bad/a.yaml", "-o", "json")
	var report struct {
		Problems []struct {
			File, Level string
			Line        int
		}
	}
	if err := json.Unmarshal([]byte(got.Out), &report); err != nil || got.Code != cmdline.ExitFailed || len(report.Problems) != 1 ||
		report.Problems[0].Line != 8 || report.Problems[0].Level != "error" || report.Problems[0].File != "bad/a.yaml" {
		t.Errorf("exit status %d: %v: %s", got.Code, err, got.Out)
	}
	got = commandtest.Hookgate(t, "", "lint", "bad/a.yaml", "-o", "sarif")
	log, err := sarif.FromBytes([]byte(got.Out), sarif.WithStrictValidation())
	if err != nil {
		t.Fatalf("%v in\n%s", err, got.Out)
	}
	if err := log.Validate(); err != nil || len(log.Runs[0].Results) != 1 {
		t.Errorf("%v: %s", err, got.Out)
	}
}

// Each result of SARIF leads to the page about the kind of the object.
func TestLintPages(t *testing.T) {
	rule := "apiVersion: hookgate.dev/v1alpha1\nkind: HookRule\nmetadata: {name: r}\nspec: {hook: BeforeCoffee}\n"
	docs, err := filepath.Abs("../../../docs")
	if err != nil {
		t.Fatal(err)
	}
	lintFiles(t, map[string]string{
		"a.yaml": lintPolicy("p", "{name: other}", "request.x ==") + "---\n" + rule + "---\n" +
			strings.Replace(rule, "name: r", "name: s", 1) + "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n",
	})
	got := commandtest.Hookgate(t, "", "lint", "a.yaml", "-o", "sarif")
	log, err := sarif.FromBytes([]byte(got.Out), sarif.WithStrictValidation())
	if err != nil {
		t.Fatalf("%v in\n%s", err, got.Out)
	}
	pages := map[string]string{}
	for _, r := range log.Runs[0].Tool.Driver.Rules {
		pages[*r.ID] = strings.TrimPrefix(*r.HelpURI, "https://github.com/hookgate/hookgate/blob/main/docs/")
		if _, err := os.Stat(filepath.Join(docs, pages[*r.ID])); err != nil {
			t.Error(err)
		}
	}
	var to []string
	for _, r := range log.Runs[0].Results {
		to = append(to, pages[*r.RuleID])
	}
	if want := []string{"extension-policy.md", "rules.md", "rules.md", "mistakes.md"}; !slices.Equal(to, want) {
		t.Errorf("the pages are %s, want %s:\n%s", to, want, got.Out)
	}
}

// A lift of a handler that the status of the ExtensionConfig does not have at this hook is a mistake.
func TestLintLiftedHolds(t *testing.T) {
	lintFiles(t, map[string]string{
		"a.yaml": strings.NewReplacer(`, caBundle: ""`, "", "patch.acme", "gate.acme", "GeneratePatches", "BeforeClusterDelete").Replace(commandtest.LintConfig),
		"b.yaml": "apiVersion: hookgate.dev/v1alpha1\nkind: ExtensionPolicy\nmetadata: {name: p}\nspec:\n  targetRef: {name: acme}\n  liftedHolds:\n" +
			"  - {handler: gate.acme, hook: BeforeClusterDelete, cluster: a/b, uid: u}\n  - {handler: gat.acme, hook: BeforeClusterDelete, cluster: a/b, uid: u}\n",
	})
	const want = `ExtensionPolicy "p": In effect for ExtensionConfig "acme", except for spec.liftedHolds[1]: ExtensionConfig "acme" has no handler "gat" for the hook BeforeClusterDelete`
	if got := commandtest.Hookgate(t, "", "lint", "."); got.Code != cmdline.ExitFailed || !strings.HasPrefix(got.Out, "b.yaml:1: error: "+want) || strings.Count(got.Out, "\n") != 1 {
		t.Errorf("exit status %d: %s%s", got.Code, got.Out, got.ErrOut)
	}
}

// A comparison with orValue("") that lets requests through is a warning; one that stops them is none.
func TestLintMissingValues(t *testing.T) {
	const compare = `request.cluster.metadata.?labels["a"].orValue("") %s request.toKubernetesVersion`
	equal, differ := fmt.Sprintf(compare, "=="), fmt.Sprintf(compare, "!=")
	rule := "apiVersion: hookgate.dev/v1alpha1\nkind: HookRule\nmetadata: {name: r}\nspec:\n  hook: BeforeClusterUpgrade\n  hold:\n"
	for _, decision := range []string{"unless: " + equal, "unless: " + differ, "if: " + differ, "if: " + equal} {
		rule += "  - message: \"'m'\"\n    " + decision + "\n"
	}
	lintFiles(t, map[string]string{"r.yaml": rule})
	const text = `Invalid value: orValue("") lets a request through if the other value is empty: use another default, such as orValue("none")` + "\n"
	const want = `r.yaml:8: warning: HookRule "r": spec.hold[0].unless: ` + text + `r.yaml:12: warning: HookRule "r": spec.hold[2].if: ` + text
	if got := commandtest.Hookgate(t, "", "lint", "r.yaml"); got.Code != cmdline.ExitDone || got.Out != want {
		t.Errorf("exit status %d: %s\n%s\nwant\n%s", got.Code, got.ErrOut, got.Out, want)
	}
}

func TestLintUsage(t *testing.T) {
	lintFiles(t, nil)
	for _, args := range [][]string{{"lint"}, {"lint", ".", "-o", "table"}} {
		if got := commandtest.Hookgate(t, "", args...); got.Code != cmdline.ExitUsage {
			t.Errorf("%q: exit status %d: %s", args, got.Code, got.ErrOut)
		}
	}
	if got := commandtest.Hookgate(t, "", "lint", "absent.yaml"); got.Code != cmdline.ExitFailed || !strings.Contains(got.ErrOut, "absent.yaml") {
		t.Errorf("exit status %d: %s", got.Code, got.ErrOut)
	}
}

// TestLintChains finds what keeps chains from being called, as far as the files say it.
func TestLintChains(t *testing.T) {
	status := func(config, name, hookName string) string {
		return strings.NewReplacer("patch.acme", name+"."+config, "name: acme", "name: "+config, "GeneratePatches", hookName, `, caBundle: ""`, "").Replace(commandtest.LintConfig)
	}
	unknown, _, _ := strings.Cut(status("new", "x", "GeneratePatches"), "status:")
	ignore := func(name, target string) string {
		return "apiVersion: hookgate.dev/v1alpha1\nkind: ExtensionPolicy\nmetadata: {name: " + name + "}\nspec: {targetRef: " + target + ", failurePolicy: Ignore}\n"
	}
	const several = "Cluster API accepts only one handler of CanUpdateMachine, but 2 are offered: "
	for reason, tt := range map[string]struct {
		files []string
		want  []string
	}{
		"a step that exists, one that may, and one of an ExtensionConfig that is elsewhere": {
			[]string{status("acme", "patch", "GeneratePatches"), unknown, commandtest.LintChain("c", "GeneratePatches", "patch.acme", "x.new", "y.elsewhere")}, nil,
		},
		"the same step in chains of two hooks, of which one is wrong, whichever it is": {
			[]string{commandtest.LintChain("c", "GeneratePatches", "y.elsewhere"), commandtest.LintChain("d", "ValidateTopology", "y.elsewhere")}, nil,
		},
		"steps that the status does not have, or has of another hook": {
			[]string{status("acme", "patch", "ValidateTopology"), commandtest.LintChain("c", "GeneratePatches", "none.acme", "patch.acme")},
			[]string{
				`1.yaml:7: error: HandlerChain "c": spec.steps[0].handler: no handler "none.acme" is registered`,
				`1.yaml:8: error: HandlerChain "c": spec.steps[1].handler: handler "patch.acme" serves the hook ValidateTopology, not GeneratePatches`,
			},
		},
		"an optional step that the status does not have": {
			[]string{status("acme", "patch", "GeneratePatches"), commandtest.LintChain("c", "GeneratePatches", "patch.acme", "none.acme, optional: true")}, nil,
		},
		"policies that ignore failures of in-place steps, known or not": {
			[]string{
				status("acme", "a", "CanUpdateMachine"), ignore("p", "{name: acme}"), ignore("q", "{name: elsewhere, handler: b}"),
				commandtest.LintChain("c", "CanUpdateMachine", "a.acme", "b.elsewhere", "c.elsewhere"),
			},
			[]string{
				`2.yaml:4: warning: ExtensionPolicy "q": spec.targetRef.name: there is no ExtensionConfig, HookRule or HookJob "elsewhere"`,
				`3.yaml:7: error: HandlerChain "c": spec.steps[0].handler: handler "a.acme" has failurePolicy Ignore, so a failure would look like an answer: set failurePolicy: Fail in its ExtensionPolicy`,
				`3.yaml:8: error: HandlerChain "c": spec.steps[1].handler: handler "b.elsewhere" has failurePolicy Ignore, so a failure would look like an answer: set failurePolicy: Fail in its ExtensionPolicy`,
			},
		},
		"the name of an ExtensionConfig": {[]string{unknown, commandtest.LintChain("new", "GeneratePatches", "y.elsewhere")}, nil},
		"two chains of a hook of which Cluster API takes one handler": {
			[]string{commandtest.LintChain("c", "CanUpdateMachine", "a.x"), commandtest.LintChain("d", "CanUpdateMachine", "b.x")},
			[]string{
				`0.yaml:5: error: HandlerChain "c": spec.hook: ` + several + "c, d; put them into one HandlerChain",
				`1.yaml:5: error: HandlerChain "d": spec.hook: ` + several + "c, d; put them into one HandlerChain",
			},
		},
		"two handlers of such a hook, which a chain in other files may have": {
			[]string{status("acme", "a", "CanUpdateMachine"), status("other", "b", "CanUpdateMachine")},
			[]string{
				`0.yaml:1: warning: ExtensionConfig "acme": ` + several + "a--acme, b--other; put them into one HandlerChain",
				`1.yaml:1: warning: ExtensionConfig "other": ` + several + "a--acme, b--other; put them into one HandlerChain",
			},
		},
	} {
		files := map[string]string{}
		for i, text := range tt.files {
			files[string(rune('0'+i))+".yaml"] = text
		}
		lintFiles(t, files)
		got := commandtest.Hookgate(t, "", "lint", ".")
		want := strings.Join(append(tt.want, ""), "\n")
		if got.Out != want {
			t.Errorf("%s: got\n%s\nwant\n%s", reason, got.Out, want)
		}
	}
}

// TestLintExtensions finds what keeps an extension from being called as its files mean it.
func TestLintExtensions(t *testing.T) {
	config := func(metadata, client, handler string) string {
		return "apiVersion: runtime.cluster.x-k8s.io/v1beta2\nkind: ExtensionConfig\nmetadata: {name: acme" + metadata + "}\nspec: {clientConfig: {" + client + "}}\n" +
			"status:\n  handlers:\n  - name: " + handler + "\n    requestHook: {apiVersion: hooks.runtime.cluster.x-k8s.io/v1alpha1, hook: GeneratePatches}\n"
	}
	service := func(metadata, spec string) string {
		return "apiVersion: v1\nkind: Service\nmetadata: {name: acme" + metadata + "}\nspec: {" + spec + "}\n"
	}
	const of, annotation = `0.yaml:3: %s: ExtensionConfig "acme": annotation cert-manager.io/inject-ca-from has no effect here; ` +
		"use runtime.cluster.x-k8s.io/inject-ca-from-secret: NAMESPACE/SECRET, so that Cluster API and Hookgate read ca.crt from a Secret", "cert-manager.io/inject-ca-from: s/c"
	const client, offered = "service: {name: acme, namespace: s}", `0.yaml:6: warning: ExtensionConfig "acme": status.handlers: handler "%s.acme" is offered to ` +
		"Cluster API as %s, because its name, with -- in place of the dot, would be ambiguous or longer than 63 characters: use the " +
		"offered name in a ClusterClass"
	for reason, tt := range map[string]struct {
		files []string
		want  []string
	}{
		"Services with the port, by a number or by default, among others": {[]string{
			config("", client+`, caBundle: ""`, "patch.acme"), service(", namespace: other", "ports: [{port: 1}]"), service("", "ports: [{port: 8443}, {port: 443}]"),
		}, nil},
		"a Service of another kind": {[]string{config("", client, "patch.acme"), service(", namespace: s", "type: ExternalName, externalName: a.example.com")}, nil},
		"a Service without the port": {
			[]string{config("", client, "patch.acme"), service(", namespace: s", "ports: [{name: https, port: 8443}]")},
			[]string{`0.yaml:4: error: ExtensionConfig "acme": spec.clientConfig.service.port: Invalid value: the Service at 1.yaml:1 has no port 443`},
		},
		"a Secret whose CA is taken": {
			[]string{config(", annotations: {runtime.cluster.x-k8s.io/inject-ca-from-secret: s/c}", client, "patch.acme")}, nil,
		},
		"a CA that is not taken": {
			[]string{config(", annotations: {"+annotation+"}", client, "patch.acme")}, []string{fmt.Sprintf(of, "error")},
		},
		"a CA that is taken from elsewhere": {
			[]string{config(", annotations: {"+annotation+", runtime.cluster.x-k8s.io/inject-ca-from-secret: s/c}", client, "patch.acme")},
			[]string{fmt.Sprintf(of, "warning")},
		},
		"a CA that is no base64": {
			[]string{config("", client+`, caBundle: "-----BEGIN CERTIFICATE-----"`, "patch.acme")},
			[]string{`0.yaml:4: error: ExtensionConfig "acme": spec.clientConfig.caBundle: Invalid value: must be base64 of PEM`},
		},
		"a CA that is no PEM": {
			[]string{config("", client+`, caBundle: eA==`, "patch.acme")},
			[]string{`0.yaml:4: error: ExtensionConfig "acme": spec.clientConfig.caBundle: Invalid value: must be base64 of at least one certificate in PEM`},
		},
		"a name that is ambiguous as a label": {
			[]string{config("", client, "a--b.acme")}, []string{fmt.Sprintf(offered, "a--b", "a--b--acme-e613da7d")},
		},
		"a name that is too long as a label": {
			[]string{config("", client, strings.Repeat("a", 58)+".acme")},
			[]string{fmt.Sprintf(offered, strings.Repeat("a", 58), strings.Repeat("a", 54)+"-76b344f4")},
		},
		"a name that is none": {
			[]string{config("", client, "A_b.acme")},
			[]string{`0.yaml:7: error: ExtensionConfig "acme": status.handlers[0].name: Invalid value: "A_b.acme": "A_b" must consist of lower case letters, digits and '-', and begin and end with a letter or digit`},
		},
	} {
		expectLint(t, reason, tt.files, tt.want)
	}
}

// expectLint lints files, which are named 0.yaml and so on, and compares all that lint prints with the lines wanted.
func expectLint(t *testing.T, reason string, texts, want []string) {
	t.Helper()
	files := map[string]string{}
	for i, text := range texts {
		files[string(rune('0'+i))+".yaml"] = text
	}
	lintFiles(t, files)
	got := commandtest.Hookgate(t, "", "lint", ".")
	if want := strings.Join(append(want, ""), "\n"); got.Out != want {
		t.Errorf("%s: got\n%s\nwant\n%s", reason, got.Out, want)
	}
}

// TestLintRules compiles rules, and finds what keeps them, and chains of them, from being called.
func TestLintRules(t *testing.T) {
	config, _, _ := strings.Cut(commandtest.LintConfig, "status:")
	policy := func(spec string) string {
		return "apiVersion: hookgate.dev/v1alpha1\nkind: ExtensionPolicy\nmetadata: {name: p}\nspec: {targetRef: {name: r}, " + spec + "}\n"
	}
	for reason, tt := range map[string]struct {
		files []string
		want  []string
	}{
		"a rule, a policy of it, and chains of one in the files and of one elsewhere": {
			[]string{commandtest.LintRule("r", "BeforeClusterUpgrade", `"no"`), policy("timeoutSeconds: 3"), commandtest.LintChain("c", "BeforeClusterUpgrade", "rule.r", "rule.elsewhere")}, nil,
		},
		"an unknown member": {
			[]string{commandtest.LintRule("r", "BeforeClusterUpgrade", "request.nothing")},
			[]string{`0.yaml:7: error: HookRule "r": spec.fail[0].message: Invalid value: line 1, column 8: undefined field 'nothing'`},
		},
		"the name of an ExtensionConfig": {
			[]string{config, commandtest.LintRule("acme", "BeforeClusterUpgrade", `"no"`)},
			[]string{`0.yaml:1: error: ExtensionConfig "acme": metadata.name: the name is also the name of HookRule "acme", so the extension is not called: rename the ExtensionConfig`},
		},
		"steps that a rule does not have, or has of another hook": {
			[]string{commandtest.LintRule("r", "BeforeClusterUpgrade", `"no"`), commandtest.LintChain("c", "BeforeClusterCreate", "rule.r", "v.r")},
			[]string{
				`1.yaml:7: error: HandlerChain "c": spec.steps[0].handler: handler "rule.r" serves the hook BeforeClusterUpgrade, not BeforeClusterCreate`,
				`1.yaml:8: error: HandlerChain "c": spec.steps[1].handler: no handler "v.r" is registered`,
			},
		},
		"a policy that means nothing to it": {
			[]string{commandtest.LintRule("r", "BeforeClusterUpgrade", `"no"`), policy("cache: {ttlSeconds: 5}")},
			[]string{`1.yaml:1: error: ExtensionPolicy "p": In effect for HookRule "r", except for fields that apply only to an extension with a server: spec.cache`},
		},
	} {
		expectLint(t, reason, tt.files, tt.want)
	}
}
