// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// guard is the gateway's name for the extension that reads Clusters as v1.12 has them.
const guard = "guard"

// strictPatch is the patch of the ClusterClass that comes from a handler of guard which decodes templates with the types
// of v1.12, and refuses unknown members.
var strictPatch = map[string]any{"name": "strict", "external": map[string]any{
	"generatePatchesExtension":  "strict-patches--" + guard + "." + gateway,
	"validateTopologyExtension": "strict-topology--" + guard + "." + gateway,
}}

// TestExtensionsOfV112 runs a Cluster with extensions that were built with Cluster API v1.12: its own test extension,
// and one that reads the Cluster, and decodes its templates strictly. Without a statement of what they understand, the
// Cluster cannot be created: first for the objects of requests, then for their unknown members. Then policies state it.
func TestExtensionsOfV112(t *testing.T) {
	w := begin(t, true)
	say := w.logf
	w.startHub(filepath.Join(folder(t, "HOOKGATE_SKEW_BIN"), "test-extension"))
	record := w.startGuard()
	w.register(map[string]any{})
	w.registerGateway(gateway)
	say("Cluster API has discovered the gateway, and through it two extensions of v1.12")

	for _, o := range read(t, "testdata/clusterclass.yaml") {
		if o.GetKind() == "ClusterClass" {
			patches, _, _ := unstructured.NestedSlice(o.Object, "spec", "patches")
			set(t, o, append(patches, strictPatch), "spec", "patches")
		}
		w.create(o)
	}
	w.eventually("the ClusterClass has the variables of the extension", func() (string, bool) {
		labels, ok := w.variableLabels("imageRepository")
		return fmt.Sprint(labels), ok
	})
	if labels, _ := w.variableLabels("imageRepository"); len(labels) != 0 {
		t.Errorf("without a policy, Cluster API reads the metadata of the variable: %v", labels)
	}
	cluster := read(t, "testdata/cluster.yaml")[0]
	set(t, cluster, map[string]any{"nodeDrainTimeoutSeconds": int64(90), "nodeDeletionTimeoutSeconds": int64(20)},
		"spec", "topology", "controlPlane", "deletion")
	set(t, cluster, map[string]any{
		"enabled": true,
		"checks": map[string]any{
			"nodeStartupTimeoutSeconds": int64(900),
			"unhealthyNodeConditions":   []any{map[string]any{"type": "Ready", "status": "Unknown", "timeoutSeconds": int64(300)}},
		},
	}, "spec", "topology", "controlPlane", "healthCheck")
	w.create(cluster)
	const refusal = `ClusterClass "" is not allowed`
	w.eventually("the extension refuses the Cluster, because it sees no class", func() (string, bool) {
		message := w.topologyMessage()
		return message, strings.Contains(message, refusal)
	})
	if c := w.cluster(); c.Spec.ControlPlaneRef.IsDefined() || c.Spec.InfrastructureRef.IsDefined() {
		t.Error("the Cluster was refused, and has its control plane or its infrastructure")
	}
	say("without a policy, creation is blocked: %s", refusal)

	w.understand(guard, "", "v1beta1")
	w.understand(upstream, "", "v1beta1")
	for _, hook := range []string{"GenerateUpgradePlan", "CanUpdateMachine", "CanUpdateMachineSet", "UpdateMachine"} {
		w.understand(upstream, hooks[hook], "v1beta2")
	}
	const unknown = `unknown field "metadata"`
	w.eventually("the extension refuses a template, because its types lack a member", func() (string, bool) {
		message := w.topologyMessage()
		return message, strings.Contains(message, "strict-patches--"+guard) && strings.Contains(message, unknown)
	})
	if c := w.cluster(); c.Spec.ControlPlaneRef.IsDefined() || c.Spec.InfrastructureRef.IsDefined() {
		t.Error("the templates were refused, and the Cluster has its control plane or its infrastructure")
	}
	say("without the release in its policy, creation is blocked: %s", unknown)

	w.stateRelease(guard, "v1.12")
	w.settled(oldVersion, 4)
	w.patchedStrictly()
	say("with policies, the Cluster runs %s", oldVersion)
	w.sawAll(record, "AfterControlPlaneInitialized")

	w.change("version", func(c *clusterv1.Cluster) { c.Spec.Topology.Version = newVersion })
	w.settled(newVersion, 4)
	say("the Cluster runs %s", newVersion)
	w.sawAll(record, "BeforeClusterUpgrade")
	w.rediscoverVariables()
	w.eventually("Cluster API reads the metadata of the extension's variable", func() (string, bool) {
		labels, _ := w.variableLabels("imageRepository")
		return fmt.Sprint(labels), maps.Equal(labels, map[string]string{"objects": "DockerCluster"})
	})

	if err := w.Delete(w.ctx, w.cluster()); err != nil {
		t.Fatalf("delete Cluster: %v", err)
	}
	w.gone()
	say("the Cluster is gone")

	// From the refusals on, no call failed.
	calls := w.gateway.scrape(t, "hookgate_handler_calls_total")
	lines := []string{fmt.Sprintf("%-30s %10s %10s", "hook", upstream, guard)}
	for _, hook := range slices.Sorted(maps.Keys(hooks)) {
		of := func(extension string) (sum int) {
			for _, s := range calls {
				if s.labels["hook"] == hook && strings.HasSuffix(s.labels["handler"], "."+extension) {
					sum += s.value
				}
			}
			return sum
		}
		lines = append(lines, fmt.Sprintf("%-30s %10d %10d", hook, of(upstream), of(guard)))
		if total(calls, "hook", hook) == 0 && hook != "UpdateMachine" { // the extension is configured to refuse updates in place
			t.Errorf("%s was not called", hook)
		}
	}
	t.Logf("calls:\n%s", strings.Join(lines, "\n"))
	for _, s := range calls {
		refused := s.labels["hook"] == "BeforeClusterCreate" || s.labels["handler"] == "strict-patches."+guard
		if o := s.labels["outcome"]; o != "success" && !refused {
			t.Errorf("%d calls of %s by %s had outcome %s", s.value, s.labels["hook"], s.labels["handler"], o)
		}
	}
}

// startGuard starts the extension that reads Clusters, and returns the folder to which it writes them.
func (w *fixture) startGuard() string {
	w.t.Helper()
	record, port := w.t.TempDir(), freePort(w.t)
	w.launch("guard", filepath.Join(folder(w.t, "HOOKGATE_SKEW_BIN"), "extension"), "--guard", "--record", record,
		"--port", strconv.Itoa(port), "--cert-dir", w.certs)
	w.registerExtension(guard, port, map[string]any{"classes": "memory"})
	return record
}

// understand makes a policy that says which objects the handlers of an extension understand, or one of them.
func (w *fixture) understand(extension, handler, version string) {
	w.t.Helper()
	target := map[string]any{"name": extension}
	if handler != "" {
		target["handler"] = handler
	}
	p := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"targetRef": target,
		"clusterAPIVersion": version}}}
	p.SetAPIVersion("hookgate.dev/v1alpha1")
	p.SetKind("ExtensionPolicy")
	p.SetName(strings.TrimSuffix(extension+"-"+handler, "-"))
	w.create(p)
}

// stateRelease adds to the policy of an extension the release of Cluster API whose requests it understands.
func (w *fixture) stateRelease(extension, release string) {
	w.t.Helper()
	p := w.get("hookgate.dev/v1alpha1", "ExtensionPolicy", "", extension)
	set(w.t, p, release, "spec", "clusterAPIRelease")
	if err := w.Update(w.ctx, p); err != nil {
		w.t.Fatalf("change ExtensionPolicy: %v", err)
	}
}

// patchedStrictly checks that the control plane has the patch of the strict handler and, although that wrote all of
// spec.template without them, the labels of the topology.
func (w *fixture) patchedStrictly() {
	w.t.Helper()
	list := &controlplanev1.KubeadmControlPlaneList{}
	if err := w.List(w.ctx, list, client.InNamespace(namespace)); err != nil || len(list.Items) != 1 {
		w.t.Fatalf("list control planes: %d, %v", len(list.Items), err)
	}
	cp := &list.Items[0]
	commands := cp.Spec.KubeadmConfigSpec.PreKubeadmCommands
	if _, owned := cp.Labels[clusterv1.ClusterTopologyOwnedLabel]; !owned || !slices.Equal(commands, []string{"echo decoded by v1.12"}) {
		w.t.Errorf("the control plane has the commands %q and the labels %v", commands, cp.Labels)
	}
}

// variableLabels returns the labels that Cluster API read of a variable of the extension, and whether it knows the
// variable.
func (w *fixture) variableLabels(name string) (map[string]string, bool) {
	w.t.Helper()
	class := &clusterv1.ClusterClass{}
	if err := w.Get(w.ctx, client.ObjectKey{Namespace: namespace, Name: "memory"}, class); err != nil {
		w.t.Fatalf("get ClusterClass: %v", err)
	}
	for _, v := range class.Status.Variables {
		if v.Name == name {
			return v.Definitions[0].DeprecatedV1Beta1Metadata.Labels, true // what v1.14 has for what v1.12 sends
		}
	}
	return nil, false
}

// rediscoverVariables makes Cluster API ask for variables again: it remembers answers by the settings that it asks
// with.
func (w *fixture) rediscoverVariables() {
	w.t.Helper()
	class := &clusterv1.ClusterClass{}
	if err := w.Get(w.ctx, client.ObjectKey{Namespace: namespace, Name: "memory"}, class); err != nil {
		w.t.Fatalf("get ClusterClass: %v", err)
	}
	before := class.DeepCopy()
	class.Spec.Patches[0].External.Settings = map[string]string{"ask": "again"}
	if err := w.Patch(w.ctx, class, client.MergeFrom(before)); err != nil {
		w.t.Fatalf("change ClusterClass: %v", err)
	}
}

// sawAll compares the Cluster that the extension decoded for a hook with the Cluster as Cluster API itself has it in
// v1beta1.
func (w *fixture) sawAll(record, hook string) {
	w.t.Helper()
	raw, err := os.ReadFile(filepath.Join(record, hook+".json"))
	if err != nil {
		w.t.Fatalf("the extension was not called for %s: %v", hook, err)
	}
	var got map[string]any
	if err := json.Unmarshal(raw, &got); err != nil {
		w.t.Fatal(err)
	}
	want := &unstructured.Unstructured{}
	want.SetGroupVersionKind(schema.GroupVersionKind{Group: clusterv1.GroupVersion.Group, Version: "v1beta1",
		Kind: "Cluster"})
	if err := w.Get(w.ctx, clusterKey, want); err != nil {
		w.t.Fatalf("get Cluster in v1beta1: %v", err)
	}
	plain := map[string]any{}
	if raw, err := json.Marshal(want.Object); err != nil {
		w.t.Fatal(err)
	} else if err := json.Unmarshal(raw, &plain); err != nil { // numbers as encoding/json has them
		w.t.Fatal(err)
	}
	for _, member := range []string{"apiVersion", "kind", "spec"} {
		if diff := cmp.Diff(plain[member], got[member]); diff != "" {
			w.t.Errorf("%s: %s of the Cluster differs from Cluster API's own in v1beta1 (-Cluster API +extension):\n%s",
				hook, member, diff)
		}
	}
}
