// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/hookgate/hookgate/test/process"
)

// TestUpgradeGuardApprovals asks a real API server what an approval is about, and how long it counts, for Cluster API core
// and for the gateway. test/clusterctl upgrades behind the guard.
func TestUpgradeGuardApprovals(t *testing.T) {
	if os.Getenv(assetsVariable) == "" {
		t.Skipf("%s does not name a directory with kube-apiserver, etcd and kubectl", assetsVariable)
	}
	s := newServer(t)
	deploy := filepath.Join("..", "..", "deploy")
	apply := func(folders ...string) {
		text, err := os.ReadFile(filepath.Join(append([]string{deploy}, folders...)...))
		if err != nil {
			t.Fatal(err)
		}
		s.apply(t, text)
	}
	apply("crd", "runtime.cluster.x-k8s.io_extensionconfigs.yaml")
	apply("crd", "hookgate.dev_extensionpolicies.yaml") // and no runtime.hookgate.dev
	apply("crd", "hookgate.dev_handlerchains.yaml")
	apply("crd", "hookgate.dev_hookrules.yaml")
	apply("crd", "hookgate.dev_hookjobs.yaml")
	s.apply(t, []byte("apiVersion: v1\nkind: Namespace\nmetadata: {name: system}\n"))
	for name, version := range map[string]string{"cluster-api": "v1.12.4", "runtime-extension-hookgate": "v0.0.9"} {
		s.apply(t, []byte(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: `+name+`, namespace: system, labels: {cluster.x-k8s.io/provider: `+name+`}}
spec:
  replicas: 1
  selector: {matchLabels: {a: b}}
  template:
    metadata: {labels: {a: b}}
    spec: {containers: [{name: manager, image: "registry.example.com:5000/manager:`+version+`"}]}
`))
	}
	const core, gateway = "cluster-api", "runtime-extension-hookgate"
	// patch patches a Deployment, without an effect, and returns why it is refused.
	patch := func(deployment, patch string) string {
		out, err := kubectl(s.admin, nil, "-n", "system", "patch", "deployment", deployment, "--dry-run=server", "--type", "strategic", "-p", patch)
		if err == nil {
			return ""
		}
		return string(out)
	}
	const stop = `{"spec":{"replicas":0}}`
	image := func(version string) string {
		return `{"spec":{"template":{"spec":{"containers":[{"name":"manager","image":"other/manager:` + version + `"}]}}}}`
	}
	refused := func(deployment, change, want string) {
		t.Helper()
		process.Eventually(t, "refused: "+want, func() bool { return strings.Contains(patch(deployment, change), want) })
	}
	allowed := func(deployment, change string) {
		t.Helper()
		process.Eventually(t, "allowed: "+change, func() bool { return patch(deployment, change) == "" })
	}
	preflight := func(args ...string) (string, bool) {
		out, err := exec.CommandContext(t.Context(), program(t, gatewayVariable),
			append([]string{"preflight", "--kubeconfig", s.admin, "--record"}, args...)...).CombinedOutput()
		return string(out), err == nil
	}
	annotate := func(deployment string, values ...string) {
		t.Helper()
		if out, err := kubectl(s.admin, nil, append([]string{"-n", "system", "annotate", "--overwrite", "deployment", deployment}, values...)...); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	apply("upgrade-guard", "policy.yaml")
	apply("upgrade-guard", "registrations.yaml")
	refused(core, stop, "the upgrade of Cluster API core is not approved: Nothing says yet")
	refused(gateway, stop, `the upgrade of the gateway is not approved: Nothing says yet what the upgrade means for the registered extensions. Run "hookgate preflight --for hookgate=VERSION --record"`)
	allowed(core, `{"spec":{"replicas":3}}`)

	// Without registrations, the approval must be asked for.
	both := []string{"--for", "cluster-api=v1.14.0", "--from", "cluster-api=v1.13.0", "--for", "hookgate=v0.1.0"}
	if out, ok := preflight(both...); ok || !strings.Contains(out, "give --allow-empty") {
		t.Errorf("an empty cluster is approved: %s", out)
	}
	refused(core, stop, "Nothing says yet")
	if out, ok := preflight(append(both, "--allow-empty")...); !ok {
		t.Errorf("an empty cluster is not approved: %s", out)
	}
	for _, change := range []string{stop, image("v1.14.2")} {
		allowed(core, change)
	}
	for _, change := range []string{stop, image("v0.1.0")} {
		allowed(gateway, change)
	}
	refused(gateway, image("v0.2.0"), "the upgrade of the gateway to v0.2.0 is not approved: The approval is of v0.1.0.")

	// A registration that is new, or has changed, was not judged.
	config := func(url string) {
		s.apply(t, []byte("apiVersion: runtime.cluster.x-k8s.io/v1beta2\nkind: ExtensionConfig\nmetadata: {name: acme}\nspec: {clientConfig: {url: \""+url+"\"}}\n"))
		generation, err := kubectl(s.admin, nil, "get", "extensionconfigs.runtime.cluster.x-k8s.io", "acme", "-o", "jsonpath={.metadata.generation}")
		if err != nil {
			t.Fatalf("%v: %s", err, generation)
		}
		discovered := `{"status":{"conditions":[{"type":"Discovered","status":"True","reason":"Discovered","message":"","lastTransitionTime":"2026-01-01T00:00:00Z","observedGeneration":` + string(generation) +
			`}],"handlers":[{"name":"p.acme","requestHook":{"apiVersion":"hooks.runtime.cluster.x-k8s.io/v1alpha1","hook":"GeneratePatches"},"timeoutSeconds":10,"failurePolicy":"Fail"}]}}`
		if out, err := kubectl(s.admin, nil, "patch", "extensionconfigs.runtime.cluster.x-k8s.io", "acme", "--subresource=status", "--type=merge", "-p", discovered); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	const changed = "does not count any more: ExtensionConfig acme of runtime.cluster.x-k8s.io is new or was changed since"
	config("https://acme.example.com")
	for _, deployment := range []string{core, gateway} {
		refused(deployment, stop, changed)
	}
	if out, ok := preflight(both...); !ok {
		t.Fatal(out)
	}
	allowed(core, image("v1.14.2"))
	config("https://other.example.com")
	refused(core, image("v1.14.2"), changed)
	if out, ok := preflight(both...); !ok {
		t.Fatal(out)
	}
	allowed(gateway, stop)
	s.apply(t, []byte("apiVersion: hookgate.dev/v1alpha1\nkind: ExtensionPolicy\nmetadata: {name: p}\nspec: {targetRef: {name: acme}, timeoutSeconds: 5}\n"))
	refused(gateway, stop, "ExtensionPolicy p of hookgate.dev is new or was changed since")
	if out, ok := preflight(both...); !ok {
		t.Fatal(out)
	}
	s.apply(t, []byte("apiVersion: hookgate.dev/v1alpha1\nkind: HandlerChain\nmetadata: {name: c}\nspec: {hook: GeneratePatches, steps: [{handler: p.acme}]}\n"))
	refused(gateway, stop, "HandlerChain c of hookgate.dev is new or was changed since")
	if out, ok := preflight(both...); !ok {
		t.Fatal(out)
	}
	s.apply(t, []byte("apiVersion: hookgate.dev/v1alpha1\nkind: HookRule\nmetadata: {name: r}\nspec: {hook: BeforeClusterUpgrade, fail: [{if: 'false', message: '\"\"'}]}\n"))
	refused(gateway, stop, "HookRule r of hookgate.dev is new or was changed since")
	if out, ok := preflight(both...); !ok {
		t.Fatal(out)
	}
	s.apply(t, []byte("apiVersion: hookgate.dev/v1alpha1\nkind: HookJob\nmetadata: {name: j}\nspec:\n  hook: BeforeClusterUpgrade\n  jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: b}]}}}}\n"))
	refused(gateway, stop, "HookJob j of hookgate.dev is new or was changed since")
	if out, ok := preflight(both...); !ok {
		t.Fatal(out)
	}
	allowed(core, stop)
	allowed(gateway, stop)

	// An approval counts until its time.
	until, err := kubectl(s.admin, nil, "-n", "system", "get", "deployment", core, "-o", `jsonpath={.metadata.annotations.hookgate\.dev/approved-until}`)
	if err != nil || !regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$`).Match(until) {
		t.Errorf("the approval counts until %s, %v", until, err)
	}
	annotate(core, "hookgate.dev/approved-until=2026-01-01T00:00:00Z")
	refused(core, stop, "The approval of v1.14 counted until 2026-01-01T00:00:00Z.")
	annotate(core, "hookgate.dev/approved-until-") // as earlier releases recorded it
	refused(core, image("v1.14.2"), "The approval of v1.14 has no time until which it counts.")
	annotate(core, "hookgate.dev/approved-cluster-api=any")
	allowed(core, stop)
}
