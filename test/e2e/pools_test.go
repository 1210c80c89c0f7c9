// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestPools scales and upgrades a pool that is a group of the cloud, whose instances are Machines to Cluster API, while
// the extension and the controllers are killed again and again, and once an instance vanishes. Nothing is made twice, and
// nothing is left.
func TestPools(t *testing.T) {
	w := begin(t, false)
	cloud := w.startCloud()
	providers := w.startProvidersOf(cloud, inPools)
	l := w.newLedger(cloud, "p")
	controlPlane, pool := l.watch("p-control-plane-"), l.watch("p-mp-0-")
	controlPlane.between(0, 1)
	pool.between(0, 2)
	ofPool := client.MatchingLabels{clusterv1.MachinePoolNameLabel: "p-mp-0"}
	runs := func(version string, want, made int) func() (string, bool) {
		return func() (string, bool) { return w.fleetRuns(l, pool, ofPool, version, want, made) }
	}
	scale := func(n int64) func() {
		return func() {
			pool.between(2, 4)
			w.patch("MachinePool", "p-mp-0", n, "spec", "replicas")
		}
	}
	kills := 0
	w.sideBySide(w.logf, func() {
		l.follow()
		switch rand.IntN(100) { // every few seconds the extension, and now and then the controllers
		case 0, 1, 2, 3, 4:
			w.kill(providers[0])
			kills++
		case 5:
			w.kill(w.infrastructure)
			kills++
		}
	}, []step{{
		what: "a pool of two runs",
		do: func() {
			for _, o := range w.template("cluster-template-machinepool.yaml", map[string]string{
				"CLUSTER_NAME": "p", "NAMESPACE": namespace, "KUBERNETES_VERSION": oldVersion, "WORKER_MACHINE_COUNT": "2",
				"HOOKGATE_INFRASTRUCTURE_CLASS": inPools, "HOOKGATE_WORKER_PARAMETERS": "size: large",
			}) {
				w.create(o)
			}
		},
		done: runs(oldVersion, 2, 2),
	}, {
		what: "the pool has four machines", do: scale(4), done: runs(oldVersion, 4, 4),
	}, {
		what: "the pool has two machines again", do: scale(2), done: runs(oldVersion, 2, 4),
	}, {
		what: "the cloud has replaced an instance that vanished, and no other one",
		do: func() {
			pool.between(1, 2)
			l.vanish(pool)
		},
		done: func() (string, bool) {
			list := &clusterv1.MachineList{}
			if err := w.List(w.ctx, list, client.InNamespace(namespace), ofPool); err != nil {
				w.t.Fatal(err)
			}
			exist := l.machines()
			for _, m := range list.Items {
				if !slices.ContainsFunc(exist, func(i machine) bool { return i.ProviderID == m.Spec.ProviderID }) {
					return "the Machine " + m.Name + " of what has vanished is there", false
				}
			}
			return runs(oldVersion, 2, 5)()
		},
	}, {
		what: "the pool has the newer version, one machine after the other",
		do: func() {
			pool.between(2, 4) // a new one may be made while an old one is being deleted
			w.patch("MachinePool", "p-mp-0", newVersion, "spec", "template", "spec", "version")
		},
		done: runs(newVersion, 2, 7),
	}, {
		what: "the pool says what an autoscaler reads, and has as many instances as it should",
		do:   func() {},
		done: func() (string, bool) {
			p := w.get("infrastructure.hookgate.dev/v1alpha1", "HookgateMachinePool", namespace, "p-mp-0")
			capacity, _, _ := unstructured.NestedStringMap(p.Object, "status", "capacity")
			replicas, _, _ := unstructured.NestedInt64(p.Object, "status", "replicas")
			return fmt.Sprint(capacity, replicas), capacity["cpu"] == "16" && replicas == 2
		},
	}, w.deletion("p", controlPlane, pool)})
	w.logf("%d times something was killed", kills)
	if kills == 0 {
		t.Error("nothing was ever killed")
	}
	got := l.counts()
	if want := (tally{Created: 8, Deleted: 7, Vanished: 1}); got.Machines != want || got.Groups != (tally{Created: 1, Deleted: 1}) ||
		got.Networks != (tally{Created: 1, Deleted: 1}) || len(got.Repeated) > 0 {
		t.Errorf("the cloud has counted %+v, want machines %+v, and one group", got, want)
	}
	w.calm()
}
