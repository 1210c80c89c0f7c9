// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ruled are the Clusters of TestRules, each of one control plane Machine and with an image repository of its own.
var ruled = []string{"c1", "c2", "c3", "c4"}

// TestRules upgrades four Clusters, two at a time, whose every hook is answered by a HookRule: there is no extension. The
// gateway is killed while they wait for their approval, and while two are upgraded and two wait for them.
func TestRules(t *testing.T) {
	w := begin(t, true)
	h := w.watchUpgrades()
	w.prepareGateway()
	w.gateway.process = w.gateway.start()
	w.ready(w.gateway)
	var rules []string
	for _, o := range append(read(t, "testdata/clusterclass.yaml")[1:], read(t, "testdata/rules.yaml")...) {
		w.create(o)
		if o.GetKind() == "HookRule" {
			rules = append(rules, o.GetName())
		}
	}
	w.localsReady("HookRule", rules)
	w.registerGateway(gateway)
	w.logf("Cluster API has discovered %d rules", len(rules))

	w.eventually("the ClusterClass has the variable of the rule", func() (string, bool) {
		class := &clusterv1.ClusterClass{}
		if err := w.Get(w.ctx, client.ObjectKey{Namespace: namespace, Name: "ruled"}, class); err != nil {
			return err.Error(), false
		}
		return fmt.Sprint(class.Status.Variables, class.Status.Conditions), len(class.Status.Variables) == 1 &&
			class.Status.Variables[0].Name == "imageRepository" && class.Status.Variables[0].Definitions[0].From == "rules"
	})
	for _, name := range ruled {
		w.create(w.ruledCluster(name))
	}
	w.eventuallyWithin(stepPatience, "all Clusters run", func() (string, bool) { return w.allAt(ruled, oldVersion) })
	w.logf("all Clusters run %s", oldVersion)

	for _, name := range ruled {
		w.topology(name, func(t *clusterv1.Topology) { t.Version = newVersion })
	}
	w.allHeld()
	w.logf("all upgrades wait for their approval")
	w.replaceGateway(func() { w.end(w.gateway) })
	w.eventually("Cluster API has asked again about all of them", func() (string, bool) {
		n := total(w.gateway.scrape(t, "hookgate_handler_calls_total"), "handler", "rule.approval")
		return fmt.Sprintf("%d calls", n), n >= len(ruled)
	})
	w.allHeld()
	if got := h.versions(); !slices.Equal(got, []string{oldVersion}) {
		t.Errorf("no upgrade is approved, and Machines have the versions %v", got)
	}
	w.logf("the gateway was killed, and they still wait")

	for _, name := range ruled {
		w.approve(name)
	}
	w.eventually("the first control plane is upgraded", func() (string, bool) {
		got := h.versions()
		return fmt.Sprint(got), slices.Contains(got, newVersion)
	})
	w.twoHavePlaces()
	w.replaceGateway(func() { w.end(w.gateway) })
	w.eventuallyWithin(stepPatience, "all Clusters are upgraded", func() (string, bool) { return w.allAt(ruled, newVersion) })
	w.logf("the gateway was killed again, and all Clusters run %s", newVersion)

	for _, name := range ruled {
		want := fmt.Sprintf("control plane: %[1]s of %[3]s/%[4]s, %[2]s of %[3]s/%[4]s; Machines: %[1]s, %[2]s",
			oldVersion, newVersion, repository, name)
		if got := h.of(name); got != want {
			t.Errorf("Cluster %s had\n%s; want\n%s", name, got, want)
		}
	}
	if most := h.mostAtOnce(); most != 2 {
		t.Errorf("%d Clusters were upgraded at once, want 2", most)
	}
	w.eventually("no Cluster has a place", func() (string, bool) {
		taken := w.placesOf("approval")
		return fmt.Sprint(taken), len(taken) == 0
	})
	w.onlyRules(rules)
}

// placesOf returns the Clusters that have a place of a rule.
func (w *fixture) placesOf(rule string) (clusters []string) {
	w.t.Helper()
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion("hookgate.dev/v1alpha1")
	list.SetKind("ClusterRecordList")
	if err := w.List(w.ctx, list, client.MatchingLabels{"hookgate.dev/hook-rule": rule}); err != nil {
		w.t.Fatal(err)
	}
	for _, record := range list.Items {
		if _, given, _ := unstructured.NestedString(record.Object, "spec", "place", "since"); given {
			name, _, _ := unstructured.NestedString(record.Object, "spec", "clusterName")
			clusters = append(clusters, name)
		}
	}
	return clusters
}

// twoHavePlaces waits until two Clusters have a place, and the others say that they wait for one.
func (w *fixture) twoHavePlaces() {
	w.t.Helper()
	const want = "waits: all places are taken (2)"
	w.eventually("two Clusters have a place, and two wait", func() (string, bool) {
		taken := w.placesOf("approval")
		for _, name := range ruled {
			c := &clusterv1.Cluster{}
			if err := w.Get(w.ctx, client.ObjectKey{Namespace: namespace, Name: name}, c); err != nil {
				return err.Error(), false
			}
			of := meta.FindStatusCondition(c.Status.Conditions, clusterv1.ClusterTopologyReconciledCondition)
			if of == nil || slices.Contains(taken, name) == strings.Contains(of.Message, want) {
				return fmt.Sprint(taken, " have places; ", name, ": ", of), false
			}
		}
		return fmt.Sprint(taken), len(taken) == 2
	})
}

// localsReady waits until all objects of a kind without servers are in effect.
func (w *fixture) localsReady(kind string, names []string) {
	w.t.Helper()
	w.eventually("all "+kind+"s are in effect", func() (string, bool) {
		for _, name := range names {
			local := w.get("hookgate.dev/v1alpha1", kind, "", name)
			conditions, _, _ := unstructured.NestedSlice(local.Object, "status", "conditions")
			if !slices.ContainsFunc(conditions, func(c any) bool {
				of, _ := c.(map[string]any)
				return of["type"] == "Ready" && of["status"] == "True"
			}) {
				return fmt.Sprint(name, ": ", conditions), false
			}
		}
		return "", true
	})
}

// ruledCluster returns a Cluster of the class of testdata/rules.yaml.
func (w *fixture) ruledCluster(name string) *unstructured.Unstructured {
	w.t.Helper()
	c := read(w.t, "testdata/cluster.yaml")[0]
	c.SetName(name)
	set(w.t, c, "ruled", "spec", "topology", "classRef", "name")
	set(w.t, c, int64(1), "spec", "topology", "controlPlane", "replicas")
	unstructured.RemoveNestedField(c.Object, "spec", "topology", "workers")
	set(w.t, c, []any{map[string]any{"name": "imageRepository", "value": repository + "/" + name}}, "spec", "topology", "variables")
	return c
}

// approve annotates a Cluster as the rule wants it.
func (w *fixture) approve(cluster string) {
	w.t.Helper()
	change := fmt.Appendf(nil, `{"metadata":{"annotations":{"acme.example/approved":%q}}}`, newVersion)
	c := &clusterv1.Cluster{ObjectMeta: objectMeta(namespace, cluster)}
	if err := w.Patch(w.ctx, c, client.RawPatch(types.MergePatchType, change)); err != nil {
		w.t.Fatal(err)
	}
}

// allAt reports whether all Clusters have settled at a version.
func (w *fixture) allAt(names []string, version string) (string, bool) {
	w.t.Helper()
	for _, name := range names {
		c := &clusterv1.Cluster{}
		if err := w.Get(w.ctx, client.ObjectKey{Namespace: namespace, Name: name}, c); err != nil {
			return err.Error(), false
		}
		for _, kind := range []string{
			clusterv1.ClusterTopologyReconciledCondition, clusterv1.ClusterAvailableCondition,
			clusterv1.ClusterControlPlaneMachinesReadyCondition, clusterv1.ClusterControlPlaneMachinesUpToDateCondition,
		} {
			if !meta.IsStatusConditionTrue(c.Status.Conditions, kind) {
				return fmt.Sprint(name, ": ", kind, " is not True: ", meta.FindStatusCondition(c.Status.Conditions, kind)), false
			}
		}
		list := &clusterv1.MachineList{}
		if err := w.List(w.ctx, list, client.InNamespace(namespace), client.MatchingLabels{clusterv1.ClusterNameLabel: name}); err != nil {
			return err.Error(), false
		}
		if n := len(list.Items); n != 1 || list.Items[0].Spec.Version != version {
			return fmt.Sprintf("%s has %d Machines", name, n), false
		}
	}
	return "", true
}

// allHeld waits until all Clusters say, in the words of the rule, what they wait for.
func (w *fixture) allHeld() {
	w.t.Helper()
	const want = "waits for approval of " + newVersion + ": annotate acme.example/approved"
	w.eventually("all Clusters say what they wait for", func() (string, bool) {
		for _, name := range ruled {
			c := &clusterv1.Cluster{}
			if err := w.Get(w.ctx, client.ObjectKey{Namespace: namespace, Name: name}, c); err != nil {
				return err.Error(), false
			}
			of := meta.FindStatusCondition(c.Status.Conditions, clusterv1.ClusterTopologyReconciledCondition)
			if of == nil || !blocks(of.Message, "BeforeClusterUpgrade") || !strings.Contains(of.Message, want) {
				return fmt.Sprint(name, ": ", of), false
			}
		}
		return "", true
	})
}

// onlyRules checks what the gateway and Cluster API counted: rules have answered all calls, and none got lost but those
// that found no gateway.
func (w *fixture) onlyRules(rules []string) {
	w.t.Helper()
	calls := append(w.gateway.scrape(w.t, "hookgate_handler_calls_total"), w.callsBefore...)
	all, good := total(calls), 0
	for _, name := range rules {
		n := total(calls, "handler", "rule."+name, "outcome", "success")
		if w.logf("rule %s has answered %d calls", name, n); n == 0 {
			w.t.Errorf("rule %s was never called", name)
		}
		good += n
	}
	good += total(calls, "handler", "places.approval", "outcome", "success")
	if all != good {
		w.t.Errorf("the gateway made %d calls, and rules have answered %d: %v", all, good, calls)
	}
	if lost := w.failed(); lost != w.lost {
		w.t.Errorf("%d requests of Cluster API failed, and %d of them while the gateway was away", lost, w.lost)
	}
}

// history is what has happened to the control planes and Machines of each Cluster. It is safe for concurrent use.
type history struct {
	mu            sync.Mutex
	controlPlanes map[string][]string // each version and image repository that was wanted, in order
	machines      map[string][]string // the version of each, in order
	seen          map[types.UID]bool  // Machines
	upgrading     map[string]bool     // control planes that are to have the new version, and do not have it
	most          int                 // of them at once
}

// watchUpgrades follows what happens to all control planes and Machines from now on.
func (w *fixture) watchUpgrades() *history {
	w.t.Helper()
	h := &history{
		controlPlanes: map[string][]string{}, machines: map[string][]string{}, seen: map[types.UID]bool{},
		upgrading: map[string]bool{},
	}
	watching, err := client.NewWithWatch(w.rest, client.Options{Scheme: w.Scheme()})
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(w.ctx)
	var all sync.WaitGroup
	w.t.Cleanup(func() { cancel(); all.Wait() })
	for _, list := range []client.ObjectList{&clusterv1.MachineList{}, &controlplanev1.KubeadmControlPlaneList{}} {
		watch, err := watching.Watch(ctx, list, client.InNamespace(namespace))
		if err != nil {
			w.t.Fatal(err)
		}
		all.Go(func() {
			for e := range watch.ResultChan() {
				h.note(e.Object)
			}
			if ctx.Err() == nil {
				w.t.Error("the watch ended")
			}
		})
	}
	return h
}

func (h *history) note(o any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch o := o.(type) {
	case *clusterv1.Machine:
		if cluster := o.Spec.ClusterName; !h.seen[o.UID] {
			h.seen[o.UID] = true
			h.machines[cluster] = append(h.machines[cluster], o.Spec.Version)
		}
	case *controlplanev1.KubeadmControlPlane:
		name := o.Labels[clusterv1.ClusterNameLabel]
		now := o.Spec.Version + " of " + o.Spec.KubeadmConfigSpec.ClusterConfiguration.ImageRepository
		if before := h.controlPlanes[name]; len(before) == 0 || before[len(before)-1] != now {
			h.controlPlanes[name] = append(before, now)
		}
		has := o.Status.Versions
		if delete(h.upgrading, name); o.Spec.Version == newVersion && (len(has) != 1 || has[0].Version != newVersion) {
			h.upgrading[name] = true
		}
		h.most = max(h.most, len(h.upgrading))
	}
}

// versions returns the versions that Machines have had.
func (h *history) versions() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Compact(slices.Sorted(slices.Values(slices.Concat(slices.Collect(maps.Values(h.machines))...))))
}

// mostAtOnce returns how many Clusters were upgraded at the same time, at most.
func (h *history) mostAtOnce() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.most
}

// of returns what happened to a Cluster.
func (h *history) of(cluster string) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return fmt.Sprintf("control plane: %s; Machines: %s", strings.Join(h.controlPlanes[cluster], ", "),
		strings.Join(h.machines[cluster], ", "))
}
