// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"slices"
	"strings"
	"testing"
)

// TestInfrastructureProvider makes and deletes a cluster and a machine by an extension in another Pod. One of the two
// replicas of the controllers is killed in between.
func TestInfrastructureProvider(t *testing.T) {
	all(t)
	deployInfrastructure(t)
	provider, err := files.ReadFile("testdata/provider.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if provider, err = sign(provider); err != nil {
		t.Fatal(err)
	}
	apply(t, provider)
	t.Cleanup(func() { kubectl(t, "delete", "namespace", "rack-system") })
	rolledOut(t, "rack-system", "rack")
	applyFile(t, "class.yaml")
	t.Cleanup(func() { kubectl(t, "delete", "-f", node.file("class.yaml")) })
	kubectl(t, "wait", "infrastructureclass/rack", "--for=condition=Ready", "--timeout=60s")

	applyFile(t, "machine.yaml")
	own(t, "cluster/rack1", "hookgatecluster/rack1")
	kubectl(t, "wait", "hookgatecluster/rack1", "--for=condition=Ready", "--timeout=60s")
	kubectl(t, "patch", "cluster/rack1", "--subresource=status", "--type=merge", "-p", `{"status": {"initialization": {"infrastructureProvisioned": true}}}`)
	own(t, "machine/rack1-m", "hookgatemachine/rack1-m")
	kubectl(t, "wait", "hookgatemachine/rack1-m", "--for=condition=Ready", "--timeout=60s")
	if id := kubectl(t, "get", "hookgatemachine/rack1-m", "-o", "jsonpath={.spec.providerID}"); !strings.HasPrefix(id, "rack://") {
		t.Errorf("the provider ID is %q", id)
	}
	lists := newPlugin(t)
	for command, want := range map[string]string{"get clusters": "rack1", "get machines -o wide": "rack://", "get pools": ""} {
		lists.expect(t, command, want)
	}
	leader, _, _ := strings.Cut(kubectl(t, "-n", namespace, "get", "lease", "-o",
		`jsonpath={.items[?(@.metadata.name=="hookgate-infrastructure")].spec.holderIdentity}`), "_")
	kubectl(t, "-n", namespace, "delete", "pod/"+leader, "--force", "--grace-period=0")
	kubectl(t, "delete", "hookgatemachine/rack1-m", "--timeout=120s")
	kubectl(t, "delete", "hookgatecluster/rack1", "--timeout=60s")
	kubectl(t, "delete", "-f", node.file("machine.yaml"), "--ignore-not-found")
	log := strings.Split(kubectl(t, "-n", "rack-system", "logs", "deployment/rack"), "\n")
	for _, want := range []string{"cluster rack1", "machine rack1-m", "no machine rack1-m", "no cluster rack1"} {
		if !slices.Contains(log, want) {
			t.Errorf("the extension was not asked for %q: %s", want, log)
		}
	}
	rolledOut(t, namespace, "hookgate-infrastructure")
}

// deployInfrastructure installs the controllers of the provider until the test ends.
func deployInfrastructure(t *testing.T) {
	t.Helper()
	manifests := kustomize(t, `
resources: [../../deploy/infrastructure]
components: [../../deploy/components/self-certificates/infrastructure]
images: [{name: ghcr.io/hookgate/hookgate, newTag: `+release+`}]
`, nil)
	apply(t, manifests)
	t.Cleanup(func() { kubectlWith(t, withoutNamespace(manifests), "delete", "--ignore-not-found", "-f", "-") })
	rolledOut(t, namespace, "hookgate-infrastructure")
}

// own makes an object of Cluster API the owner of its infrastructure.
func own(t *testing.T, owner, object string) {
	t.Helper()
	kubectl(t, "patch", object, "--type=merge", "-p", kubectl(t, "get", owner, "-o", `go-template={"metadata": {"ownerReferences": [
		{"apiVersion": "{{.apiVersion}}", "kind": "{{.kind}}", "name": "{{.metadata.name}}", "uid": "{{.metadata.uid}}", "controller": true}]}}`))
}

// withoutNamespace returns the manifests without that of the namespace, which others have, too.
func withoutNamespace(manifests []byte) []byte {
	var kept []string
	for m := range strings.SplitSeq(string(manifests), "---\n") {
		if !strings.Contains(m, "kind: Namespace\n") {
			kept = append(kept, m)
		}
	}
	return []byte(strings.Join(kept, "---\n"))
}
