// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterctl

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/hookgate/hookgate/test/process"
)

// guarded is a management cluster with Cluster API v1.12 and deploy/upgrade-guard.
type guarded struct {
	*server
	r *repository
}

// TestUpgradeGuard upgrades Cluster API core with clusterctl where an extension would break: the guard refuses before
// anything has changed, until preflight has approved.
func TestUpgradeGuard(t *testing.T) {
	for _, variable := range []string{clusterctlVariable, kustomizeVariable, gatewayVariable, assetsVariable} {
		program(t, variable) // before anything starts
	}
	r := newRepository(t, true)
	r.addCore(t, "v1.12.4")
	r.addCore(t, "v1.14.2")
	s := startServers(t, 1)[0]
	r.clusterctlFor(t, s, "init", "--core", "cluster-api:v1.12.4", "--bootstrap", "-", "--control-plane", "-")
	s.removeWebhooks(t)
	s.kubectl(t, "", "apply", "-f", filepath.Join("..", "..", "deploy", "crd", "hookgate.dev_extensionpolicies.yaml"))
	s.apply(t, map[string]any{
		"apiVersion": "runtime.cluster.x-k8s.io/v1beta2", "kind": "ExtensionConfig", "metadata": map[string]any{"name": "acme"},
		"spec": map[string]any{"clientConfig": map[string]any{"url": "https://acme.example.com"}},
	})
	s.status(t, coreExtensionConfigs, "acme", `{"status": {"handlers": [{"name": "gate.acme", "requestHook": {"apiVersion": "hooks.runtime.cluster.x-k8s.io/v1alpha1", "hook": "BeforeClusterUpgrade"}}]}}`)
	g := guarded{s, r}
	g.install(t)

	const first = "Nothing says yet what the upgrade means for the registered extensions"
	_, stderr, err := r.clusterctl(t, []string{"KUBECONFIG=" + s.kubeconfig}, "upgrade", "apply", "--core", "cluster-api:v1.14.2")
	if err == nil || !strings.Contains(stderr, "the upgrade of Cluster API core is not approved: "+first) {
		t.Errorf("clusterctl upgrades what was not judged: %v\n%s", err, stderr)
	}
	g.runs(t, "v1.12.4", 1)

	if out, ok := g.preflight(t); ok || !strings.Contains(out, "The command recorded the verdict in annotations of Deployment capi-system/capi-controller-manager.\n") {
		t.Errorf("preflight of an upgrade that breaks: %t\n%s", ok, out)
	}
	const broken = "cluster-api=v1.14: 1 finding of level break: gate.acme. Run"
	for what, patch := range map[string]string{
		"scale down": `{"spec":{"replicas":0}}`,
		"image":      `{"spec":{"template":{"spec":{"containers":[{"name":"manager","image":"example.com:5000/controller:v1.14.2@sha256:0"}]}}}}`,
	} {
		if refusal := g.patch(t, patch); !strings.Contains(refusal, broken) {
			t.Errorf("%s: %s\nwant %s", what, refusal, broken)
		}
	}
	for what, patch := range map[string]string{
		"digest":  `{"spec":{"template":{"spec":{"containers":[{"name":"manager","image":"example.com:5000/controller:v1.12.4@sha256:0"}]}}}}`,
		"replica": `{"spec":{"replicas":2}}`,
		"label":   `{"metadata":{"labels":{"any":"thing"}}}`,
	} {
		if refusal := g.patch(t, patch); refusal != "" {
			t.Errorf("%s, which is no upgrade: %s", what, refusal)
		}
	}

	out, err := exec.Command(program(t, gatewayVariable), "preflight", "--for", "cluster-api=v1.14.2", "--kubeconfig", s.kubeconfig, "-o", "policies").Output()
	if len(out) == 0 {
		t.Fatalf("preflight proposes no policy: %v", err)
	}
	s.kubectl(t, string(out), "apply", "-f", "-")
	if out, ok := g.preflight(t); !ok {
		t.Errorf("preflight with its own policies: %s", out)
	}
	if refusal := g.patch(t, `{"spec":{"template":{"spec":{"containers":[{"name":"manager","image":"controller:v1.15.0"}]}}}}`); !strings.Contains(refusal, "to v1.15.0 is not approved") {
		t.Errorf("a version other than the one that was approved: %s", refusal)
	}
	r.clusterctlFor(t, s, "upgrade", "apply", "--core", "cluster-api:v1.14.2")
	g.runs(t, "v1.14.2", 1)

	if refusal := g.patch(t, `{"spec":{"replicas":0}}`); !strings.Contains(refusal, first) {
		t.Errorf("the approval of the last upgrade is still there: %s", refusal)
	}
	if refusal := g.patch(t, `{"metadata":{"annotations":{"hookgate.dev/approved-cluster-api":"any"}},"spec":{"replicas":0}}`); refusal != "" {
		t.Errorf("with the annotation: %s", refusal)
	}
	if refusal := g.patch(t, `{"metadata":{"annotations":{"hookgate.dev/approved-cluster-api":"v1.14"}},"spec":{"replicas":0}}`); refusal == "" {
		t.Error("the release that runs is approved, and the next upgrade with it")
	}
}

// install applies the guard, and waits until it is in effect.
func (g guarded) install(t *testing.T) {
	t.Helper()
	g.kubectl(t, "", "apply", "-k", filepath.Join("..", "..", "deploy", "upgrade-guard"))
	process.Eventually(t, "the guard is in effect", func() bool { return g.patch(t, `{"spec":{"replicas":0}}`) != "" })
}

// patch tries to patch the Deployment of Cluster API core, without an effect, and returns why it is refused.
func (g guarded) patch(t *testing.T, patch string) (refusal string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), filepath.Join(program(t, assetsVariable), "kubectl"), "--kubeconfig", g.kubeconfig,
		"--namespace", "capi-system", "patch", "deployment", "capi-controller-manager", "--dry-run=server", "--type", "strategic", "-p", patch)
	out, err := cmd.CombinedOutput()
	if err == nil {
		return ""
	}
	return string(out)
}

// preflight records the verdict about the upgrade, and reports whether it is approved.
func (g guarded) preflight(t *testing.T) (output string, approved bool) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), program(t, gatewayVariable), "preflight", "--for", "cluster-api=v1.14.2", "--record",
		"--kubeconfig", g.kubeconfig).CombinedOutput()
	return string(out), err == nil
}

// runs checks which Cluster API core runs, as its Deployment and clusterctl's record say.
func (g guarded) runs(t *testing.T, version string, replicas int64) {
	t.Helper()
	deployment := g.find(t, deployments, "capi-system", "capi-controller-manager")
	if deployment == nil {
		t.Fatal("Cluster API core has no Deployment")
	}
	if n, _, err := unstructured.NestedInt64(deployment.Object, "spec", "replicas"); n != replicas || err != nil {
		t.Errorf("there are %d replicas, want %d; %v", n, replicas, err)
	}
	image, _ := container(t, []*unstructured.Unstructured{deployment})["image"].(string)
	record := g.find(t, providers, "capi-system", "cluster-api")
	if !strings.HasSuffix(image, ":"+version) || record == nil || record.Object["version"] != version {
		t.Errorf("the image is %s, clusterctl's record %v; want %s", image, record, version)
	}
}
