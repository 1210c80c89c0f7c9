// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// bootstrapTokenTTL is short, so that a pool's bootstrap token is rotated while its Cluster is upgraded.
const bootstrapTokenTTL = 90 * time.Second

// TestInfrastructure runs two Clusters of the release's templates, whose infrastructure extensions of four functions make
// in a fake cloud, with the real Cluster API and its kubeadm providers. One has a control plane and a MachineDeployment
// that are scaled, rolled out, and upgraded, the workers in place; the other is of the ClusterClass, and has a
// MachinePool. All the while the extensions are killed, each machine that comes or goes is counted, and no Node may go
// before its machine does.
func TestInfrastructure(t *testing.T) {
	w := begin(t, false)
	say := w.logf
	cloud := w.startCloud()
	providers := w.startProviders(cloud)
	u := w.startUpdater(cloud)
	w.registerGateway(gateway)
	say("the classes know their extensions, and Cluster API the gateway")
	w.create(&corev1.Secret{ObjectMeta: objectMeta(ownNamespace, "team"), StringData: map[string]string{"token": "of-the-team"}})
	w.create(object("infrastructure.hookgate.dev/v1alpha1", "HookgateClusterIdentity", "team", map[string]any{
		"credentialsRef": map[string]any{"name": "team"}, "allowedNamespaces": map[string]any{"names": []any{namespace}},
	}))
	for _, o := range w.template("clusterclass-hookgate.yaml", nil) {
		o.SetNamespace(namespace)
		w.create(o)
	}

	l := w.newLedger(cloud, "c", "t")
	controlPlane, workers := l.watch("c-control-plane-"), l.watch("c-md-0-")
	pool, poolControlPlane := l.watch("t-mp-0-"), l.watch("t-")
	kills := 0
	w.sideBySide(say, func() {
		l.follow()
		if rand.IntN(20) == 0 { // every few seconds
			w.kill(providers[rand.IntN(len(providers))])
			kills++
		}
	},
		w.deploymentScenario(l, controlPlane, workers),
		w.poolScenario(l, poolControlPlane, pool),
	)
	say("the extensions were killed %d times", kills)

	if kills == 0 {
		t.Error("no extension was ever killed")
	}
	if n := u.updated(); n != 2 {
		t.Errorf("%d Machines were updated in place, want 2", n)
	}
	got := l.counts()
	want := tally{Created: 6 + 4 + 2 + 7, Deleted: 6 + 4 + 2 + 6, Vanished: 1}
	if got.Networks != (tally{Created: 2, Deleted: 2}) || got.Machines != want || got.Groups != (tally{}) || len(got.Repeated) > 0 {
		t.Errorf("the cloud has counted %+v, want machines %+v", got, want)
	}
	say("the cloud is empty; it has made %d machines, each once", got.Machines.Created)
	w.calm()
}

// deploymentScenario scales Cluster c, replaces its workers, upgrades the control plane, and the workers in place, and
// deletes the Cluster. Cluster API holds back workers while a control plane is upgraded.
func (w *fixture) deploymentScenario(l *ledger, controlPlane, workers *fleet) []step {
	const kcp, md = "c-control-plane", "c-md-0"
	run := func(version string, ofControlPlane, ofWorkers, madeControlPlane, madeWorkers int) (string, bool) {
		saw, ok := w.fleetRuns(l, controlPlane, client.MatchingLabels{
			clusterv1.ClusterNameLabel: "c", clusterv1.MachineControlPlaneLabel: "",
		}, version, ofControlPlane, madeControlPlane)
		if !ok {
			return saw, false
		}
		return w.fleetRuns(l, workers, client.MatchingLabels{clusterv1.MachineDeploymentNameLabel: md}, version, ofWorkers, madeWorkers)
	}
	return []step{{
		what: "c: one control plane machine and one worker run",
		do: func() {
			controlPlane.between(0, 1)
			workers.between(0, 1)
			for _, o := range w.template("cluster-template.yaml", map[string]string{
				"CLUSTER_NAME": "c", "NAMESPACE": namespace, "KUBERNETES_VERSION": oldVersion,
				"HOOKGATE_INFRASTRUCTURE_CLASS": inPython, "HOOKGATE_WORKER_PARAMETERS": "size: large",
			}) {
				w.create(o)
			}
		},
		done: func() (string, bool) { return run(oldVersion, 1, 1, 1, 1) },
	}, {
		what: "c: three control plane machines and two workers run",
		do: func() {
			controlPlane.between(1, 3)
			workers.between(1, 2)
			w.patch("KubeadmControlPlane", kcp, int64(3), "spec", "replicas")
			w.patch("MachineDeployment", md, int64(2), "spec", "replicas")
		},
		done: func() (string, bool) { return run(oldVersion, 3, 2, 3, 2) },
	}, {
		what: "c: all workers were replaced by small ones",
		do: func() {
			controlPlane.between(3, 3)
			workers.between(2, 4)
			small := w.get("infrastructure.hookgate.dev/v1alpha1", "HookgateMachineTemplate", namespace, md)
			small.Object["metadata"] = map[string]any{"namespace": namespace, "name": md + "-small"}
			set(w.t, small, "small", "spec", "template", "spec", "parameters", "size")
			w.create(small)
			w.patch("MachineDeployment", md, md+"-small", "spec", "template", "spec", "infrastructureRef", "name")
		},
		done: func() (string, bool) { return run(oldVersion, 3, 2, 3, 4) },
	}, {
		what: "c: the control plane was replaced by one of " + newVersion + ", and the workers were upgraded in place",
		do: func() {
			controlPlane.between(3, 4)
			workers.between(2, 2)
			w.patch("KubeadmControlPlane", kcp, newVersion, "spec", "version")
			w.patch("MachineDeployment", md, map[string]any{ // by default, one more machine is made first
				"type": "RollingUpdate", "rollingUpdate": map[string]any{"maxSurge": int64(0), "maxUnavailable": int64(1)},
			}, "spec", "rollout", "strategy")
			w.patch("MachineDeployment", md, newVersion, "spec", "template", "spec", "version")
		},
		done: func() (string, bool) { return run(newVersion, 3, 2, 6, 4) },
	}, w.deletion("c", controlPlane, workers)}
}

// poolScenario upgrades, scales and heals the pool of Cluster t, which is of the ClusterClass, and deletes the Cluster.
func (w *fixture) poolScenario(l *ledger, controlPlane, f *fleet) []step {
	machines := client.MatchingLabels{clusterv1.ClusterTopologyMachinePoolNameLabel: "mp-0"}
	pool := func(replicas int64) map[string]any {
		return map[string]any{"machinePools": []any{
			map[string]any{"class": "default-worker", "name": "mp-0", "replicas": replicas},
		}}
	}
	scale := func(replicas int64) { w.patch("Cluster", "t", pool(replicas), "spec", "topology", "workers") }
	var token string
	return []step{{
		what: "t: one control plane machine and a pool of two run",
		do: func() {
			controlPlane.between(0, 1)
			f.between(0, 2)
			for _, o := range w.template("cluster-template-topology.yaml", map[string]string{
				"CLUSTER_NAME": "t", "NAMESPACE": namespace, "KUBERNETES_VERSION": oldVersion,
				"HOOKGATE_INFRASTRUCTURE_CLASS": inGo, "HOOKGATE_WORKER_PARAMETERS": "size: large", "HOOKGATE_IDENTITY": "team",
			}) {
				set(w.t, o, pool(2), "spec", "topology", "workers")
				w.create(o)
			}
		},
		done: func() (string, bool) {
			if saw, ok := w.fleetRuns(l, f, machines, oldVersion, 2, 2); !ok {
				return saw, false
			}
			c := &clusterv1.Cluster{}
			if err := w.Get(w.ctx, client.ObjectKey{Namespace: namespace, Name: "t"}, c); err != nil {
				w.t.Fatal(err)
			}
			h := w.get("infrastructure.hookgate.dev/v1alpha1", "HookgateCluster", namespace, c.Spec.InfrastructureRef.Name)
			if name, _, _ := unstructured.NestedString(h.Object, "spec", "identityRef", "name"); name != "team" {
				w.t.Errorf("t: the identity is %q, want team", name)
			}
			return "", true
		},
	}, {
		what: "t: the pool was replaced by one of " + newVersion,
		do: func() {
			token = w.bootstrapToken(f)
			controlPlane.between(1, 2)
			f.between(2, 4)
			w.patch("Cluster", "t", newVersion, "spec", "topology", "version")
		},
		done: func() (string, bool) {
			if saw, ok := l.is(controlPlane, 1, 2); !ok {
				return saw, false
			}
			return w.fleetRuns(l, f, machines, newVersion, 2, 4)
		},
	}, {
		what: "t: the first bootstrap token has expired, and the pool has another one",
		do:   func() {},
		done: func() (string, bool) {
			now := w.bootstrapToken(f)
			return now, now != token && w.expired(l.clusters["t"], token)
		},
	}, {
		what: "t: the pool has four machines",
		do: func() {
			scale(4)
			f.between(2, 4)
		},
		done: func() (string, bool) { return w.fleetRuns(l, f, machines, newVersion, 4, 6) },
	}, {
		what: "t: the pool has two machines again",
		do:   func() { scale(2) },
		done: func() (string, bool) { return w.fleetRuns(l, f, machines, newVersion, 2, 6) },
	}, {
		what: "t: a health check had the machine replaced that vanished",
		do: func() {
			f.between(1, 2)
			check := &clusterv1.MachineHealthCheck{ObjectMeta: objectMeta(namespace, "t-mp-0")}
			check.Spec.ClusterName = "t"
			check.Spec.Selector = metav1.LabelSelector{MatchLabels: machines}
			check.Spec.Checks.UnhealthyNodeConditions = []clusterv1.UnhealthyNodeCondition{{
				Type: corev1.NodeReady, Status: corev1.ConditionUnknown, TimeoutSeconds: new(int32(5)),
			}}
			w.create(check)
			l.vanish(f)
		},
		done: func() (string, bool) {
			return w.fleetRuns(l, f, machines, newVersion, 2, 7)
		},
	}, {
		what: "t: the pool is empty",
		do: func() {
			scale(0)
			f.between(0, 2)
		},
		done: func() (string, bool) {
			if nodes := len(l.nodes["t"]); nodes != 1 {
				return fmt.Sprintf("%d Nodes", nodes), false
			}
			return w.fleetRuns(l, f, machines, newVersion, 0, 7)
		},
	}, w.deletion("t", controlPlane, f)}
}

// deletion returns the step that deletes a Cluster.
func (w *fixture) deletion(name string, fleets ...*fleet) step {
	c := &clusterv1.Cluster{ObjectMeta: objectMeta(namespace, name)}
	return step{
		what: name + ": the Cluster is gone",
		do: func() {
			for _, f := range fleets {
				f.between(0, f.Exist)
			}
			if err := w.Delete(w.ctx, c); err != nil {
				w.t.Fatal(err)
			}
		},
		done: func() (string, bool) {
			err := w.Get(w.ctx, client.ObjectKeyFromObject(c), &clusterv1.Cluster{})
			return fmt.Sprint(err), apierrors.IsNotFound(err)
		},
	}
}

// fleetRuns reports whether a fleet has so many Machines, all of which run this version, and has made so many machines.
func (w *fixture) fleetRuns(
	l *ledger, f *fleet, labels client.MatchingLabels, version string, want, made int,
) (string, bool) {
	w.t.Helper()
	list := &clusterv1.MachineList{}
	if err := w.List(w.ctx, list, client.InNamespace(namespace), labels); err != nil {
		w.t.Fatal(err)
	}
	for _, m := range list.Items {
		if m.Spec.Version != version || !m.DeletionTimestamp.IsZero() || m.Status.NodeInfo == nil ||
			m.Status.NodeInfo.KubeletVersion != version {
			return fmt.Sprintf("Machine %s: version %s, phase %s, %v", m.Name, m.Spec.Version, m.Status.Phase,
				meta.FindStatusCondition(m.Status.Conditions, clusterv1.ReadyCondition)), false
		}
	}
	if len(list.Items) != want {
		return fmt.Sprintf("%d Machines", len(list.Items)), false
	}
	return l.is(f, want, made)
}

// joinToken is a bootstrap token in kubeadm's configuration, with its ID.
var joinToken = regexp.MustCompile(`token: ([a-z0-9]{6})\.[a-z0-9]{16}`)

// bootstrapToken returns the ID of the token in the bootstrap data of a pool.
func (w *fixture) bootstrapToken(f *fleet) string {
	w.t.Helper()
	list := &clusterv1.MachinePoolList{}
	if err := w.List(w.ctx, list, client.InNamespace(namespace)); err != nil {
		w.t.Fatal(err)
	}
	for _, p := range list.Items {
		name := p.Spec.Template.Spec.Bootstrap.DataSecretName
		if !strings.HasPrefix(p.Name, f.prefix) || name == nil {
			continue
		}
		s := &corev1.Secret{}
		if err := w.Get(w.ctx, client.ObjectKey{Namespace: namespace, Name: *name}, s); err != nil {
			w.t.Fatal(err)
		}
		if m := joinToken.FindSubmatch(s.Data["value"]); m != nil {
			return string(m[1])
		}
	}
	w.t.Fatalf("no pool %s with a bootstrap token", f.prefix)
	return ""
}

// expired reports whether a cluster takes a bootstrap token no longer.
func (w *fixture) expired(cluster client.Client, token string) bool {
	w.t.Helper()
	s := &corev1.Secret{}
	key := client.ObjectKey{Namespace: metav1.NamespaceSystem, Name: "bootstrap-token-" + token}
	if err := cluster.Get(w.ctx, key, s); err != nil {
		return apierrors.IsNotFound(err)
	}
	until, err := time.Parse(time.RFC3339, string(s.Data["expiration"]))
	return err == nil && until.Before(time.Now())
}
