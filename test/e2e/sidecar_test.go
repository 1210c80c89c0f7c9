// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// exampleVariable names the program of the example to run; without it, it is defaultExample.
	exampleVariable = "HOOKGATE_E2E_EXAMPLE"
	defaultExample  = "../../examples/python/run"

	// repository is what the extension sets in the control plane, from a variable of the Cluster.
	repository = "registry.example.com/kubernetes"
	// approval is the annotation for which the extension holds an upgrade to another minor version.
	approval = "example.hookgate.dev/approved-minor"
)

// TestSidecar runs a Cluster with an extension that is not in Go and knows no HTTP, beside a gateway that knows no
// ExtensionConfig: Cluster API has its variable and its patch, and is held by it.
func TestSidecar(t *testing.T) {
	w := begin(t, true)
	say := w.logf
	w.startBeside()
	w.registerGateway("example")
	say("Cluster API has discovered the extension through its sidecar")

	for _, o := range read(t, "testdata/clusterclass.yaml") {
		if o.GetKind() == "ClusterClass" {
			set(t, o, []any{map[string]any{"name": "external", "external": map[string]any{
				"generatePatchesExtension":   "image-repository.example",
				"discoverVariablesExtension": "image-repository-variables.example",
			}}}, "spec", "patches")
			unstructured.RemoveNestedField(o.Object, "spec", "upgrade")
		}
		w.create(o)
	}
	w.eventually("the ClusterClass has the variable of the extension", func() (string, bool) {
		class := &clusterv1.ClusterClass{}
		if err := w.Get(w.ctx, client.ObjectKey{Namespace: namespace, Name: "memory"}, class); err != nil {
			return err.Error(), false
		}
		return fmt.Sprint(class.Status.Variables, class.Status.Conditions), len(class.Status.Variables) == 1 &&
			class.Status.Variables[0].Name == "imageRepository" &&
			class.Status.Variables[0].Definitions[0].Schema.OpenAPIV3Schema.MinLength != nil
	})

	cluster := read(t, "testdata/cluster.yaml")[0]
	set(t, cluster, int64(1), "spec", "topology", "controlPlane", "replicas")
	set(t, cluster, []any{map[string]any{"name": "imageRepository", "value": repository}}, "spec", "topology",
		"variables")
	w.create(cluster)
	w.settled(oldVersion, 2)
	if got := w.controlPlaneOf().Spec.KubeadmConfigSpec.ClusterConfiguration.ImageRepository; got != repository {
		t.Errorf("the control plane has image repository %q, want the one that the extension patched into its template, %q", got, repository)
	}
	say("the Cluster runs %s, with the extension's patch", oldVersion)

	w.change("version", func(c *clusterv1.Cluster) { c.Spec.Topology.Version = newVersion })
	w.eventually("the extension holds the upgrade", func() (string, bool) {
		message := w.topologyMessage()
		return message, blocks(message, "BeforeClusterUpgrade")
	})
	c := meta.FindStatusCondition(w.cluster().Status.Conditions, clusterv1.ClusterTopologyReconciledCondition)
	if want := "upgrade to v1.36 waits for the annotation " + approval + ": v1.36"; !strings.Contains(c.Message, want) {
		t.Errorf("TopologyReconciled says %q, want the extension's own words, %q", c.Message, want)
	}
	if v := w.controlPlaneOf().Spec.Version; v != oldVersion {
		t.Errorf("the upgrade is held, and yet the control plane has version %s", v)
	}
	say("BeforeClusterUpgrade holds")
	w.change("annotations", func(c *clusterv1.Cluster) {
		if c.Annotations == nil {
			c.Annotations = map[string]string{}
		}
		c.Annotations[approval] = "v1.36"
	})
	w.settled(newVersion, 2)
	say("approved; the Cluster runs %s", newVersion)

	if err := w.Delete(w.ctx, w.cluster()); err != nil {
		t.Fatalf("delete Cluster: %v", err)
	}
	w.gone()
	say("the Cluster is gone")
	calls := w.gateway.scrape(t, "hookgate_handler_calls_total")
	for _, hook := range []string{"BeforeClusterUpgrade", "GeneratePatches", "DiscoverVariables"} {
		all, fine := total(calls, "hook", hook), total(calls, "hook", hook, "kind", "")
		if all == 0 || all != fine {
			t.Errorf("%s was called %d times, %d of which were answered", hook, all, fine)
		}
		say("%s was called %d times", hook, all)
	}
}

// startBeside starts the example and the gateway beside it. The gateway is first, which it may be.
func (w *fixture) startBeside() {
	w.t.Helper()
	program := os.Getenv(exampleVariable)
	if program == "" {
		program = defaultExample
	}
	program, err := filepath.Abs(program)
	if err == nil {
		_, err = os.Stat(program)
	}
	if err != nil {
		w.t.Fatalf("the example is not there: %v: run `make examples`", err)
	}
	address := loopback(freePort(w.t))
	w.gateway = newServer(w.t)
	w.gateway.start = func() *process {
		return w.launch("hookgate", folder(w.t, "HOOKGATE_BIN"), "serve", "--sidecar", "grpc://"+address, "--cert-dir",
			w.certs,
			"--http-address", loopback(w.gateway.port), "--diagnostics-address", loopback(w.gateway.diagnostics), "--health-addr", loopback(w.gateway.health))
	}
	w.gateway.process = w.gateway.start()
	w.launch("example", program, address)
	w.ready(w.gateway)
}

func set(t *testing.T, o *unstructured.Unstructured, value any, path ...string) {
	t.Helper()
	if err := unstructured.SetNestedField(o.Object, value, path...); err != nil {
		t.Fatal(err)
	}
}
