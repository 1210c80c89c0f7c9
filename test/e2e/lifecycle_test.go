// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The versions of testdata/cluster.yaml and of the upgrade; the extension's upgrade plan knows both.
const (
	oldVersion = "v1.35.5"
	newVersion = "v1.36.1"
)

// hooks are all hooks that the extension has, each with the name of its handler.
var hooks = map[string]string{
	"BeforeClusterCreate":          "before-cluster-create",
	"AfterControlPlaneInitialized": "after-control-plane-initialized",
	"BeforeClusterUpgrade":         "before-cluster-upgrade",
	"BeforeControlPlaneUpgrade":    "before-control-plane-upgrade",
	"AfterControlPlaneUpgrade":     "after-control-plane-upgrade",
	"BeforeWorkersUpgrade":         "before-workers-upgrade",
	"AfterWorkersUpgrade":          "after-workers-upgrade",
	"AfterClusterUpgrade":          "after-cluster-upgrade",
	"BeforeClusterDelete":          "before-cluster-delete",
	"GeneratePatches":              "generate-patches",
	"ValidateTopology":             "validate-topology",
	"DiscoverVariables":            "discover-variables",
	"GenerateUpgradePlan":          "generate-upgrade-plan",
	"CanUpdateMachine":             "can-update-machine",
	"CanUpdateMachineSet":          "can-update-machineset",
	"UpdateMachine":                "update-machine",
}

// TestLifecycle creates, upgrades, changes in place and deletes a Cluster whose every hook goes through the gateway. `make
// test-e2e-older` runs it with older releases of Cluster API, whose extension is as old.
func TestLifecycle(t *testing.T) {
	w := beginWithHub(t)
	say := w.logf
	say("Cluster API has discovered the gateway")

	for _, o := range read(t, "testdata/clusterclass.yaml") {
		w.create(o)
	}
	w.discoversVariables()
	say("the ClusterClass has the extension's variables")

	w.create(read(t, "testdata/cluster.yaml")[0])
	w.hold(held{hook: "BeforeClusterCreate", still: func() string {
		if c := w.cluster(); c.Spec.ControlPlaneRef.IsDefined() || c.Spec.InfrastructureRef.IsDefined() {
			return "the Cluster has its control plane or its infrastructure"
		}
		return ""
	}})
	say("BeforeClusterCreate held, and let go")
	w.settled(oldVersion, 4)
	say("the Cluster runs %s", oldVersion)

	w.change("version", func(c *clusterv1.Cluster) { c.Spec.Topology.Version = newVersion })
	step := oldVersion + "-" + newVersion
	for _, h := range []held{
		{hook: "BeforeClusterUpgrade", key: step, still: w.at(oldVersion, oldVersion, "BeforeControlPlaneUpgrade-"+step)},
		{hook: "BeforeControlPlaneUpgrade", key: step, still: w.at(oldVersion, oldVersion, "AfterControlPlaneUpgrade-"+newVersion)},
		{
			hook: "AfterControlPlaneUpgrade", key: newVersion, during: w.restartGateway,
			still: w.at(newVersion, oldVersion, "BeforeWorkersUpgrade-"+step),
		},
		{hook: "BeforeWorkersUpgrade", key: step, still: w.at(newVersion, oldVersion, "AfterWorkersUpgrade-"+newVersion)},
		{hook: "AfterWorkersUpgrade", key: newVersion, still: w.at(newVersion, newVersion, "AfterClusterUpgrade-"+newVersion)},
		{hook: "AfterClusterUpgrade", key: newVersion, during: w.allowInPlaceUpdates, still: w.refusesNextUpgrade},
	} {
		w.hold(h)
		say("%s held, and let go", h.hook)
	}
	w.settled(newVersion, 4)
	say("the Cluster runs %s", newVersion)

	w.updatesInPlace()
	say("all Machines were updated in place")

	if err := w.Delete(w.ctx, w.cluster()); err != nil {
		t.Fatalf("delete Cluster: %v", err)
	}
	w.hold(held{hook: "BeforeClusterDelete", still: func() string {
		if kcp := w.controlPlaneOf(); kcp.DeletionTimestamp != nil {
			return "the control plane is being deleted"
		}
		return ""
	}, gone: true})
	say("BeforeClusterDelete held, and let go")
	w.gone()
	say("the Cluster is gone")
	w.arrived()
}

// gone waits until the Cluster has been deleted.
func (w *fixture) gone() {
	w.t.Helper()
	w.eventually("the Cluster and its Machines are gone", func() (string, bool) {
		machines := &clusterv1.MachineList{}
		if err := w.List(w.ctx, machines, client.InNamespace(namespace)); err != nil {
			return err.Error(), false
		}
		err := w.Get(w.ctx, clusterKey, &clusterv1.Cluster{})
		return fmt.Sprintf("%d Machines; Cluster: %v", len(machines.Items), err),
			len(machines.Items) == 0 && apierrors.IsNotFound(err)
	})
}

// discoversVariables waits until the ClusterClass has the variables that the extension's DiscoverVariables has.
func (w *fixture) discoversVariables() {
	w.t.Helper()
	want := []string{"files", "imageRepository", "kubeadmControlPlaneMaxSurge"}
	if os.Getenv(olderSources) == "" {
		want = slices.Insert(want, 2, "kubeadmConfigTemplateAnnotations")
		want = append(want, "preKubeadmCommands")
	}
	w.eventually("the ClusterClass has the variables "+strings.Join(want, ", "), func() (string, bool) {
		class := &clusterv1.ClusterClass{}
		if err := w.Get(w.ctx, client.ObjectKey{Namespace: namespace, Name: "memory"}, class); err != nil {
			return err.Error(), false
		}
		var got []string
		for _, v := range class.Status.Variables {
			for _, d := range v.Definitions {
				if d.From == "external" {
					got = append(got, v.Name)
				}
			}
		}
		slices.Sort(got)
		ready := meta.IsStatusConditionTrue(class.Status.Conditions, clusterv1.ClusterClassVariablesReadyCondition)
		return fmt.Sprint(got, class.Status.Conditions), ready && slices.Equal(got, want)
	})
}

// updatesInPlace changes a variable that the extension's patches put into files of the Machines, and waits until all
// Machines have the file and are the same Machines.
func (w *fixture) updatesInPlace() {
	w.t.Helper()
	before := w.machines()
	w.change("variable files", func(c *clusterv1.Cluster) {
		v := clusterv1.ClusterVariable{Name: "files"}
		v.Value.Raw = []byte(`[{"path":"/tmp/in-place","content":"updated"}]`)
		c.Spec.Topology.Variables = append(c.Spec.Topology.Variables, v)
	})
	w.eventually("all Machines have the new file", func() (string, bool) {
		configs := &bootstrapv1.KubeadmConfigList{}
		if err := w.List(w.ctx, configs, client.InNamespace(namespace)); err != nil {
			return err.Error(), false
		}
		with := 0
		for _, c := range configs.Items {
			if slices.ContainsFunc(c.Spec.Files, func(f bootstrapv1.File) bool { return f.Path == "/tmp/in-place" }) {
				with++
			}
		}
		return fmt.Sprintf("%d of %d", with, len(configs.Items)),
			with == len(before) && len(configs.Items) == len(before)
	})
	w.settled(newVersion, 4)
	if after := w.machines(); !slices.Equal(before, after) {
		w.t.Errorf("the Machines were %v and are %v: they were not updated in place", before, after)
	}
}

// allowInPlaceUpdates changes the settings of the extension while it is called: they are the gateway's to add.
func (w *fixture) allowInPlaceUpdates() {
	w.t.Helper()
	config := extensionConfig(ownGroup, upstream)
	patch := client.RawPatch("application/merge-patch+json",
		[]byte(`{"spec":{"settings":{"disableInPlaceUpdates":"false"}}}`))
	if err := w.Patch(w.ctx, config, patch); err != nil {
		w.t.Fatalf("change settings: %v", err)
	}
	w.discovered("the gateway has taken the new settings", config)
}

// arrived checks what the extension recorded and what the gateway and Cluster API counted.
func (w *fixture) arrived() {
	w.t.Helper()
	const success, let = "Success", "Status: Success, RetryAfterSeconds: 0"
	step := oldVersion + "-" + newVersion
	want := map[string]string{
		"BeforeClusterCreate":                    let,
		"AfterControlPlaneInitialized":           success,
		"BeforeClusterUpgrade-" + step:           let,
		"BeforeControlPlaneUpgrade-" + step:      let,
		"AfterControlPlaneUpgrade-" + newVersion: let,
		"BeforeWorkersUpgrade-" + step:           let,
		"AfterWorkersUpgrade-" + newVersion:      let,
		"AfterClusterUpgrade-" + newVersion:      let,
		"BeforeClusterDelete":                    let,
	}
	data := w.answers()
	for _, hook := range slices.Sorted(maps.Keys(want)) {
		if got := data[hook+"-actualResponseStatus"]; got != want[hook] {
			w.t.Errorf("the extension's last answer of %s is %q, want %q", hook, got, want[hook])
		}
	}

	calls := append(w.gateway.scrape(w.t, "hookgate_handler_calls_total"), w.callsBefore...)
	requests := append(w.gateway.scrape(w.t, "hookgate_requests_total"), w.requestsBefore...)
	served := w.extension.scrape(w.t, "controller_runtime_webhook_requests_total")
	sent := append(w.core.scrape(w.t, callerMetric), w.controlPlane.scrape(w.t, callerMetric)...)

	lines := []string{fmt.Sprintf("%-30s %13s %13s %13s", "hook", "by Cluster API", "by gateway", "by extension")}
	for _, hook := range slices.Sorted(maps.Keys(hooks)) {
		handler := hooks[hook]
		path := "/hooks.runtime.cluster.x-k8s.io/v1alpha1/" + strings.ToLower(hook) + "/" + handler
		byCaller := total(sent, "hook", hook, "code", "200", "status", "Success")
		byGateway := total(calls, "hook", hook, "handler", handler+"."+upstream, "outcome", "success")
		byExtension := total(served, "webhook", path, "code", "200")
		line := fmt.Sprintf("%-30s %13d %13d %13d", hook, byCaller, byGateway, byExtension)
		lines = append(lines, line)
		if byCaller == 0 || byGateway == 0 || byExtension == 0 {
			w.t.Errorf("a hook did not arrive: %s", line)
		}
		// The gateway may have taken one more call between the count and its restart.
		if byCaller != byExtension || byGateway != byExtension && byGateway+1 != byExtension {
			w.t.Errorf("calls got lost, or went past the gateway: %s", line)
		}
	}
	w.t.Logf("calls that succeeded:\n%s", strings.Join(lines, "\n"))

	if all, good := total(calls), total(calls, "outcome", "success"); all != good {
		w.t.Errorf("%d of the gateway's %d calls to the extension did not succeed: %v", all-good, all, calls)
	}
	// A gateway that has just been started again listens before it knows its extension.
	early := total(requests, "kind", "NotReady")
	if early > w.lost {
		w.t.Errorf("%d requests came before the gateway was ready, and Cluster API lost %d", early, w.lost)
	}
	if all, good := total(requests), total(requests, "kind", "")+early; all != good {
		w.t.Errorf("the gateway answered %d of %d requests with an error: %v", all-good, all, requests)
	}
	for _, s := range sent {
		if s.labels["host"] != loopback(w.gateway.port) {
			w.t.Errorf("Cluster API called %s, which is not the gateway", s.labels["host"])
		}
	}
	if lost := w.failed(); lost != w.lost {
		w.t.Errorf("%d requests of Cluster API failed, and %d of them while the gateway was away", lost, w.lost)
	}
}

// machines returns the names of all Machines.
func (w *fixture) machines() []string {
	w.t.Helper()
	list := &clusterv1.MachineList{}
	if err := w.List(w.ctx, list, client.InNamespace(namespace)); err != nil {
		w.t.Fatalf("list Machines: %v", err)
	}
	var names []string
	for _, m := range list.Items {
		names = append(names, m.Name)
	}
	slices.Sort(names)
	return names
}
