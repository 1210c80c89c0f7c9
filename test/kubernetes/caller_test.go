// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/hookgate/hookgate/test/anykind"
	"github.com/hookgate/hookgate/test/certificates"
	"github.com/hookgate/hookgate/test/process"
)

// A rule that holds the upgrade of control planes until their Cluster says yes, and fails those to v9.
const upgradeRule = `apiVersion: hookgate.dev/v1alpha1
kind: HookRule
metadata: {name: approval}
spec:
  hook: BeforeControlPlaneUpgrade
  fail:
  - if: request.toKubernetesVersion == "v9"
    message: '"v9 is not allowed"'
  hold:
  - unless: request.cluster.metadata.?annotations["approved"].orValue("none") == request.toKubernetesVersion
    message: '"waits for the approval of " + request.toKubernetesVersion'
    retryAfterSeconds: 1
`

// TestCallerExample runs the controller of examples/caller against an API server and a gateway: a control plane stays as
// it is while the hook holds it, says why, and is upgraded once the hook lets it go.
func TestCallerExample(t *testing.T) {
	hookgate := process.Program(t, gatewayVariable)
	config, c := emptyServer(t, filepath.Join("..", "..", "examples", "caller", "crd.yaml"))
	if _, err := envtest.InstallCRDs(config, envtest.CRDInstallOptions{
		MaxTime: process.ServerPatience, CRDs: []*apiextensionsv1.CustomResourceDefinition{anykind.Of("cluster.x-k8s.io", "v1beta2", "Cluster")},
	}); err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(t.TempDir(), "caller")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, "./examples/caller")
	build.Dir = filepath.Join("..", "..")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	certs, manifests := t.TempDir(), t.TempDir()
	certificates.In(t, certs, "127.0.0.1")
	if err := os.WriteFile(filepath.Join(manifests, "rule.yaml"), []byte(upgradeRule), 0o600); err != nil {
		t.Fatal(err)
	}
	g := process.RunGateway(t, exec.Command(hookgate, append([]string{"serve", "--extension-configs", manifests, "--cert-dir", certs}, process.AnyPorts()...)...))
	g.WaitReady(t)
	ca := filepath.Join(certs, "dev-ca.crt")
	for protocol, url := range map[string]string{"gRPC": "grpcs://" + g.GRPC, "JSON": "https://" + g.HTTPS} {
		t.Run(protocol, func(t *testing.T) {
			controller := exec.Command(program, "--gateway", url, "--gateway-ca", ca, "--kubeconfig", kubeconfigOf(t, config))
			p := process.Run(t, "caller", controller)
			name := map[string]string{"gRPC": "a", "JSON": "b"}[protocol]
			cluster := object(t, fmt.Sprintf(`{apiVersion: cluster.x-k8s.io/v1beta2, kind: Cluster, metadata: {name: %s, namespace: default}, spec: {paused: false}}`, name))
			create(t, c, cluster)
			plane := object(t, fmt.Sprintf(`{apiVersion: controlplane.acme.example/v1alpha1, kind: AcmeControlPlane, metadata: {name: %s, namespace: default, labels: {cluster.x-k8s.io/cluster-name: %[1]s}}, spec: {version: v1}}`, name))
			create(t, c, plane)
			awaitPlane(t, c, plane, "v1 True Upgraded: The control plane runs v1")
			set(t, c, plane, "v2", "spec", "version")
			awaitPlane(t, c, plane, "v1 False Held: waits for the approval of v2")
			set(t, c, cluster, "v2", "metadata", "annotations", "approved")
			awaitPlane(t, c, plane, "v2 True Upgraded: The control plane runs v2")
			set(t, c, plane, "v9", "spec", "version")
			awaitPlane(t, c, plane, "v2 False HookFailed: BeforeControlPlaneUpgrade answered Failure: handler \"rule.approval\": v9 is not allowed")
			p.EndWell(t)
		})
	}
	g.EndWell(t)
}

// set changes a text of an object.
func set(t *testing.T, c client.Client, o *unstructured.Unstructured, value string, path ...string) {
	t.Helper()
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
		t.Fatal(err)
	}
	before := o.DeepCopy()
	if err := unstructured.SetNestedField(o.Object, value, path...); err != nil {
		t.Fatal(err)
	}
	if err := c.Patch(t.Context(), o, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
}

// awaitPlane waits until a control plane has that version and condition.
func awaitPlane(t *testing.T, c client.Client, plane *unstructured.Unstructured, want string) {
	t.Helper()
	eventually(t, want, func() (string, bool) {
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(plane), plane); err != nil {
			t.Fatal(err)
		}
		version, _, _ := unstructured.NestedString(plane.Object, "status", "version")
		conditions, _, _ := unstructured.NestedSlice(plane.Object, "status", "conditions")
		var saw strings.Builder
		saw.WriteString(version)
		for _, each := range conditions {
			if condition, ok := each.(map[string]any); ok {
				fmt.Fprintf(&saw, " %s %s: %s", condition["status"], condition["reason"], condition["message"])
			}
		}
		return saw.String(), saw.String() == want
	})
}
