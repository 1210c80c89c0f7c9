// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package machines

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/machines"
	"github.com/hookgate/hookgate/registry"
	"github.com/hookgate/hookgate/sdk"
)

type sdkRequest = proto.Message

const (
	drain     = clusterv1.MachineDeletingWaitingForPreDrainHookReason
	terminate = clusterv1.MachineDeletingWaitingForPreTerminateHookReason
)

func waits(message string) func() (sdk.Answer, error) {
	return func() (sdk.Answer, error) { return sdk.Wait(time.Second, message), nil }
}

// TestAnnotationsFollowHandlers wants the annotations on exactly the Machines that handlers match, while handlers,
// labels, pauses and deletions change.
func TestAnnotationsFollowHandlers(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	for name, tier := range map[string]string{"a": "held", "b": "free", "paused": "held"} {
		w.machine(name, tier)
	}
	patch(t, w, w.get("paused"), `{"metadata":{"annotations":{"cluster.x-k8s.io/paused":""}}}`)
	w.register("BeforeMachineDrain", "BeforeMachineTerminate")
	w.start()
	w.has("a", "drain", "terminate")
	w.has("b")
	w.register("BeforeMachineTerminate")
	w.has("a", "terminate")
	patch(t, w, w.get("a"), `{"metadata":{"labels":{"tier":"free"}}}`)
	patch(t, w, w.get("b"), `{"metadata":{"labels":{"tier":"held"}}}`)
	w.has("b", "terminate")
	w.has("a")

	// A Machine that is being deleted without the annotation does not get it.
	w.delete("a")
	patch(t, w, w.get("a"), `{"metadata":{"labels":{"tier":"held"}}}`)
	c := w.machine("c", "held")
	w.has("c", "terminate") // by then, the controllers have seen a
	w.has("a")
	if got := annotationsOf(w.get("paused")); len(got) > 0 {
		t.Errorf("a paused Machine has the annotations %v", got)
	}
	w.registry.Remove("acme")
	w.has("b")
	w.has("c")
	_ = c
	for _, hook := range []string{"BeforeMachineDrain", "BeforeMachineTerminate"} {
		for _, name := range []string{"a", "b", "c", "paused"} {
			if n := w.called(hook, name); n > 0 {
				t.Errorf("%s of %s was called %d times", hook, name, n)
			}
		}
	}
}

func patch(t testing.TB, w *fixture, o client.Object, text string) {
	t.Helper()
	if err := w.client.Patch(context.Background(), o, client.RawPatch("application/merge-patch+json", []byte(text))); err != nil {
		t.Fatal(err)
	}
}

// TestHold holds a Machine before its drain and before it is terminated, by a wait, a Failure and a handler that is gone,
// with a restart of the controllers in between. Core's conditions stay as they are.
func TestHold(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.machine("m", "held")
	w.register("BeforeMachineDrain", "BeforeMachineTerminate")
	w.says("BeforeMachineDrain", waits("copies logs"))
	w.says("BeforeMachineTerminate", func() (sdk.Answer, error) { return nil, sdk.Failf("volumes are attached") })
	w.start()
	w.has("m", "drain", "terminate")
	w.delete("m")
	w.waits("m", drain)
	w.held("m", "BeforeMachineDrain: drain.acme: copies logs")
	w.event("m", "Held: drain.acme: copies logs")
	before := w.get("m")
	w.eventually("it was asked again", func() (string, bool) {
		n := w.called("BeforeMachineDrain", "m")
		return strconv.Itoa(n), n > 2
	})
	if after := w.get("m"); after.ResourceVersion != before.ResourceVersion {
		t.Errorf("a hold that stays the same was written again: %s, then %s", before.ResourceVersion, after.ResourceVersion)
	}
	if n := w.called("BeforeMachineTerminate", "m"); n > 0 {
		t.Errorf("BeforeMachineTerminate was called %d times before Cluster API waited for it", n)
	}
	w.stop()
	w.says("BeforeMachineDrain", nil)
	w.start()
	w.has("m", "terminate")
	w.held("m", "")
	w.waits("m", terminate)
	w.held("m", `BeforeMachineTerminate: handler "terminate.acme": volumes are attached`)
	if c := w.get("m").Status.Conditions; len(c) != 2 {
		t.Errorf("the conditions are %v", c)
	}
	w.says("BeforeMachineTerminate", nil)
	w.has("m")
	w.held("m", "")
}

// TestGoneHandlersLetGo removes the registration of a handler that holds a Machine.
func TestGoneHandlersLetGo(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.machine("m", "held")
	w.register("BeforeMachineTerminate")
	w.says("BeforeMachineTerminate", waits("waits"))
	w.start()
	w.has("m", "terminate")
	w.delete("m")
	w.waits("m", terminate)
	w.held("m", "BeforeMachineTerminate: terminate.acme: waits")
	w.registry.Remove("acme")
	w.has("m")
	w.held("m", "")
}

// TestFailuresHold wants a Machine held while its handler cannot be reached, and while the gateway does not know who its
// handlers are.
func TestFailuresHold(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.machine("m", "held")
	w.register("BeforeMachineTerminate")
	w.start()
	w.has("m", "terminate")
	url := w.url
	w.url = "grpc://127.0.0.1:1"
	w.register("BeforeMachineTerminate")
	w.delete("m")
	w.waits("m", terminate)
	w.eventually("the condition names the handler", func() (string, bool) {
		for _, c := range w.get("m").Status.Conditions {
			if c.Type == machines.HeldCondition {
				return c.Message, strings.HasPrefix(c.Message, `handler "terminate.acme"`)
			}
		}
		return "", false
	})
	w.registry.SetUndiscovered([]registry.Undiscovered{{Name: "other", Default: hook.Fail}})
	w.eventually("the condition says that nothing is known", func() (string, bool) {
		for _, c := range w.get("m").Status.Conditions {
			if c.Type == machines.HeldCondition {
				return c.Message, strings.HasPrefix(c.Message, `the handlers of ExtensionConfig "other" are not known yet`)
			}
		}
		return "", false
	})
	w.url = url
	w.register("BeforeMachineTerminate")
	w.registry.Remove("other")
	w.held("m", "")
	w.has("m")
}

// TestMaxHold lets a Machine go that its handler has held for long, and says so.
func TestMaxHold(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.machine("m", "held")
	w.register("BeforeMachineTerminate")
	w.says("BeforeMachineTerminate", func() (sdk.Answer, error) { return sdk.Wait(time.Hour, "never"), nil })
	w.new = func(c *machines.Config) { c.MaxHold = 3 * time.Second }
	w.start()
	w.has("m", "terminate")
	w.delete("m")
	w.waits("m", terminate)
	began := time.Now()
	w.has("m")
	if took := time.Since(began); took < 2*time.Second { // times of the API server are whole seconds
		t.Errorf("it was held for %s, want 3s", took)
	}
	w.event("m", "HoldEnded: released after 3s, the longest time that the gateway holds a Machine: terminate.acme: never")
}

// TestProvisioned tells handlers of a Machine until they succeed, once, also after a restart, and for a handler that came
// later.
func TestProvisioned(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	provisioned := func(s *clusterv1.MachineStatus) { s.Initialization.InfrastructureProvisioned = new(true) }
	w.machine("m", "held")
	w.machine("free", "free")
	w.status("free", provisioned)
	w.says("AfterMachineProvisioned", func() (sdk.Answer, error) { return nil, sdk.Failf("not now") })
	w.register("AfterMachineProvisioned")
	w.start()
	w.machine("late", "held")
	w.status("m", provisioned)
	w.event("m", "Failed: handler \"provisioned.acme\": not now")
	told := func(name string) {
		t.Helper()
		w.eventually(name+" is told", func() (string, bool) {
			_, ok := w.get(name).Annotations[machines.ProvisionedAnnotation]
			return strconv.Itoa(w.called("AfterMachineProvisioned", name)), ok
		})
	}
	w.says("AfterMachineProvisioned", nil)
	told("m")
	n := w.called("AfterMachineProvisioned", "m")
	w.stop()
	w.start()
	w.status("late", provisioned)
	told("late")
	if again := w.called("AfterMachineProvisioned", "m"); again != n || n < 2 {
		t.Errorf("it was called %d times, and %d times after a restart", n, again)
	}
	if n := w.called("AfterMachineProvisioned", "free"); n > 0 {
		t.Errorf("it was called for a Machine without handlers")
	}
	if _, ok := w.get("free").Annotations[machines.ProvisionedAnnotation]; ok {
		t.Error("a Machine without handlers has the annotation")
	}
}

// TestRelease takes the annotations off, first of a Cluster that is held off while the controllers work, then of all when
// they are stopped.
func TestRelease(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.register("BeforeMachineDrain", "BeforeMachineTerminate")
	w.says("BeforeMachineDrain", waits("long"))
	for _, name := range []string{"a", "b"} {
		w.machine(name, "held")
	}
	w.start()
	w.has("a", "drain", "terminate")
	w.has("b", "drain", "terminate")
	w.delete("a")
	w.waits("a", drain)
	w.held("a", "BeforeMachineDrain: drain.acme: long")
	w.eventually("the controllers hold their Lease", func() (string, bool) {
		lease, holder, err := machines.Holder(t.Context(), w.client, w.namespace, time.Now())
		return fmt.Sprint(lease, holder, err), holder != "" && err == nil
	})
	released, err := machines.Release(t.Context(), w.client, w.namespace, true)
	if err != nil || released.Clusters != 1 {
		t.Fatalf("%+v, %v", released, err)
	}
	w.has("a")
	w.has("b")
	w.held("a", "")
	w.machine("new", "held")
	if n, err := machines.Resume(t.Context(), w.client, w.namespace); n != 1 || err != nil {
		t.Fatalf("%d Clusters resumed, %v", n, err)
	}
	w.has("b", "drain", "terminate")
	w.has("new", "drain", "terminate")
	w.has("a") // it is being deleted
	w.stop()
	if lease, holder, err := machines.Holder(t.Context(), w.client, w.namespace, time.Now()); holder != "" || err != nil {
		t.Errorf("%s holds %s, %v", holder, lease, err)
	}
	if released, err = machines.Release(t.Context(), w.client, w.namespace, false); err != nil || released.Machines != 2 {
		t.Errorf("%+v, %v", released, err)
	}
	w.has("b")
}

// TestManyMachines has 2,000 Machines, ten of which have a handler: these alone are annotated, and a change of the
// registry, which makes the controllers look at all, writes nothing.
func TestManyMachines(t *testing.T) {
	const all, few = 2000, 10
	w := newFixture(t)
	for i := range all {
		tier := "free"
		if i%(all/few) == 0 {
			tier = "held"
		}
		w.machine(fmt.Sprintf("m%04d", i), tier)
	}
	w.register("BeforeMachineDrain", "BeforeMachineTerminate")
	w.start()
	annotated := func() int {
		list := &clusterv1.MachineList{}
		if err := w.client.List(t.Context(), list, client.InNamespace(w.namespace)); err != nil {
			t.Fatal(err)
		}
		n := 0
		for i := range list.Items {
			if len(annotationsOf(&list.Items[i])) == 2 {
				n++
			}
		}
		return n
	}
	w.eventually("ten Machines are annotated", func() (string, bool) {
		n := annotated()
		return strconv.Itoa(n), n == few
	})
	w.register("BeforeMachineDrain", "BeforeMachineTerminate", "AfterMachineProvisioned")
	last := w.machine("z", "held") // comes after the others
	w.has(last.Name, "drain", "terminate")
	if n := annotated(); n != few+1 {
		t.Errorf("%d Machines are annotated, want %d", n, few+1)
	}
	if n := w.writes.Load(); n > 50 {
		t.Errorf("there were %d writes, want 50 at most", n)
	} else {
		t.Logf("%d Machines, %d annotated, %d writes", all+1, few+1, n)
	}
}

// TestMissingKinds starts the controllers where nobody is: they try again, and end when they are asked to.
func TestMissingKinds(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.new = func(c *machines.Config) { c.REST.Host = "https://127.0.0.1:1" }
	w.start()
	w.stop()
}
