// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterctl

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	infrastructureLabel = "infrastructure-hookgate"
	infrastructureFile  = "infrastructure-components.yaml"
)

// addInfrastructure adds the infrastructure provider of a release, with its templates.
func (r *repository) addInfrastructure(t testing.TB, version string) {
	t.Helper()
	dir := released(t, version)
	files, err := filepath.Glob(filepath.Join(dir, "cluster*.yaml"))
	if err != nil || len(files) != 4 {
		t.Fatalf("the release has %d templates, %v", len(files), err)
	}
	for _, path := range append(files, filepath.Join(dir, infrastructureFile), filepath.Join(dir, "metadata.yaml")) {
		r.write(t, infrastructureLabel, version, filepath.Base(path), read(t, path))
	}
	known, entry := r.config["providers"].([]provider), provider{
		Name: "hookgate", Type: "InfrastructureProvider", URL: r.url(infrastructureLabel, "latest", infrastructureFile),
	}
	if !slices.Contains(known, entry) {
		r.config["providers"] = append(known, entry)
	}
}

// TestInfrastructure installs the infrastructure provider beside the gateway, makes Clusters from its templates, moves
// one to another management cluster, and upgrades and deletes the provider, as an operator would.
func TestInfrastructure(t *testing.T) {
	for _, variable := range []string{clusterctlVariable, kustomizeVariable, releaseVariable, assetsVariable} {
		program(t, variable) // before anything starts
	}
	r := newRepository(t, true, "v0.1.0")
	r.addInfrastructure(t, "v0.1.0")
	servers := startServers(t, 2)
	first, second := servers[0], servers[1]
	for _, step := range []struct {
		name string
		test func(*testing.T)
	}{
		{"Init", func(t *testing.T) { testInfrastructureInit(t, r, first) }},
		{"Templates", func(t *testing.T) { testTemplates(t, r, first) }},
		{"Move", func(t *testing.T) { testMoveInfrastructure(t, r, first, second) }},
		{"Upgrade", func(t *testing.T) { testUpgradeInfrastructure(t, r, first) }},
		{"Delete", func(t *testing.T) { testDeleteInfrastructure(t, r, first) }},
	} {
		if !t.Run(step.name, step.test) {
			return // those that follow need it
		}
	}
}

// installAll installs Cluster API with its kubeadm providers, the gateway, and the infrastructure provider.
func installAll(t *testing.T, r *repository, s *server) {
	t.Helper()
	r.clusterctlFor(t, s, "init", "--core", "cluster-api", "--bootstrap", "kubeadm", "--control-plane", "kubeadm",
		"--runtime-extension", "hookgate:v0.1.0", "--infrastructure", "hookgate:v0.1.0")
	s.removeWebhooks(t) // nothing serves them here
}

func testInfrastructureInit(t *testing.T, r *repository, s *server) {
	installAll(t, r, s)
	for _, o := range decode(t, []byte(r.must(t, nil, "generate", "provider", "--infrastructure", "hookgate:v0.1.0"))) {
		if o.GetKind() == "ValidatingWebhookConfiguration" {
			continue // removed
		}
		if s.find(t, o.GroupVersionKind(), o.GetNamespace(), o.GetName()) == nil {
			t.Errorf("there is no %s %s", o.GetKind(), o.GetName())
		}
	}
	expectInfrastructure(t, s, "v0.1.0")
	expectRecord(t, s, "v0.1.0")
	if s.find(t, deployments, namespace, "hookgate") == nil {
		t.Error("the gateway, in the same namespace, is gone")
	}
	images := r.clusterctlFor(t, s, "init", "list-images", "--infrastructure", "hookgate")
	if want := image + ":v0.1.0\n"; images != want {
		t.Errorf("clusterctl init list-images: %q, want %q", images, want)
	}
}

// expectInfrastructure checks clusterctl's record of the infrastructure provider, and its image.
func expectInfrastructure(t *testing.T, s *server, version string) {
	t.Helper()
	record := s.find(t, providers, namespace, infrastructureLabel)
	if record == nil {
		t.Fatal("clusterctl has no record of the infrastructure provider")
	}
	want := []any{"hookgate", "InfrastructureProvider", version}
	if diff := cmp.Diff(want, []any{record.Object["providerName"], record.Object["type"], record.Object["version"]}); diff != "" {
		t.Errorf("clusterctl's record (-want +got):\n%s", diff)
	}
	deployment := s.find(t, deployments, namespace, "hookgate-infrastructure")
	if deployment == nil {
		t.Fatal("there is no Deployment of the infrastructure provider")
	}
	if got := container(t, []*unstructured.Unstructured{deployment})["image"]; got != image+":"+version {
		t.Errorf("the image is %v, want the one of %s", got, version)
	}
}

// testTemplates applies what `clusterctl generate cluster` makes of each template; the API server validates it
// strictly.
func testTemplates(t *testing.T, r *repository, s *server) {
	s.apply(t, map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": "team"}})
	for flavor, want := range map[string][]string{
		"": {
			"Cluster a", "HookgateCluster a", "HookgateMachineTemplate a-control-plane", "HookgateMachineTemplate a-md-0",
			"KubeadmConfigTemplate a-md-0", "KubeadmControlPlane a-control-plane", "MachineDeployment a-md-0",
		},
		"machinepool": {
			"Cluster a-machinepool", "HookgateCluster a-machinepool", "HookgateMachinePool a-machinepool-mp-0",
			"HookgateMachineTemplate a-machinepool-control-plane", "KubeadmConfig a-machinepool-mp-0",
			"KubeadmControlPlane a-machinepool-control-plane", "MachinePool a-machinepool-mp-0",
		},
		"topology": {
			"Cluster a-topology", "ClusterClass hookgate", "HookgateClusterTemplate hookgate",
			"HookgateMachinePoolTemplate hookgate-worker", "HookgateMachineTemplate hookgate-control-plane",
			"HookgateMachineTemplate hookgate-worker", "KubeadmConfigTemplate hookgate-worker",
			"KubeadmControlPlaneTemplate hookgate",
		},
	} {
		t.Run("Flavor"+flavor, func(t *testing.T) {
			env := []string{
				"KUBECONFIG=" + s.kubeconfig, "HOOKGATE_INFRASTRUCTURE_CLASS=rack",
				"HOOKGATE_WORKER_PARAMETERS=size: large, disk: 40",
			}
			name := strings.TrimSuffix("a-"+flavor, "-")
			manifest := r.must(t, env, "generate", "cluster", name, "--infrastructure", "hookgate:v0.1.0",
				"--flavor", flavor, "--target-namespace", "team", "--kubernetes-version", "v1.34.0",
				"--control-plane-machine-count", "3", "--worker-machine-count", "2")
			if diff := cmp.Diff(want, names(decode(t, []byte(manifest)))); diff != "" {
				t.Errorf("objects (-want +got):\n%s", diff)
			}
			s.kubectl(t, manifest, "apply", "--server-side", "--validate=strict", "-f", "-")
		})
	}
	if t.Failed() {
		return
	}
	cluster := s.find(t, infrastructure("HookgateCluster"), "team", "a")
	if class, _, _ := unstructured.NestedString(cluster.Object, "spec", "infrastructureClassName"); class != "rack" {
		t.Errorf("the class is %q", class)
	}
	worker := s.find(t, infrastructure("HookgateMachineTemplate"), "team", "a-md-0")
	if size, _, _ := unstructured.NestedString(worker.Object, "spec", "template", "spec", "parameters", "size"); size != "large" {
		t.Errorf("the parameters of workers are %v", worker.Object["spec"])
	}
}

// testMoveInfrastructure moves a Cluster with its infrastructure. What identifies it outside goes along, although UIDs
// change; the class, which belongs to the management cluster, does not.
func testMoveInfrastructure(t *testing.T, r *repository, from, to *server) {
	installAll(t, r, to)
	class := map[string]any{
		"apiVersion": "infrastructure.hookgate.dev/v1alpha1", "kind": "InfrastructureClass",
		"metadata": map[string]any{"name": "rack"}, "spec": map[string]any{"extensionRef": map[string]any{"name": "acme"}},
	}
	from.apply(t, class)
	from.apply(t, map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": "moves"}})
	from.apply(t, map[string]any{
		"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster",
		"metadata": map[string]any{"name": "moved", "namespace": "moves"},
		"spec": map[string]any{"infrastructureRef": map[string]any{
			"apiGroup": "infrastructure.hookgate.dev", "kind": "HookgateCluster", "name": "moved",
		}},
	})
	owner := map[string]any{
		"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "name": "moved",
		"uid": string(from.find(t, clusters, "moves", "moved").GetUID()),
	}
	from.apply(t, map[string]any{
		"apiVersion": "infrastructure.hookgate.dev/v1alpha1", "kind": "HookgateCluster",
		"metadata": map[string]any{
			"name": "moved", "namespace": "moves", "ownerReferences": []any{owner},
			"finalizers": []any{"infrastructure.hookgate.dev/hookgatecluster"},
		},
		"spec": map[string]any{"infrastructureClassName": "rack", "externalID": "moved-k3j9x"},
	})
	from.kubectl(t, "", "-n", "moves", "patch", "clusters.cluster.x-k8s.io", "moved", "--subresource=status", "--type=merge", "-p", `{"status": {
		"initialization": {"infrastructureProvisioned": true, "controlPlaneInitialized": true},
		"conditions": [{"type": "ControlPlaneInitialized", "status": "True", "reason": "Initialized", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}}`)

	from.apply(t, map[string]any{
		"apiVersion": "infrastructure.hookgate.dev/v1alpha1", "kind": "HookgateClusterIdentity",
		"metadata": map[string]any{"name": "team-a", "finalizers": []any{"infrastructure.hookgate.dev/hookgateclusteridentity"}},
		"spec": map[string]any{
			"credentialsRef": map[string]any{"name": "team-a"}, "allowedNamespaces": map[string]any{"names": []any{"moves"}},
		},
	})
	identity := from.find(t, infrastructure("HookgateClusterIdentity"), "", "team-a")
	from.apply(t, map[string]any{
		"apiVersion": "v1", "kind": "Secret", "stringData": map[string]any{"token": "secret"},
		"metadata": map[string]any{
			"name": "team-a", "namespace": namespace, "ownerReferences": []any{map[string]any{
				"apiVersion": identity.GetAPIVersion(), "kind": identity.GetKind(), "name": "team-a", "uid": string(identity.GetUID()),
			}},
		},
	})

	r.clusterctlFor(t, from, "move", "--namespace", "moves", "--to-kubeconfig", to.kubeconfig)

	there := to.find(t, infrastructure("HookgateClusterIdentity"), "", "team-a")
	secret := to.find(t, schema.GroupVersionKind{Version: "v1", Kind: "Secret"}, namespace, "team-a")
	if there == nil || secret == nil || len(secret.GetOwnerReferences()) != 1 || secret.GetOwnerReferences()[0].UID != there.GetUID() {
		t.Errorf("the identity %v and its Secret %v were not moved together", there, secret)
	}
	for kind, ns := range map[schema.GroupVersionKind]string{identity.GroupVersionKind(): "", {Version: "v1", Kind: "Secret"}: namespace} {
		if from.find(t, kind, ns, "team-a") == nil {
			t.Errorf("the %s is gone where other Clusters may use it", kind.Kind)
		}
	}

	moved := to.find(t, infrastructure("HookgateCluster"), "moves", "moved")
	if moved == nil {
		t.Fatal("the HookgateCluster was not moved")
	}
	if id, _, _ := unstructured.NestedString(moved.Object, "spec", "externalID"); id != "moved-k3j9x" {
		t.Errorf("the externalID is %q", id)
	}
	if finalizers := moved.GetFinalizers(); len(finalizers) != 1 {
		t.Errorf("the finalizers are %q", finalizers)
	}
	if from.find(t, infrastructure("HookgateCluster"), "moves", "moved") != nil {
		t.Error("the HookgateCluster is still in the first management cluster")
	}
	if from.find(t, infrastructure("InfrastructureClass"), "", "rack") == nil ||
		to.find(t, infrastructure("InfrastructureClass"), "", "rack") != nil {
		t.Error("the class was moved")
	}
}

func testUpgradeInfrastructure(t *testing.T, r *repository, s *server) {
	r.addInfrastructure(t, "v0.1.1")
	s.removeWebhooks(t)
	r.clusterctlFor(t, s, "upgrade", "apply", "--infrastructure", "hookgate:v0.1.1")
	expectInfrastructure(t, s, "v0.1.1")
	expectRecord(t, s, "v0.1.0")
	if s.find(t, infrastructure("HookgateCluster"), "team", "a") == nil {
		t.Error("the upgrade took a HookgateCluster away")
	}
}

// testDeleteInfrastructure deletes the provider; the gateway in the same namespace, and what Clusters consist of, stays.
func testDeleteInfrastructure(t *testing.T, r *repository, s *server) {
	objects := decode(t, []byte(r.must(t, nil, "generate", "provider", "--infrastructure", "hookgate:v0.1.1")))
	r.clusterctlFor(t, s, "delete", "--infrastructure", "hookgate")
	for _, o := range objects {
		stays := o.GetKind() == "CustomResourceDefinition" || o.GetKind() == "Namespace"
		if got := s.find(t, o.GroupVersionKind(), o.GetNamespace(), o.GetName()); (got != nil && got.GetDeletionTimestamp() == nil) != stays {
			t.Errorf("%s %s: there afterwards: %t, want %t", o.GetKind(), o.GetName(), got != nil, stays)
		}
	}
	if s.find(t, providers, namespace, infrastructureLabel) != nil {
		t.Error("clusterctl still has a record of the provider")
	}
	for _, name := range []string{"hookgate"} {
		if s.find(t, deployments, namespace, name) == nil {
			t.Errorf("the Deployment %s is gone, too", name)
		}
	}
	expectRecord(t, s, "v0.1.0")
	if s.find(t, infrastructure("HookgateCluster"), "team", "a") == nil {
		t.Error("a HookgateCluster is gone")
	}
}

func infrastructure(kind string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "infrastructure.hookgate.dev", Version: "v1alpha1", Kind: kind}
}
