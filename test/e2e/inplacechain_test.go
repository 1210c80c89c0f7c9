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
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// untouched is how long a blocked change is observed.
const untouched = 2 * time.Minute

// TestChainInPlace updates a control plane and the Machines of a MachineDeployment in place, half of which one extension
// does, and half another. That the first can do it, HookRules say in its place.
func TestChainInPlace(t *testing.T) {
	w := begin(t, true)
	u := &halves{}
	d := w.startDirectory(map[string]int{"files": w.serve(w.updates(u, "files")), "commands": w.half(u, "commands", "preKubeadmCommands")})
	d.inPlaceChains("Replace", "files", "commands")
	d.allowFilesByRules()
	d.discovered()
	w.registerGateway(gateway)
	w.createInPlaceClass()
	w.create(w.inPlaceCluster("c", 3, 0, deployment("md", 2, "RollingUpdate")))
	w.settled(oldVersion, 5)
	before := w.machineUIDs(clusterKey.Name)
	w.logf("the Cluster runs")

	w.setVariables(clusterKey.Name, map[string]string{"file": "changed", "command": "changed"})
	w.eventuallyWithin(stepPatience, "all Machines have the new file and the new command", func() (string, bool) {
		return w.configsHave(clusterKey.Name, 5, func(s bootstrapv1.KubeadmConfigSpec) bool {
			return s.Files[0].Content == "changed" && s.PreKubeadmCommands[0] == "changed" && s.PostKubeadmCommands[0] == "old"
		})
	})
	w.settled(oldVersion, 5)
	if after := w.machineUIDs(clusterKey.Name); !maps.Equal(before, after) {
		t.Errorf("the Machines were %v and are %v: they were not updated in place", before, after)
	}
	// Each call begins with the first step. It is done before the second one begins.
	want := "files waits, files done, commands waits, files done, commands done"
	for name := range before {
		if got := strings.Join(u.updates(name), ", "); got != want {
			t.Errorf("Machine %s: calls of UpdateMachine were %s; want %s", name, got, want)
		}
	}
	sent := append(w.core.scrape(t, callerMetric), w.controlPlane.scrape(t, callerMetric)...)
	for _, hook := range []string{"CanUpdateMachine", "CanUpdateMachineSet", "UpdateMachine"} {
		if all, good := total(sent, "hook", hook), total(sent, "hook", hook, "code", "200", "status", "Success"); all == 0 || all != good {
			t.Errorf("Cluster API called %s %d times, %d of them with success", hook, all, good)
		}
	}
}

// TestChainBlocks changes what no step of the chains covers, with onPartialCoverage: Block. A control plane of three and
// a MachineDeployment stay as they are for two minutes, and are updated in place when a step is added that covers the
// rest. What Block does not stop, because Cluster API does not ask, goes on: a control plane of one that may surge, one
// that is to be larger, a Machine that is marked for deletion, and a MachineDeployment whose Machines are replaced when
// somebody deletes them.
func TestChainBlocks(t *testing.T) {
	w := begin(t, true)
	u := &halves{}
	d := w.startDirectory(map[string]int{"files": w.half(u, "files", "files"), "commands": w.half(u, "commands", "preKubeadmCommands")})
	d.inPlaceChains("Block", "files", "commands")
	d.discovered()
	w.registerGateway(gateway)
	w.createInPlaceClass()
	w.create(w.inPlaceCluster("c", 3, 0, deployment("md", 2, "RollingUpdate"), deployment("od", 1, "OnDelete")))
	w.create(w.inPlaceCluster("s", 1, 1))
	w.settled(oldVersion, 7)
	old := w.machineUIDs("s")
	w.logf("both Clusters run")

	before, onDelete := w.machineUIDs(clusterKey.Name, outsideDeployment(t, "od")), w.machineUIDs(clusterKey.Name, inDeployment("od"))
	change := map[string]string{"file": "changed", "last": "changed"}
	w.setVariables(clusterKey.Name, change)
	w.setVariables("s", change)
	asked := func(hook, chain string) int {
		return total(w.gateway.scrape(t, "hookgate_handler_calls_total"), "hook", hook, "handler", chain)
	}
	w.eventually("Cluster API has asked for both, and was told what is not covered", func() (string, bool) {
		inKCP := w.logged("kubeadm-control-plane", "no step covers /bootstrapConfig/spec/clusterConfiguration/imageRepository, /bootstrapConfig/spec/postKubeadmCommands")
		inMD := w.logged("core", "no step covers /bootstrapConfigTemplate/spec/template/spec/postKubeadmCommands")
		return fmt.Sprintf("%v and %v; it asked %d and %d times", inKCP, inMD, asked("CanUpdateMachine", "machine-in-place"), asked("CanUpdateMachineSet", "machine-set-in-place")), inKCP && inMD
	})
	w.logf("both changes are blocked")

	// Nothing may happen to these Machines. Nor does Cluster API make one of three control plane Machines now, or three of
	// two workers.
	w.scale(clusterKey.Name, 1, 3)
	w.deleteMachines(onDelete)
	replaced, surged, written := false, false, false
	began, rounds := time.Now(), 0
	w.eventuallyWithin(untouched+time.Minute, "two minutes have passed", func() (string, bool) {
		w.t.Helper()
		now := w.machineUIDs(clusterKey.Name, outsideDeployment(t, "od"))
		others := w.machineUIDs(clusterKey.Name, inDeployment("od"))
		if !maps.Equal(before, now) {
			t.Fatalf("after %s: the Machines were %v and are %v", time.Since(began), before, now)
		}
		rounds++
		replaced = replaced || len(others) == 1 && !sameKeys(others, onDelete)
		surged = surged || !sameKeys(w.machineUIDs("s"), old) && len(w.machineUIDs("s")) == 1
		written = written || strings.Contains(w.kubeadmConfig(clusterKey.Name), "imageRepository: changed")
		return fmt.Sprint(replaced, surged, written), time.Since(began) > untouched
	})
	w.logf("two minutes, and nothing has happened in %d looks", rounds)
	if n, m := asked("CanUpdateMachine", "machine-in-place"), asked("CanUpdateMachineSet", "machine-set-in-place"); n < 3 || m < 3 {
		t.Errorf("Cluster API asked %d and %d times, want it to ask again and again", n, m)
	}
	if !written {
		t.Error("the ConfigMap of kubeadm is as it was: the page says that it is written before Cluster API asks")
	}
	if !surged {
		t.Errorf("the control plane of one was not replaced, but %v: the page says that Cluster API does not ask", w.machineUIDs("s"))
	}
	if !replaced {
		t.Error("a deleted Machine of a MachineDeployment with OnDelete was not replaced by one of the new template")
	}
	if got := u.askedFor(); slices.ContainsFunc(got, func(name string) bool {
		return strings.HasPrefix(name, "s-") || strings.HasPrefix(name, clusterKey.Name+"-od-")
	}) {
		t.Errorf("Cluster API asked about %v", got)
	}

	w.scale(clusterKey.Name, 5, 2)
	w.eventually("the control plane has grown, and the MachineDeployment shall be as large as before", func() (string, bool) {
		kcp, md := w.ofTopology(clusterKey.Name, "md")
		n, _, _ := unstructured.NestedInt64(kcp.Object, "status", "readyReplicas")
		m, _, _ := unstructured.NestedInt64(md.Object, "spec", "replicas")
		return fmt.Sprint(n, m), n == 5 && m == 2
	})
	w.logf("the control plane has grown to five without asking")
	ofControlPlane := w.machineUIDs(clusterKey.Name, client.HasLabels{clusterv1.MachineControlPlaneLabel})
	maps.DeleteFunc(ofControlPlane, func(name string, _ types.UID) bool { return before[name] == "" })
	marked := slices.Sorted(maps.Keys(ofControlPlane))[0]
	w.annotate(&clusterv1.Machine{ObjectMeta: objectMeta(namespace, marked)}, clusterv1.DeleteMachineAnnotation)
	w.eventually("the control plane Machine that was marked for deletion is replaced", func() (string, bool) {
		now := w.machineUIDs(clusterKey.Name)
		_, exists := now[marked]
		return fmt.Sprint(now), !exists && len(now) == 5+2+1
	})
	delete(before, marked)
	w.logf("a Machine that was marked for deletion was replaced without asking")
	d.inPlaceChains("Block", "files", "commands", "rest") // a chain with a step that does not exist yet blocks, too
	d.extension("rest", w.half(u, "rest", "postKubeadmCommands", "clusterConfiguration"))
	d.discovered()
	w.touch(clusterKey.Name, "md") // Cluster API asks with growing pauses
	w.eventuallyWithin(stepPatience, "all Machines have all that is new", func() (string, bool) {
		return w.configsHave(clusterKey.Name, 8, func(s bootstrapv1.KubeadmConfigSpec) bool {
			return s.Files[0].Content == "changed" && s.PostKubeadmCommands[0] == "changed"
		})
	})
	w.settled(oldVersion, 9)
	for name, uid := range before {
		if after := w.machineUIDs(clusterKey.Name); after[name] != uid {
			t.Errorf("the Machines were %v and are %v: %s was not updated in place", before, after, name)
		}
	}
}

// halves records what extensions were called for, which update a part of a Machine each. It is safe for concurrent use.
type halves struct {
	mu    sync.Mutex
	asked []string            // Machines and MachineSets
	calls map[string][]string // of UpdateMachine, by Machine
}

// half serves an extension that covers members of the bootstrap config, and updates Machines.
func (w *fixture) half(u *halves, name string, members ...string) int {
	w.t.Helper()
	return w.serve(
		handler{"can-machine", "CanUpdateMachine", answering(w, func(r *runtimehooksv1.CanUpdateMachineRequest, a *runtimehooksv1.CanUpdateMachineResponse) (err error) {
			a.SetGroupVersionKind(runtimehooksv1.GroupVersion.WithKind("CanUpdateMachineResponse"))
			a.Status = runtimehooksv1.ResponseStatusSuccess
			u.ask(r.Current.Machine.Name)
			a.BootstrapConfigPatch, err = covering(r.Desired.BootstrapConfig.Raw, members, "spec")
			return err
		})},
		handler{"can-set", "CanUpdateMachineSet", answering(w, func(r *runtimehooksv1.CanUpdateMachineSetRequest, a *runtimehooksv1.CanUpdateMachineSetResponse) (err error) {
			a.SetGroupVersionKind(runtimehooksv1.GroupVersion.WithKind("CanUpdateMachineSetResponse"))
			a.Status = runtimehooksv1.ResponseStatusSuccess
			u.ask(r.Current.MachineSet.Name)
			a.BootstrapConfigTemplatePatch, err = covering(r.Desired.BootstrapConfigTemplate.Raw, members, "spec", "template", "spec")
			return err
		})},
		w.updates(u, name),
	)
}

// updates is the handler of an extension that waits in the first call of UpdateMachine for a Machine, and is done in the
// second.
func (w *fixture) updates(u *halves, extension string) handler {
	return handler{"update", "UpdateMachine", answering(w, func(r *runtimehooksv1.UpdateMachineRequest, a *runtimehooksv1.UpdateMachineResponse) error {
		a.SetGroupVersionKind(runtimehooksv1.GroupVersion.WithKind("UpdateMachineResponse"))
		a.Status = runtimehooksv1.ResponseStatusSuccess
		if u.call(r.Desired.Machine.Name, extension) {
			a.RetryAfterSeconds = 1
		}
		return nil
	})}
}

// covering returns the patch that sets members at a path as they are in the desired object.
func covering(desired []byte, members []string, path ...string) (runtimehooksv1.Patch, error) {
	object := map[string]any{}
	if err := json.Unmarshal(desired, &object); err != nil {
		return runtimehooksv1.Patch{}, err
	}
	spec, _, err := unstructured.NestedMap(object, path...)
	if err != nil {
		return runtimehooksv1.Patch{}, err
	}
	change := map[string]any{}
	for _, m := range members {
		change[m] = spec[m]
	}
	var whole any = change
	for _, name := range slices.Backward(path) {
		whole = map[string]any{name: whole}
	}
	patch, err := json.Marshal(whole)
	return runtimehooksv1.Patch{PatchType: runtimehooksv1.JSONMergePatchType, Patch: patch}, err
}

func (u *halves) ask(name string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.asked = append(u.asked, name)
}

// askedFor returns the Machines and MachineSets that Cluster API has asked about.
func (u *halves) askedFor() []string {
	u.mu.Lock()
	defer u.mu.Unlock()
	return slices.Compact(slices.Sorted(slices.Values(u.asked)))
}

// call records a call of UpdateMachine, and reports whether the extension waits.
func (u *halves) call(machine, extension string) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.calls == nil {
		u.calls = map[string][]string{}
	}
	waits, what := !slices.Contains(u.calls[machine], extension+" waits"), " done"
	if waits {
		what = " waits"
	}
	u.calls[machine] = append(u.calls[machine], extension+what)
	return waits
}

func (u *halves) updates(machine string) []string {
	u.mu.Lock()
	defer u.mu.Unlock()
	return slices.Clone(u.calls[machine])
}

// inPlaceChains writes a chain of the extensions for each in-place hook.
func (d *directory) inPlaceChains(onPartialCoverage string, extensions ...string) {
	d.w.t.Helper()
	for _, c := range []struct{ name, hook, handler string }{
		{"machine-in-place", "CanUpdateMachine", "can-machine"}, {"machine-set-in-place", "CanUpdateMachineSet", "can-set"},
		{"update-in-place", "UpdateMachine", "update"},
	} {
		spec := map[string]any{}
		if c.hook != "UpdateMachine" {
			spec["onPartialCoverage"] = onPartialCoverage
		}
		var steps []any
		for _, extension := range extensions {
			steps = append(steps, map[string]any{"handler": c.handler + "." + extension})
		}
		spec["steps"] = steps
		d.chain(c.name, c.hook, spec)
	}
}

// allowFilesByRules puts a HookRule in the place of the extension files in the chains of the hooks that ask what can be
// done.
func (d *directory) allowFilesByRules() {
	d.w.t.Helper()
	for _, c := range []struct{ hook, chain, path, next string }{
		{"CanUpdateMachine", "machine-in-place", "/bootstrapConfig/spec/files", "can-machine.commands"},
		{"CanUpdateMachineSet", "machine-set-in-place", "/bootstrapConfigTemplate/spec/template/spec/files", "can-set.commands"},
	} {
		name := "files-of-" + c.chain
		d.write(object("hookgate.dev/v1alpha1", "HookRule", name, map[string]any{
			"hook": c.hook, "allow": []any{map[string]any{"path": c.path}},
		}))
		d.chain(c.chain, c.hook, map[string]any{
			"steps": []any{map[string]any{"handler": "rule." + name}, map[string]any{"handler": c.next}},
		})
	}
}

// createInPlaceClass creates the ClusterClass of testdata/in-place.yaml.
func (w *fixture) createInPlaceClass() {
	w.t.Helper()
	for _, o := range append(read(w.t, "testdata/clusterclass.yaml")[1:], read(w.t, "testdata/in-place.yaml")...) {
		w.create(o)
	}
}

func deployment(name string, replicas int64, strategy string) any {
	rollout := map[string]any{"type": strategy}
	if strategy == "RollingUpdate" {
		rollout["rollingUpdate"] = map[string]any{"maxSurge": int64(0), "maxUnavailable": int64(1)}
	}
	return map[string]any{"class": "worker", "name": name, "replicas": replicas, "rollout": map[string]any{"strategy": rollout}}
}

// inPlaceCluster returns a Cluster of the class in-place.
func (w *fixture) inPlaceCluster(name string, controlPlane, maxSurge int64, deployments ...any) *unstructured.Unstructured {
	w.t.Helper()
	c := read(w.t, "testdata/cluster.yaml")[0]
	c.SetName(name)
	variables := []any{map[string]any{"name": "maxSurge", "value": maxSurge}}
	for _, name := range []string{"file", "command", "last"} {
		variables = append(variables, map[string]any{"name": name, "value": "old"})
	}
	set(w.t, c, "in-place", "spec", "topology", "classRef", "name")
	set(w.t, c, controlPlane, "spec", "topology", "controlPlane", "replicas")
	set(w.t, c, deployments, "spec", "topology", "workers", "machineDeployments")
	set(w.t, c, variables, "spec", "topology", "variables")
	if len(deployments) == 0 {
		unstructured.RemoveNestedField(c.Object, "spec", "topology", "workers")
	}
	return c
}

// topology changes the topology of a Cluster.
func (w *fixture) topology(cluster string, change func(*clusterv1.Topology)) {
	w.t.Helper()
	before := &clusterv1.Cluster{}
	if err := w.Get(w.ctx, client.ObjectKey{Namespace: namespace, Name: cluster}, before); err != nil {
		w.t.Fatal(err)
	}
	after := before.DeepCopy()
	change(&after.Spec.Topology)
	if err := w.Patch(w.ctx, after, client.MergeFrom(before)); err != nil {
		w.t.Fatalf("change Cluster %s: %v", cluster, err)
	}
}

func (w *fixture) setVariables(cluster string, values map[string]string) {
	w.t.Helper()
	w.topology(cluster, func(t *clusterv1.Topology) {
		for i, v := range t.Variables {
			if value, ok := values[v.Name]; ok {
				t.Variables[i].Value.Raw = fmt.Appendf(nil, "%q", value)
			}
		}
	})
}

// scale sets how many Machines the control plane shall have, and the first MachineDeployment.
func (w *fixture) scale(cluster string, controlPlane, workers int32) {
	w.t.Helper()
	w.topology(cluster, func(t *clusterv1.Topology) {
		t.ControlPlane.Replicas, t.Workers.MachineDeployments[0].Replicas = &controlPlane, &workers
	})
}

func inDeployment(name string) client.ListOption {
	return client.MatchingLabels{clusterv1.ClusterTopologyMachineDeploymentNameLabel: name}
}

// outsideDeployment selects what is of no MachineDeployment, or of another one.
func outsideDeployment(t *testing.T, name string) client.ListOption {
	t.Helper()
	other, err := labels.NewRequirement(clusterv1.ClusterTopologyMachineDeploymentNameLabel, selection.NotEquals, []string{name})
	if err != nil {
		t.Fatal(err)
	}
	return client.MatchingLabelsSelector{Selector: labels.NewSelector().Add(*other)}
}

// machineUIDs returns the Machines of a Cluster, those that are being deleted with no UID.
func (w *fixture) machineUIDs(cluster string, options ...client.ListOption) map[string]types.UID {
	w.t.Helper()
	found := map[string]types.UID{}
	list := &clusterv1.MachineList{}
	if err := w.List(w.ctx, list, append(options, client.InNamespace(namespace))...); err != nil {
		w.t.Fatal(err)
	}
	for _, m := range list.Items {
		if m.Spec.ClusterName != cluster {
			continue
		}
		if found[m.Name] = m.UID; m.DeletionTimestamp != nil {
			found[m.Name] = ""
		}
	}
	return found
}

func sameKeys(a, b map[string]types.UID) bool {
	return slices.Equal(slices.Sorted(maps.Keys(a)), slices.Sorted(maps.Keys(b)))
}

func (w *fixture) deleteMachines(uids map[string]types.UID) {
	w.t.Helper()
	for name := range uids {
		if err := w.Delete(w.ctx, &clusterv1.Machine{ObjectMeta: objectMeta(namespace, name)}); err != nil {
			w.t.Fatal(err)
		}
	}
}

// configsHave reports whether a Cluster has so many bootstrap configs, all with something.
func (w *fixture) configsHave(cluster string, want int, has func(bootstrapv1.KubeadmConfigSpec) bool) (string, bool) {
	w.t.Helper()
	list := &bootstrapv1.KubeadmConfigList{}
	if err := w.List(w.ctx, list, client.InNamespace(namespace), client.MatchingLabels{clusterv1.ClusterNameLabel: cluster}); err != nil {
		w.t.Fatal(err)
	}
	n := 0
	for _, c := range list.Items {
		if has(c.Spec) {
			n++
		}
	}
	return fmt.Sprintf("%d of %d", n, len(list.Items)), n == want && len(list.Items) == want
}

// ofTopology returns the control plane and a MachineDeployment of a Cluster.
func (w *fixture) ofTopology(cluster, deployment string) (kcp, md *unstructured.Unstructured) {
	w.t.Helper()
	one := func(apiVersion, kind string, labels client.MatchingLabels) *unstructured.Unstructured {
		list := &unstructured.UnstructuredList{}
		list.SetAPIVersion(apiVersion)
		list.SetKind(kind + "List")
		labels[clusterv1.ClusterNameLabel] = cluster
		if err := w.List(w.ctx, list, client.InNamespace(namespace), labels); err != nil || len(list.Items) != 1 {
			w.t.Fatalf("%d of %s, want 1: %v", len(list.Items), kind, err)
		}
		return &list.Items[0]
	}
	return one(groupOf("KubeadmControlPlane"), "KubeadmControlPlane", client.MatchingLabels{}),
		one(groupOf("MachineDeployment"), "MachineDeployment", client.MatchingLabels{clusterv1.ClusterTopologyMachineDeploymentNameLabel: deployment})
}

// touch changes an annotation of the control plane and of a MachineDeployment, so that Cluster API looks at them now.
func (w *fixture) touch(cluster, deployment string) {
	w.t.Helper()
	kcp, md := w.ofTopology(cluster, deployment)
	w.annotate(kcp, "touched")
	w.annotate(md, "touched")
}

func (w *fixture) annotate(o client.Object, annotation string) {
	w.t.Helper()
	change := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:""}}}`, annotation)
	if err := w.Patch(w.ctx, o, client.RawPatch(types.MergePatchType, change)); err != nil {
		w.t.Fatal(err)
	}
}

// logged reports whether a program has printed a text.
func (w *fixture) logged(program, text string) bool {
	w.t.Helper()
	log, err := os.ReadFile(filepath.Join(w.logs, program+".log"))
	if err != nil {
		w.t.Fatal(err)
	}
	return strings.Contains(string(log), text)
}

// kubeadmConfig returns the configuration of kubeadm in a workload cluster.
func (w *fixture) kubeadmConfig(cluster string) string {
	w.t.Helper()
	c := (&ledger{w: w}).connect(cluster)
	if c == nil {
		return ""
	}
	m := &corev1.ConfigMap{}
	if err := c.Get(w.ctx, client.ObjectKey{Namespace: "kube-system", Name: "kubeadm-config"}, m); err != nil {
		return err.Error()
	}
	return m.Data["ClusterConfiguration"]
}
