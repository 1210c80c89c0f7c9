// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// callerMetric is the metric of Cluster API's managers for calls to extensions.
const callerMetric = "capi_runtime_sdk_requests_total"

var clusterKey = client.ObjectKey{Namespace: namespace, Name: "c"}

// held is a hook whose first answers make Cluster API wait and call again.
type held struct {
	hook string
	key  string // what the extension's record adds to the hook's name
	// still returns what Cluster API has done although it should wait.
	still func() string
	// during runs while the hook is held.
	during func()
	// gone: the Cluster may be gone once the hook is let go.
	gone bool
}

// hold waits until Cluster API is held by a hook, sees that it asks again and does nothing else, and lets it go.
func (w *fixture) hold(h held) {
	w.t.Helper()
	record := strings.TrimSuffix(h.hook+"-"+h.key, "-")
	w.eventually(h.hook+" holds", func() (string, bool) {
		answer := w.answers()[record+"-actualResponseStatus"]
		message := w.topologyMessage()
		return fmt.Sprintf("answer %q, TopologyReconciled %q", answer, message),
			answer == "Status: Success, RetryAfterSeconds: 5" && blocks(message, h.hook)
	})
	holds := func() {
		w.t.Helper()
		if did := h.still(); did != "" {
			w.t.Fatalf("%s holds, and yet %s", h.hook, did)
		}
		if message := w.topologyMessage(); !blocks(message, h.hook) {
			w.t.Fatalf("%s holds, and TopologyReconciled does not say so any more: %q", h.hook, message)
		}
	}
	asked := func() int { return total(w.gateway.scrape(w.t, "hookgate_requests_total"), "hook", h.hook, "kind", "") }
	asksAgain := func() {
		w.t.Helper()
		before := asked()
		w.eventually("Cluster API asks again about "+h.hook, func() (string, bool) {
			holds()
			now := asked()
			return fmt.Sprintf("%d requests", now), now > before
		})
	}
	asksAgain()
	if h.during != nil {
		h.during()
		w.eventually(h.hook+" holds again", func() (string, bool) {
			if did := h.still(); did != "" {
				w.t.Fatalf("%s was held, and yet %s", h.hook, did)
			}
			message := w.topologyMessage()
			return message, blocks(message, h.hook)
		})
		asksAgain()
	}

	w.answer(record, `{"Status": "Success"}`)
	w.eventually(h.hook+" lets go", func() (string, bool) {
		answer := w.answers()[record+"-actualResponseStatus"]
		message := ""
		if !h.gone {
			message = w.topologyMessage()
		}
		return fmt.Sprintf("answer %q, TopologyReconciled %q", answer, message),
			answer == "Status: Success, RetryAfterSeconds: 0" && !blocks(message, h.hook)
	})
}

// restartGateway ends the gateway, waits until Cluster API has noticed, and starts it again at the same address.
func (w *fixture) restartGateway() {
	w.t.Helper()
	w.replaceGateway(func() { w.retire(w.gateway.process) })
}

// replaceGateway is restartGateway with another way to end the gateway.
func (w *fixture) replaceGateway(end func()) {
	w.t.Helper()
	if n := w.failed(); n != w.lost {
		w.t.Errorf("%d requests of Cluster API failed while the gateway was there", n-w.lost)
	}
	w.callsBefore = append(w.callsBefore, w.gateway.scrape(w.t, "hookgate_handler_calls_total")...)
	w.requestsBefore = append(w.requestsBefore, w.gateway.scrape(w.t, "hookgate_requests_total")...)
	end()
	w.eventually("Cluster API misses the gateway", func() (string, bool) {
		n := w.failed() - w.lost
		return fmt.Sprintf("%d requests failed", n), n > 0
	})
	w.gateway.process = w.gateway.start()
	w.ready(w.gateway)
	w.lost = w.failed()
}

// failed returns how many requests to extensions have failed, as Cluster API has counted them.
func (w *fixture) failed() int {
	w.t.Helper()
	sent := append(w.core.scrape(w.t, callerMetric), w.controlPlane.scrape(w.t, callerMetric)...)
	return total(sent) - total(sent, "code", "200", "status", "Success")
}

// answers returns the extension's ConfigMap of the Cluster: what it is to answer, and what it last did.
func (w *fixture) answers() map[string]string {
	w.t.Helper()
	c := &corev1.ConfigMap{}
	if err := w.Get(w.ctx, answersKey, c); err != nil && !apierrors.IsNotFound(err) {
		w.t.Fatalf("get the extension's answers: %v", err)
	}
	return c.Data
}

var answersKey = client.ObjectKey{Namespace: namespace,
	Name: clusterKey.Name + "-" + upstream + "-test-extension-hookresponses"}

// answer changes what the extension answers.
func (w *fixture) answer(record, answer string) {
	w.t.Helper()
	patch, err := json.Marshal(map[string]any{"data": map[string]string{record + "-preloadedResponse": answer}})
	if err != nil {
		w.t.Fatal(err)
	}
	c := &corev1.ConfigMap{ObjectMeta: objectMeta(answersKey.Namespace, answersKey.Name)}
	if err := w.Patch(w.ctx, c, client.RawPatch(types.MergePatchType, patch)); err != nil {
		w.t.Fatalf("change the extension's answer of %s: %v", record, err)
	}
}

func (w *fixture) cluster() *clusterv1.Cluster {
	w.t.Helper()
	c := &clusterv1.Cluster{}
	if err := w.Get(w.ctx, clusterKey, c); err != nil {
		w.t.Fatalf("get Cluster: %v", err)
	}
	return c
}

// topologyMessage returns why Cluster API's topology controller does not go on.
func (w *fixture) topologyMessage() string {
	w.t.Helper()
	c := meta.FindStatusCondition(w.cluster().Status.Conditions, clusterv1.ClusterTopologyReconciledCondition)
	if c == nil {
		return ""
	}
	return c.Message
}

// blocks reports whether a message of TopologyReconciled says that a hook made Cluster API wait. It names a hook that
// failed too.
func blocks(message, hook string) bool {
	return strings.Contains(message, "hooks are blocking") && strings.Contains(message, hook)
}

// change patches the Cluster.
func (w *fixture) change(what string, change func(*clusterv1.Cluster)) {
	w.t.Helper()
	before := w.cluster()
	after := before.DeepCopy()
	change(after)
	if err := w.Patch(w.ctx, after, client.MergeFrom(before)); err != nil {
		w.t.Fatalf("change %s: %v", what, err)
	}
}

func (w *fixture) controlPlaneOf() *controlplanev1.KubeadmControlPlane {
	w.t.Helper()
	list := &controlplanev1.KubeadmControlPlaneList{}
	if err := w.List(w.ctx, list, client.InNamespace(namespace)); err != nil || len(list.Items) != 1 {
		w.t.Fatalf("%d control planes, want 1; error: %v", len(list.Items), err)
	}
	return &list.Items[0]
}

// at returns a check that the control plane and the workers have these versions, and that a hook was not called yet.
func (w *fixture) at(controlPlane, workers, notYet string) func() string {
	return func() string {
		w.t.Helper()
		if v := w.controlPlaneOf().Spec.Version; v != controlPlane {
			return "the control plane has version " + v
		}
		list := &clusterv1.MachineDeploymentList{}
		if err := w.List(w.ctx, list, client.InNamespace(namespace)); err != nil || len(list.Items) != 1 {
			w.t.Fatalf("%d MachineDeployments, want 1; error: %v", len(list.Items), err)
		}
		if v := list.Items[0].Spec.Template.Spec.Version; v != workers {
			return "the workers have version " + v
		}
		if answer, called := w.answers()[notYet+"-actualResponseStatus"]; called {
			return notYet + " was called, and answered " + answer
		}
		return ""
	}
}

// refusesNextUpgrade checks that Cluster API does not take another version yet.
func (w *fixture) refusesNextUpgrade() string {
	before := w.cluster()
	after := before.DeepCopy()
	after.Spec.Topology.Version = "v1.37.0"
	err := w.Patch(w.ctx, after, client.MergeFrom(before), client.DryRunAll)
	if err == nil || !strings.Contains(err.Error(), `"AfterClusterUpgrade" hook is still blocking`) {
		return fmt.Sprintf("another upgrade is not refused for that: %v", err)
	}
	return ""
}

// settled waits until the Cluster has nothing left to do, and has so many Machines, all of this version.
func (w *fixture) settled(version string, want int) {
	w.t.Helper()
	conditions := []string{
		clusterv1.ClusterTopologyReconciledCondition, clusterv1.ClusterAvailableCondition,
		clusterv1.ClusterControlPlaneMachinesReadyCondition, clusterv1.ClusterControlPlaneMachinesUpToDateCondition,
		clusterv1.ClusterWorkerMachinesReadyCondition, clusterv1.ClusterWorkerMachinesUpToDateCondition,
	}
	w.eventually("the Cluster has settled at "+version, func() (string, bool) {
		c := w.cluster()
		for _, kind := range conditions {
			if !meta.IsStatusConditionTrue(c.Status.Conditions, kind) {
				return fmt.Sprint(kind, " is not True: ", meta.FindStatusCondition(c.Status.Conditions, kind)), false
			}
		}
		machines := &clusterv1.MachineList{}
		if err := w.List(w.ctx, machines, client.InNamespace(namespace)); err != nil {
			return err.Error(), false
		}
		for _, m := range machines.Items {
			if m.Spec.Version != version {
				return fmt.Sprintf("Machine %s has version %s", m.Name, m.Spec.Version), false
			}
		}
		return fmt.Sprintf("%d Machines", len(machines.Items)), len(machines.Items) == want
	})
}
