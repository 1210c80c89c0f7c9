// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterctl

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The kinds that the tests look at.
var (
	providers = schema.GroupVersionKind{Group: "clusterctl.cluster.x-k8s.io", Version: "v1alpha3",
		Kind: "Provider"}
	deployments      = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	clusters         = schema.GroupVersionKind{Group: "cluster.x-k8s.io", Version: "v1beta2", Kind: "Cluster"}
	extensionConfigs = schema.GroupVersionKind{Group: "runtime.hookgate.dev", Version: "v1beta2",
		Kind: "ExtensionConfig"}
	extensionPolicies    = schema.GroupVersionKind{Group: "hookgate.dev", Version: "v1alpha1", Kind: "ExtensionPolicy"}
	handlerChains        = schema.GroupVersionKind{Group: "hookgate.dev", Version: "v1alpha1", Kind: "HandlerChain"}
	coreExtensionConfigs = schema.GroupVersionKind{Group: "runtime.cluster.x-k8s.io", Version: "v1beta2",
		Kind: "ExtensionConfig"}
)

// TestLifecycle installs and upgrades the gateway on two management clusters, moves Clusters from one to the other, and
// deletes it, as an operator would.
func TestLifecycle(t *testing.T) {
	for _, variable := range []string{clusterctlVariable, kustomizeVariable, releaseVariable, gatewayVariable, assetsVariable} {
		program(t, variable) // before anything starts
	}
	r := newRepository(t, true, "v0.1.0")
	servers := startServers(t, 2)
	first, second := servers[0], servers[1]
	for _, step := range []struct {
		name string
		test func(*testing.T)
	}{
		{"Init", func(t *testing.T) { testInit(t, r, first) }},
		{"Serve", func(t *testing.T) { testServe(t, first) }},
		{"UpgradeWithoutGap", func(t *testing.T) { testUpgradeWithoutGap(t, r, first) }},
		{"Upgrade", func(t *testing.T) { testUpgrade(t, r, first) }},
		{"Move", func(t *testing.T) { testMove(t, r, first, second) }},
		{"MoveRecords", func(t *testing.T) { testMoveRecords(t, r, first, second) }},
		{"Delete", func(t *testing.T) { testDelete(t, r, first) }},
		{"DeleteAll", func(t *testing.T) { testDeleteAll(t, r, second) }},
	} {
		if !t.Run(step.name, step.test) {
			return // those that follow need it
		}
	}
}

// clusterctlFor runs clusterctl on a management cluster, and fails the test if it fails.
func (r *repository) clusterctlFor(t *testing.T, s *server, args ...string) string {
	t.Helper()
	return r.must(t, []string{"KUBECONFIG=" + s.kubeconfig}, args...)
}

// install installs Cluster API core and the gateway. Nothing waits for Deployments, which never become available.
func install(t *testing.T, r *repository, s *server, version string) {
	t.Helper()
	r.clusterctlFor(t, s, "init", "--core", "cluster-api", "--bootstrap", "-", "--control-plane", "-",
		"--runtime-extension", "hookgate:"+version)
}

func testInit(t *testing.T, r *repository, s *server) {
	install(t, r, s, "v0.1.0")
	expectInstalled(t, r, s, "v0.1.0")

	images := r.clusterctlFor(t, s, "init", "list-images", "--runtime-extension", "hookgate")
	if want := image + ":v0.1.0\n"; images != want {
		t.Errorf("clusterctl init list-images: %q, want %q", images, want)
	}
	// The webhooks of Cluster API core have no server here.
	s.removeWebhooks(t)
	s.kubectl(t, "", "apply", "--server-side", "--validate=strict", "-f",
		filepath.Join(released(t, "v0.1.0"), "register.yaml"))
	if s.find(t, coreExtensionConfigs, "", "hookgate") == nil {
		t.Error("the gateway is not registered with Cluster API")
	}
}

// expectInstalled checks that all objects of a release exist, and that clusterctl has recorded it.
func expectInstalled(t *testing.T, r *repository, s *server, version string) {
	t.Helper()
	objects := decode(t, []byte(r.must(t, nil, "generate", "provider", "--runtime-extension", "hookgate:"+version)))
	for _, o := range objects {
		got := s.find(t, o.GroupVersionKind(), o.GetNamespace(), o.GetName())
		if got == nil {
			t.Errorf("there is no %s %s", o.GetKind(), o.GetName())
			continue
		}
		if got.GetDeletionTimestamp() != nil || got.GetLabels()["cluster.x-k8s.io/provider"] != providerLabel {
			t.Errorf("%s %s: deleted at %v, labels %v", o.GetKind(), o.GetName(), got.GetDeletionTimestamp(),
				got.GetLabels())
		}
	}
	deployment := s.find(t, deployments, namespace, "hookgate")
	if got := container(t, []*unstructured.Unstructured{deployment})["image"]; got != image+":"+version {
		t.Errorf("the image is %v, want the one of %s", got, version)
	}
	if replicas, _, err := unstructured.NestedInt64(deployment.Object, "spec", "replicas"); replicas != 2 ||
		err != nil {
		t.Errorf("there are %d replicas, want 2; %v", replicas, err)
	}
	expectRecord(t, s, version)
}

// expectRecord checks clusterctl's record of the gateway.
func expectRecord(t *testing.T, s *server, version string) {
	t.Helper()
	record := s.find(t, providers, namespace, providerLabel)
	if record == nil {
		t.Fatal("clusterctl has no record of the gateway")
	}
	want := []any{"hookgate", "RuntimeExtensionProvider", version}
	if diff := cmp.Diff(want, []any{record.Object["providerName"], record.Object["type"], record.Object["version"]}); diff != "" {
		t.Errorf("clusterctl's record (-want +got):\n%s", diff)
	}
}

// plan returns the version to which clusterctl would upgrade the gateway.
func plan(t *testing.T, r *repository, s *server) string {
	t.Helper()
	out := r.clusterctlFor(t, s, "upgrade", "plan")
	m := regexp.MustCompile(`(?m)^` + providerLabel + ` +` + namespace + ` +RuntimeExtensionProvider +(\S+) +(.+?) *$`).FindStringSubmatch(out)
	if m == nil {
		t.Fatalf("the gateway is not in the plan:\n%s", out)
	}
	return m[1] + " to " + m[2]
}

// testUpgradeWithoutGap follows the guide.
func testUpgradeWithoutGap(t *testing.T, r *repository, s *server) {
	if got := plan(t, r, s); got != "v0.1.0 to Already up to date" {
		t.Errorf("the plan is %s", got)
	}
	r.add(t, "v0.1.1")
	if got := plan(t, r, s); got != "v0.1.0 to v0.1.1" {
		t.Errorf("the plan is %s", got)
	}
	before := s.find(t, deployments, namespace, "hookgate")
	components := r.must(t, nil, "generate", "provider", "--runtime-extension", "hookgate:v0.1.1")
	commands := block(t, "generate provider --runtime-extension hookgate:v0.1.1 |")
	for _, command := range []string{"kubectl apply --server-side --force-conflicts -f -",
		"kubectl -n " + namespace + " patch " + s.resource(t, providers) + " " + providerLabel +
			` --type merge -p '{"version": "v0.1.1"}'`} {
		if !strings.Contains(commands, command) {
			t.Fatalf("%s does not show %q", guide, command)
		}
	}
	s.kubectl(t, components, "apply", "--server-side", "--force-conflicts", "-f", "-")
	s.kubectl(t, "", "-n", namespace, "patch", s.resource(t, providers), providerLabel, "--type", "merge", "-p",
		`{"version": "v0.1.1"}`)
	expectInstalled(t, r, s, "v0.1.1")
	if after := s.find(t, deployments, namespace, "hookgate"); after.GetUID() != before.GetUID() {
		t.Error("the Deployment is another one: its Pods were not replaced one by one")
	}
	if got := plan(t, r, s); got != "v0.1.1 to Already up to date" {
		t.Errorf("the plan is %s", got)
	}
}

func testUpgrade(t *testing.T, r *repository, s *server) {
	s.removeWebhooks(t)
	s.apply(t, extensionConfig("stays", "", "https://stays.example.com"))
	s.apply(t, extensionPolicy("stays", ""))
	s.apply(t, handlerChain("chain-stays", ""))
	r.add(t, "v0.1.2")
	if got := plan(t, r, s); got != "v0.1.1 to v0.1.2" {
		t.Errorf("the plan is %s", got)
	}
	r.clusterctlFor(t, s, "upgrade", "apply", "--runtime-extension", "hookgate:v0.1.2")
	expectInstalled(t, r, s, "v0.1.2")
	for kind, name := range map[schema.GroupVersionKind]string{
		extensionConfigs: "stays", extensionPolicies: "stays", handlerChains: "chain-stays",
	} {
		if s.find(t, kind, "", name) == nil {
			t.Errorf("the upgrade took the %s away", kind.Kind)
		}
	}
}

// testMove moves a Cluster together with the labelled objects, and nothing else.
func testMove(t *testing.T, r *repository, from, to *server) {
	const move = "clusterctl.cluster.x-k8s.io/move"
	install(t, r, to, "v0.1.2")
	// Webhooks have no server here.
	from.removeWebhooks(t)
	to.removeWebhooks(t)
	if !strings.Contains(block(t, "kubectl label"), "kubectl label "+from.resource(t, extensionConfigs)+" acme "+move+"=\n") {
		t.Errorf("%s does not show how to set the label %s", guide, move)
	}
	from.apply(t, extensionConfig("goes", move, "https://goes.example.com"))
	from.apply(t, extensionConfig("both", move, "https://from.example.com"))
	from.apply(t, extensionPolicy("goes", move))
	from.apply(t, handlerChain("chain-goes", move))
	to.apply(t, extensionConfig("both", "", "https://to.example.com"))
	from.status(t, extensionConfigs, "goes", `{"status": {"handlers": [{"name": "a.goes", "requestHook": {"apiVersion": "hooks.runtime.cluster.x-k8s.io/v1alpha1", "hook": "BeforeClusterCreate"}}]}}`)
	from.apply(t, map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": "team"}})
	from.apply(t, map[string]any{
		"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "metadata": map[string]any{"name": "moved", "namespace": "team"},
		"spec": map[string]any{"infrastructureRef": map[string]any{"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "AnyCluster", "name": "moved"}},
	})
	from.kubectl(t, "", "-n", "team", "patch", "clusters.cluster.x-k8s.io", "moved", "--subresource=status", "--type=merge", "-p", `{"status": {
		"initialization": {"infrastructureProvisioned": true, "controlPlaneInitialized": true},
		"conditions": [{"type": "ControlPlaneInitialized", "status": "True", "reason": "Initialized", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}}`)

	r.clusterctlFor(t, from, "move", "--namespace", "team", "--to-kubeconfig", to.kubeconfig)

	got := map[string]string{}
	for name, s := range map[string]*server{"from": from, "to": to} {
		if s.find(t, clusters, "team", "moved") != nil {
			got["Cluster moved "+name] = "there"
		}
		for _, e := range []string{"stays", "goes", "both"} {
			if o := s.find(t, extensionConfigs, "", e); o != nil {
				url, _, err := unstructured.NestedString(o.Object, "spec", "clientConfig", "url")
				if err != nil {
					t.Fatal(err)
				}
				got["ExtensionConfig "+e+" "+name] = url
			}
			if s.find(t, extensionPolicies, "", e) != nil {
				got["ExtensionPolicy "+e+" "+name] = "there"
			}
			if s.find(t, handlerChains, "", "chain-"+e) != nil {
				got["HandlerChain "+e+" "+name] = "there"
			}
		}
	}
	want := map[string]string{
		"Cluster moved to":           "there",
		"ExtensionConfig stays from": "https://stays.example.com",
		"ExtensionConfig goes from":  "https://goes.example.com",
		"ExtensionConfig goes to":    "https://goes.example.com",
		"ExtensionConfig both from":  "https://from.example.com",
		"ExtensionConfig both to":    "https://to.example.com",
		"ExtensionPolicy stays from": "there",
		"ExtensionPolicy goes from":  "there",
		"ExtensionPolicy goes to":    "there",
		"HandlerChain stays from":    "there",
		"HandlerChain goes from":     "there",
		"HandlerChain goes to":       "there",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("after the move (-want +got):\n%s", diff)
	}
	for name, s := range map[string]*server{"from": from, "to": to} {
		handlers, _, err := unstructured.NestedSlice(s.find(t, extensionConfigs, "", "goes").Object, "status",
			"handlers")
		if err != nil || (len(handlers) > 0) != (name == "from") {
			t.Errorf("%s: the status has %d handlers, %v", name, len(handlers), err)
		}
	}
}

// testDelete deletes the gateway and keeps the registrations.
func testDelete(t *testing.T, r *repository, s *server) {
	objects := decode(t, []byte(r.must(t, nil, "generate", "provider", "--runtime-extension", "hookgate:v0.1.2")))
	r.clusterctlFor(t, s, "delete", "--runtime-extension", "hookgate")
	for _, o := range objects {
		stays := o.GetKind() == "CustomResourceDefinition" || o.GetKind() == "Namespace"
		if got := s.find(t, o.GroupVersionKind(), o.GetNamespace(), o.GetName()); (got != nil && got.GetDeletionTimestamp() == nil) != stays {
			t.Errorf("%s %s: there afterwards: %t, want %t", o.GetKind(), o.GetName(), got != nil, stays)
		}
	}
	if s.find(t, providers, namespace, providerLabel) != nil {
		t.Error("clusterctl still has a record of the gateway")
	}
	if s.find(t, providers, "capi-system", "cluster-api") == nil {
		t.Error("Cluster API core is gone too")
	}
	for kind, name := range map[schema.GroupVersionKind]string{
		extensionConfigs: "stays", extensionPolicies: "stays", handlerChains: "chain-stays",
	} {
		if s.find(t, kind, "", name) == nil {
			t.Errorf("the %s is gone", kind.Kind)
		}
	}
}

// testDeleteAll deletes everything, once no registration is left.
func testDeleteAll(t *testing.T, r *repository, s *server) {
	all := []string{"delete", "--runtime-extension", "hookgate", "--include-crd", "--include-namespace"}
	_, stderr, err := r.clusterctl(t, []string{"KUBECONFIG=" + s.kubeconfig}, all...)
	if err == nil || !strings.Contains(stderr, "found existing objects for provider CRDs") {
		t.Errorf("with ExtensionConfigs, it says: %v, %s", err, stderr)
	}
	if s.find(t, deployments, namespace, "hookgate") == nil {
		t.Error("it deleted the gateway although it said no")
	}
	for _, kind := range []schema.GroupVersionKind{extensionConfigs, extensionPolicies, handlerChains} {
		s.kubectl(t, "", "delete", s.resource(t, kind), "--all")
	}
	r.clusterctlFor(t, s, all...)
	for _, o := range decode(t, []byte(r.must(t, nil, "generate", "provider", "--runtime-extension", "hookgate:v0.1.2"))) {
		if o.GetNamespace() != "" {
			continue // the namespace's controller deletes it
		}
		s.gone(t, o.GroupVersionKind(), o.GetName())
	}
}

// block returns the guide's shell block that contains text.
func block(t *testing.T, text string) string {
	t.Helper()
	for _, m := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(string(read(t, guide)), -1) {
		if strings.Contains(m[1], text) {
			return m[1]
		}
	}
	t.Fatalf("%s shows no command with %q", guide, text)
	return ""
}

// extensionConfig returns an ExtensionConfig of the gateway's group, with a label unless that is empty.
func extensionConfig(name, label, url string) map[string]any {
	return map[string]any{
		"apiVersion": "runtime.hookgate.dev/v1beta2", "kind": "ExtensionConfig", "metadata": metadata(name, label),
		"spec": map[string]any{"clientConfig": map[string]any{"url": url}},
	}
}

func extensionPolicy(name, label string) map[string]any {
	return map[string]any{
		"apiVersion": "hookgate.dev/v1alpha1", "kind": "ExtensionPolicy", "metadata": metadata(name, label),
		"spec": map[string]any{"targetRef": map[string]any{"name": name}, "timeoutSeconds": 5},
	}
}

func handlerChain(name, label string) map[string]any {
	return map[string]any{
		"apiVersion": "hookgate.dev/v1alpha1", "kind": "HandlerChain", "metadata": metadata(name, label),
		"spec": map[string]any{"hook": "BeforeClusterCreate", "steps": []any{map[string]any{"handler": "a.stays"}}},
	}
}

func metadata(name, label string) map[string]any {
	m := map[string]any{"name": name}
	if label != "" {
		m["labels"] = map[string]any{label: ""}
	}
	return m
}

// kubectl runs kubectl on a management cluster.
func (s *server) kubectl(t *testing.T, stdin string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), filepath.Join(program(t, assetsVariable), "kubectl"),
		append([]string{"--kubeconfig", s.kubeconfig}, args...)...)
	cmd.Stdin = strings.NewReader(stdin)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}
