// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"maps"
	"net/http"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	machineGroup = "hooks.machines.hookgate.dev/v1alpha1"
	// The annotations by which Cluster API waits for the gateway.
	waitsForDrain     = clusterv1.PreDrainDeleteHookAnnotationPrefix + "/hookgate"
	waitsForTerminate = clusterv1.PreTerminateDeleteHookAnnotationPrefix + "/hookgate"
)

// machineHooks is an extension with handlers of the hooks of Machines, which holds the Machines that it is told to. It is
// safe for concurrent use.
type machineHooks struct {
	mu     sync.Mutex
	hold   map[string]bool // hook, or hook and Machine
	calls  []string        // hook and Machine, and whether it was held
	repair func(machine string, attempt int) machineAnswer
}

// machineAnswer is the response of a hook of Machines.
type machineAnswer struct {
	metav1.TypeMeta
	Status            string                            `json:"status"`
	Message           string                            `json:"message,omitempty"`
	RetryAfterSeconds int32                             `json:"retryAfterSeconds,omitempty"`
	Handlers          []runtimehooksv1.ExtensionHandler `json:"handlers,omitempty"`
}

// serveMachineHooks serves handlers of these hooks, and returns the port.
func (w *fixture) serveMachineHooks(x *machineHooks, hooks ...string) int {
	w.t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("POST /hooks.runtime.cluster.x-k8s.io/v1alpha1/discovery", answering(w,
		func(_ *runtimehooksv1.DiscoveryRequest, a *runtimehooksv1.DiscoveryResponse) error {
			a.SetGroupVersionKind(runtimehooksv1.GroupVersion.WithKind("DiscoveryResponse"))
			a.Status = runtimehooksv1.ResponseStatusSuccess
			return nil
		}))
	mux.HandleFunc("POST /"+machineGroup+"/discovermachinehooks", answering(w, func(_ *struct{}, a *machineAnswer) error {
		a.TypeMeta = metav1.TypeMeta{APIVersion: machineGroup, Kind: "DiscoverMachineHooksResponse"}
		a.Status = "Success"
		for _, h := range hooks {
			a.Handlers = append(a.Handlers, runtimehooksv1.ExtensionHandler{
				Name: strings.ToLower(h), RequestHook: runtimehooksv1.GroupVersionHook{APIVersion: machineGroup, Hook: h},
			})
		}
		return nil
	}))
	for _, h := range hooks {
		type request struct {
			Machine clusterv1.Machine `json:"machine"`
			Attempt int               `json:"attempt"`
		}
		mux.HandleFunc("POST /"+machineGroup+"/"+strings.ToLower(h)+"/"+strings.ToLower(h), answering(w,
			func(r *request, a *machineAnswer) error {
				*a = x.answer(h, r.Machine.Name, r.Attempt)
				a.TypeMeta = metav1.TypeMeta{APIVersion: machineGroup, Kind: h + "Response"}
				return nil
			}))
	}
	return w.serveTLS(mux)
}

func (x *machineHooks) answer(hook, machine string, attempt int) machineAnswer {
	x.mu.Lock()
	defer x.mu.Unlock()
	if hook == "RemediateMachine" {
		x.calls = append(x.calls, hook+" "+machine)
		return x.repair(machine, attempt)
	}
	if x.hold[hook] || x.hold[hook+" "+machine] {
		x.calls = append(x.calls, hook+" "+machine+" held")
		return machineAnswer{Status: "Success", RetryAfterSeconds: 1, Message: "waits for " + hook}
	}
	x.calls = append(x.calls, hook+" "+machine)
	return machineAnswer{Status: "Success"}
}

// holds says whether Machines are held by a hook, or one of them.
func (x *machineHooks) holds(what string, hold bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.hold[what] = hold
}

// of returns the calls about a Machine, each once after another.
func (x *machineHooks) of(machine string) []string {
	x.mu.Lock()
	defer x.mu.Unlock()
	var calls []string
	for _, c := range x.calls {
		if name, about, _ := strings.Cut(c, " "+machine); about != c && name != c {
			calls = append(calls, name+about)
		}
	}
	return slices.Compact(calls)
}

// TestMachineHooks holds Machines of a Cluster without a ClusterClass: a worker before its drain, and before it is
// terminated, while the gateway is killed and while there is none; and those of a control plane of three that rolls. The
// gateway has no more rights than its manifests give it. What it has annotated is gone when it is released.
func TestMachineHooks(t *testing.T) {
	w := begin(t, true)
	x := &machineHooks{hold: map[string]bool{}}
	w.startMachinesGateway()
	w.registerExtension("machines", w.serveMachineHooks(x, "AfterMachineProvisioned", "BeforeMachineDrain",
		"BeforeMachineTerminate", "BeforeMachineRemediation", "RemediateMachine"), nil)
	for _, o := range read(t, "testdata/machines.yaml") {
		w.create(o)
	}
	all := w.machinesRun(5)
	w.eventually("all Machines are annotated, and their handlers were told", func() (string, bool) {
		told := 0
		for name := range all {
			if slices.Contains(x.of(name), "AfterMachineProvisioned") {
				told++
			}
		}
		drain, terminate := w.annotated(waitsForDrain), w.annotated(waitsForTerminate)
		return fmt.Sprint(told, drain, terminate), told == 5 && drain == 5 && terminate == 5
	})
	w.logf("all Machines run, and are annotated")

	workers := slices.Sorted(maps.Keys(w.machineUIDs("m", client.MatchingLabels{"tier": "worker"})))
	x.holds("BeforeMachineDrain", true)
	x.holds("BeforeMachineTerminate", true)
	w.deleteMachine(workers[0])
	w.machineHeld(workers[0], "BeforeMachineDrain", clusterv1.MachineDeletingWaitingForPreDrainHookReason)
	x.holds("BeforeMachineDrain", false)
	w.machineHeld(workers[0], "BeforeMachineTerminate", clusterv1.MachineDeletingWaitingForPreTerminateHookReason)
	w.logf("a worker was held before its drain, let go, and is held before it is terminated")
	w.end(w.gateway)
	w.deleteMachine(workers[1])
	w.waitsFor(workers[1], clusterv1.MachineDeletingWaitingForPreDrainHookReason)
	for began := time.Now(); time.Since(began) < 20*time.Second; time.Sleep(time.Second) {
		w.waitsFor(workers[0], clusterv1.MachineDeletingWaitingForPreTerminateHookReason)
		w.waitsFor(workers[1], clusterv1.MachineDeletingWaitingForPreDrainHookReason)
	}
	x.holds("BeforeMachineTerminate", false)
	w.gateway.process = w.gateway.start()
	w.ready(w.gateway)
	w.machinesGone(workers...)
	w.logf("the gateway was killed, both workers waited, and went when it was back")
	for _, name := range workers {
		calls := x.of(name)
		if i, j := slices.Index(calls, "BeforeMachineDrain"), slices.Index(calls, "BeforeMachineTerminate"); i < 0 || j < i {
			t.Errorf("Machine %s: the calls were %v", name, calls)
		}
	}

	w.remediates(x, w.machinesRun(5))
	w.rollControlPlane(x)
	w.logf("the control plane has rolled, each Machine held once, one after the other")

	w.retire(w.gateway.process)
	out, err := exec.CommandContext(w.ctx, folder(t, "HOOKGATE_BIN"), "machines", "release",
		"--kubeconfig", w.kubeconfig, "--gateway-namespace", ownNamespace).CombinedOutput()
	if err != nil {
		t.Fatalf("hookgate machines release: %v\n%s", err, out)
	}
	if drain, terminate := w.annotated(waitsForDrain), w.annotated(waitsForTerminate); drain+terminate > 0 {
		t.Errorf("%d and %d Machines still have an annotation:\n%s", drain, terminate, out)
	}
	worker := slices.Sorted(maps.Keys(w.machineUIDs("m", client.MatchingLabels{"tier": "worker"})))[0]
	w.deleteMachine(worker)
	w.machinesGone(worker)
	w.logf("the gateway is gone, and no Machine waits for it")
}

// remediates has a MachineHealthCheck find a worker unhealthy, which RemediateMachine heals, and then the other, which it
// cannot heal in two attempts, so that the MachineSet replaces it.
func (w *fixture) remediates(x *machineHooks, all map[string]types.UID) {
	w.t.Helper()
	workers := slices.Sorted(maps.Keys(w.machineUIDs("m", client.MatchingLabels{"tier": "worker"})))
	x.mu.Lock()
	x.repair = func(machine string, attempt int) machineAnswer {
		switch {
		case machine != workers[0]:
			return machineAnswer{Status: "Failure", Message: "no power"}
		case len(x.calls) > 1 && x.calls[len(x.calls)-2] != "RemediateMachine "+machine:
			return machineAnswer{Status: "Success", Message: "reboots", RetryAfterSeconds: 1}
		}
		go w.broken(machine, metav1.ConditionFalse)
		return machineAnswer{Status: "Success"}
	}
	x.mu.Unlock()
	x.holds("BeforeMachineRemediation "+workers[0], true)
	w.broken(workers[0], metav1.ConditionTrue)
	remediation := func(name string) string {
		o := &unstructured.Unstructured{}
		o.SetAPIVersion("machines.hookgate.dev/v1alpha1")
		o.SetKind("HookgateRemediation")
		err := w.Get(w.ctx, client.ObjectKey{Namespace: namespace, Name: name}, o)
		if client.IgnoreNotFound(err) != nil {
			w.t.Fatal(err)
		}
		if err != nil {
			return ""
		}
		return fmt.Sprint("status: ", o.Object["status"])
	}
	w.eventually("the remediation of "+workers[0]+" is held", func() (string, bool) {
		got := remediation(workers[0])
		return got, strings.Contains(got, "waits for BeforeMachineRemediation")
	})
	x.holds("BeforeMachineRemediation "+workers[0], false)
	w.eventually(workers[0]+" is healthy, and its remediation is gone", func() (string, bool) {
		got := remediation(workers[0])
		return got, got == "" && slices.Contains(x.of(workers[0]), "RemediateMachine")
	})
	if now := w.machinesRun(5); !maps.Equal(all, now) {
		w.t.Errorf("the Machines were %v, and are %v: one was replaced that was healed", all, now)
	}
	w.logf("a worker was remediated by RemediateMachine")
	w.broken(workers[1], metav1.ConditionTrue)
	w.machinesGone(workers[1])
	w.machinesRun(5)
	x.mu.Lock()
	attempts := 0
	for _, c := range x.calls {
		if c == "RemediateMachine "+workers[1] {
			attempts++
		}
	}
	x.mu.Unlock()
	if attempts != 2 {
		w.t.Errorf("RemediateMachine was called %d times for a Machine that it cannot heal, want 2", attempts)
	}
	w.logf("the other worker could not be remediated, and was replaced")
}

// broken sets the condition of a Machine by which the MachineHealthCheck finds it unhealthy.
func (w *fixture) broken(name string, status metav1.ConditionStatus) {
	m := &clusterv1.Machine{}
	err := w.Get(w.ctx, client.ObjectKey{Namespace: namespace, Name: name}, m)
	before := m.DeepCopy()
	meta.SetStatusCondition(&m.Status.Conditions, metav1.Condition{Type: "Broken", Status: status, Reason: "Test"})
	if err == nil {
		err = w.Status().Patch(w.ctx, m, client.MergeFrom(before))
	}
	if err != nil {
		w.t.Errorf("set the condition of Machine %s: %v", name, err)
	}
}

// rollControlPlane gives the control plane another version, and holds each of its Machines once before its drain and
// once before it is terminated.
func (w *fixture) rollControlPlane(x *machineHooks) {
	w.t.Helper()
	old := w.machineUIDs("m", client.HasLabels{clusterv1.MachineControlPlaneLabel})
	for name := range old {
		x.holds("BeforeMachineDrain "+name, true)
		x.holds("BeforeMachineTerminate "+name, true)
	}
	kcp := w.controlPlaneOf()
	before := kcp.DeepCopy()
	kcp.Spec.Version = newVersion
	if err := w.Patch(w.ctx, kcp, client.MergeFrom(before)); err != nil {
		w.t.Fatal(err)
	}
	rolled := map[string]bool{}
	for range old {
		var next string
		w.eventuallyWithin(stepPatience, "another control plane Machine is held before its drain", func() (string, bool) {
			now := w.machineUIDs("m", client.HasLabels{clusterv1.MachineControlPlaneLabel})
			var deleted []string
			for name := range old {
				if uid, there := now[name]; there && uid == "" {
					deleted = append(deleted, name)
				}
			}
			if len(deleted) > 1 {
				w.t.Fatalf("%v are being deleted at the same time", deleted)
			}
			if len(deleted) == 1 && !rolled[deleted[0]] {
				next = deleted[0]
			}
			return fmt.Sprint(now), next != ""
		})
		rolled[next] = true
		for _, hook := range []string{"BeforeMachineDrain", "BeforeMachineTerminate"} {
			reason := clusterv1.MachineDeletingWaitingForPreDrainHookReason
			if hook == "BeforeMachineTerminate" {
				reason = clusterv1.MachineDeletingWaitingForPreTerminateHookReason
			}
			w.machineHeld(next, hook, reason)
			x.holds(hook+" "+next, false)
		}
		w.machinesGone(next)
		want := []string{
			"BeforeMachineDrain held", "BeforeMachineDrain", "BeforeMachineTerminate held", "BeforeMachineTerminate",
		}
		if got := x.of(next); !slices.Equal(got[len(got)-min(len(got), 4):], want) {
			w.t.Errorf("Machine %s: the calls were %v", next, got)
		}
	}
	w.eventuallyWithin(stepPatience, "the control plane has rolled", func() (string, bool) {
		kcp := &controlplanev1.KubeadmControlPlane{}
		err := w.Get(w.ctx, client.ObjectKey{Namespace: namespace, Name: "m"}, kcp)
		return fmt.Sprint(kcp.Status.Conditions, err), err == nil && kcp.Status.UpToDateReplicas != nil &&
			*kcp.Status.UpToDateReplicas == 3 && kcp.Status.Replicas != nil && *kcp.Status.Replicas == 3
	})
}

// startMachinesGateway starts a gateway with the controllers of Machine hooks, and the rights that its manifests give it.
func (w *fixture) startMachinesGateway() {
	w.t.Helper()
	deploy := filepath.Join("..", "..", "deploy")
	w.create(&corev1.Namespace{ObjectMeta: objectMeta("", ownNamespace)})
	for _, file := range []string{
		"components/cluster/rbac.yaml", "overlays/hub-beside-core/rbac.yaml", "components/machines/rbac.yaml",
	} {
		for _, o := range read(w.t, filepath.Join(deploy, file)) {
			if slices.Contains([]string{"Role", "RoleBinding", "ServiceAccount"}, o.GetKind()) {
				o.SetNamespace(ownNamespace) // as kustomize does
			}
			w.create(o)
		}
	}
	w.awaitRoles()
	w.prepareGateway("--machines")
	w.gateway.kubeconfig = w.as(ownNamespace, "hookgate")
	start := w.gateway.start
	w.gateway.start = func() *process {
		admin := w.kubeconfig
		defer func() { w.kubeconfig = admin }()
		w.kubeconfig = w.gateway.kubeconfig
		return start()
	}
	w.gateway.process = w.gateway.start()
	w.ready(w.gateway)
}

// machinesRun returns the Machines of the Cluster m when so many run, and no others exist.
func (w *fixture) machinesRun(want int) map[string]types.UID {
	w.t.Helper()
	found := map[string]types.UID{}
	w.eventuallyWithin(2*stepPatience, fmt.Sprintf("%d Machines run", want), func() (string, bool) {
		clear(found)
		list := &clusterv1.MachineList{}
		if err := w.List(w.ctx, list, client.InNamespace(namespace)); err != nil {
			return err.Error(), false
		}
		for _, m := range list.Items {
			if m.DeletionTimestamp == nil && m.Status.NodeRef.IsDefined() && m.Status.Phase == "Running" {
				found[m.Name] = m.UID
			}
		}
		return fmt.Sprintf("%d of %d", len(found), len(list.Items)), len(found) == want && len(list.Items) == want
	})
	return found
}

// annotated returns how many Machines have an annotation.
func (w *fixture) annotated(annotation string) (n int) {
	w.t.Helper()
	list := &clusterv1.MachineList{}
	if err := w.List(w.ctx, list, client.InNamespace(namespace)); err != nil {
		w.t.Fatal(err)
	}
	for _, m := range list.Items {
		if _, has := m.Annotations[annotation]; has {
			n++
		}
	}
	return n
}

func (w *fixture) deleteMachine(name string) {
	w.t.Helper()
	if err := w.Delete(w.ctx, &clusterv1.Machine{ObjectMeta: objectMeta(namespace, name)}); err != nil {
		w.t.Fatal(err)
	}
}

// machineHeld waits until Cluster API waits for a hook, and the Machine says who holds it.
func (w *fixture) machineHeld(name, hook, reason string) {
	w.t.Helper()
	w.waitsFor(name, reason)
	w.eventually("Machine "+name+" says that "+hook+" holds it", func() (string, bool) {
		m := &clusterv1.Machine{}
		if err := w.Get(w.ctx, client.ObjectKey{Namespace: namespace, Name: name}, m); err != nil {
			return err.Error(), false
		}
		c := meta.FindStatusCondition(m.Status.Conditions, "HeldByHook")
		return fmt.Sprint(c), c != nil && c.Status == metav1.ConditionTrue && c.Reason == hook &&
			strings.Contains(c.Message, strings.ToLower(hook)+".machines") && strings.Contains(c.Message, "waits for "+hook)
	})
}

// waitsFor waits until Cluster API says why it does not go on with the deletion of a Machine.
func (w *fixture) waitsFor(name, reason string) {
	w.t.Helper()
	w.eventually("the deletion of Machine "+name+" is "+reason, func() (string, bool) {
		m := &clusterv1.Machine{}
		if err := w.Get(w.ctx, client.ObjectKey{Namespace: namespace, Name: name}, m); err != nil {
			return err.Error(), false
		}
		c := meta.FindStatusCondition(m.Status.Conditions, clusterv1.MachineDeletingCondition)
		return fmt.Sprint(c), c != nil && c.Reason == reason
	})
}

func (w *fixture) machinesGone(names ...string) {
	w.t.Helper()
	w.eventuallyWithin(stepPatience, fmt.Sprint(names, " are gone"), func() (string, bool) {
		now := w.machineUIDs("m")
		return fmt.Sprint(now), !slices.ContainsFunc(names, func(name string) bool { _, there := now[name]; return there })
	})
}
