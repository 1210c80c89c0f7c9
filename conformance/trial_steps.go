// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"context"
	"slices"
	"strings"
	"sync"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	infrastructurev1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/infrastructure/v1alpha1"
)

// deleteNothing deletes what never was.
func (t *trial) deleteNothing(ctx context.Context, name string) {
	if t.provider.handlers[name] == nil || ctx.Err() != nil {
		return
	}
	t.try(checkGone)
	// A provider that looks in the background says Deleting first.
	if x, ok := t.until(ctx, name, t.cluster+"-never", nil, gone); !ok && ctx.Err() == nil {
		t.failf(checkGone, x, "%s of something that never existed does not answer Gone", name)
	}
}

// makeCluster makes the cluster, and looks at it again.
func (t *trial) makeCluster(ctx context.Context) {
	x := t.settle(ctx, "ReconcileCluster", t.cluster, nil)
	if x == nil {
		return
	}
	a := x.message.(*infrastructurev1alpha1.ReconcileClusterResponse)
	t.outputs = a.GetOutputs()
	// The endpoint is settled now.
	t.same(ctx, x, "ReconcileCluster", t.cluster, func(m proto.Message) {
		m.(*infrastructurev1alpha1.ReconcileClusterRequest).ControlPlaneEndpoint = a.GetControlPlaneEndpoint()
	})
}

// starting is a change of a ReconcileMachineRequest for a machine that does not exist yet.
func (t *trial) starting(m proto.Message) {
	r := m.(*infrastructurev1alpha1.ReconcileMachineRequest)
	r.Version = t.options.version()
	r.Bootstrap = &infrastructurev1alpha1.Bootstrap{Data: t.options.bootstrap(), Format: "cloud-config"}
}

// makeMachine makes a machine, with several requests at the same time, and returns its provider ID, or "".
func (t *trial) makeMachine(ctx context.Context) string {
	if t.provider.handlers["ReconcileMachine"] == nil {
		return ""
	}
	t.try(checkSole)
	answers := make([]*exchange, 4)
	var calls sync.WaitGroup
	for i := range answers {
		calls.Go(func() { answers[i] = t.call(ctx, "ReconcileMachine", t.machine, t.starting) })
	}
	calls.Wait()
	if ctx.Err() != nil {
		return ""
	}
	x := t.settle(ctx, "ReconcileMachine", t.machine, t.starting)
	if x == nil {
		return ""
	}
	id := x.message.(*infrastructurev1alpha1.ReconcileMachineResponse).GetProviderId()
	for _, other := range answers {
		m, ok := other.message.(*infrastructurev1alpha1.ReconcileMachineResponse)
		if ok && m.GetProviderId() != "" && m.GetProviderId() != id {
			t.failf(checkSole, other, "requests with one external ID made two machines, %s and %s", m.GetProviderId(), id)
		}
	}
	t.checkID(x, id)
	t.same(ctx, x, "ReconcileMachine", t.machine, func(m proto.Message) {
		r := m.(*infrastructurev1alpha1.ReconcileMachineRequest)
		r.Version, r.ProviderId = t.options.version(), id
	})
	return id
}

// checkID adds what is wrong with the provider ID of a machine that is ready.
func (t *trial) checkID(x *exchange, id string) {
	t.try(checkProviderIDs)
	switch prefix := t.provider.prefix(); {
	case id == "":
		t.failf(checkProviderIDs, x, "the machine is Ready, but has no provider ID")
	case prefix != "" && !strings.HasPrefix(id, prefix):
		t.failf(checkProviderIDs, x, "the provider ID %q does not begin with %q, which was announced", id, prefix)
	case id == prefix, strings.ContainsFunc(id, func(r rune) bool { return r <= ' ' || r == 0x7f }):
		t.failf(checkProviderIDs, x, "the provider ID %q is the prefix alone, or has spaces", id)
	}
}

// makePool makes a pool of two machines, and removes one of them.
func (t *trial) makePool(ctx context.Context) {
	sized := func(replicas int32, remove ...string) func(proto.Message) {
		return func(m proto.Message) {
			r := m.(*infrastructurev1alpha1.ReconcileMachinePoolRequest)
			r.Replicas, r.Remove, r.Version, r.Revision = &replicas, remove, t.options.version(), "check"
			r.Bootstrap = &infrastructurev1alpha1.Bootstrap{Data: t.options.bootstrap(), Format: "cloud-config"}
		}
	}
	x := t.settle(ctx, "ReconcileMachinePool", t.pool, sized(2))
	if x == nil {
		return
	}
	t.same(ctx, x, "ReconcileMachinePool", t.pool, sized(2))
	ids := t.idsOf(x)
	if len(ids) != 2 {
		t.failf(checkLists, x, "the pool is Ready, but has %d machines with a provider ID, not 2", len(ids))
		return
	}
	t.try(checkRemove)
	want := ids[1:]
	y, ok := t.until(ctx, "ReconcileMachinePool", t.pool, sized(1, ids[0]), func(m proto.Message) bool {
		return ready(m) && !slices.Contains(providerIDs(m), ids[0])
	})
	switch {
	case ctx.Err() != nil:
	case !ok:
		t.failf(checkRemove, y, "the machine %s, which was to be removed, is still there", ids[0])
	case !slices.Equal(t.idsOf(y), want):
		t.failf(checkRemove, y, "%s was to be removed, but the machines are now %v", ids[0], providerIDs(y.message))
	}
}

// idsOf returns the provider IDs of the machines of a pool, sorted.
func (t *trial) idsOf(x *exchange) []string {
	ids := providerIDs(x.message)
	for _, id := range ids {
		t.checkID(x, id)
	}
	slices.Sort(ids)
	return ids
}

func providerIDs(m proto.Message) []string {
	a, _ := m.(*infrastructurev1alpha1.ReconcileMachinePoolResponse)
	var ids []string
	for _, i := range a.GetInstances() {
		if i.GetProviderId() != "" {
			ids = append(ids, i.GetProviderId())
		}
	}
	return ids
}

// listed adds what is wrong with the list of a pool.
func (t *trial) listed(x *exchange) {
	a, ok := x.message.(*infrastructurev1alpha1.ReconcileMachinePoolResponse)
	if !ok || x.status() != success {
		return
	}
	t.try(checkLists)
	if n := len(a.GetInstances()); a.InstanceCount == nil {
		t.failf(checkLists, x, "there is no instanceCount")
	} else if int(a.GetInstanceCount()) != n {
		t.failf(checkLists, x, "instanceCount is %d, but there are %d instances", a.GetInstanceCount(), n)
	}
	seen := map[string]bool{}
	for _, i := range a.GetInstances() {
		for _, key := range []string{"name " + i.GetName(), "provider ID " + i.GetProviderId()} {
			if seen[key] && key != "provider ID " {
				t.failf(checkLists, x, "two instances have the %s", key)
			}
			seen[key] = true
		}
	}
}

// settle asks until the answer is Ready. It returns nil if it never is.
func (t *trial) settle(ctx context.Context, name, id string, change func(proto.Message)) *exchange {
	if t.provider.handlers[name] == nil || ctx.Err() != nil {
		return nil
	}
	t.try(checkReady)
	x, ok := t.until(ctx, name, id, change, ready)
	switch {
	case ctx.Err() != nil:
		return nil
	case !ok:
		t.failf(checkReady, x, "%s is not Ready after %s", name, t.options.wait())
		return nil
	}
	return x
}

// same asks once more, and compares the answer with the one before.
func (t *trial) same(ctx context.Context, x *exchange, name, id string, change func(proto.Message)) {
	t.try(checkSame)
	again, ok := t.until(ctx, name, id, change, func(proto.Message) bool { return true })
	if ctx.Err() == nil && !ok {
		t.failf(checkSame, again, "the same request again is not answered")
	} else if ctx.Err() == nil && !proto.Equal(lasting(x.message), lasting(again.message)) {
		t.failf(checkSame, again, "the answer to the same request differs from the one before: "+
			"%s", excerpt(t.masked(x).body))
	}
}

// lasting returns the part of an answer that does not change while nothing is asked for.
func lasting(m proto.Message) proto.Message {
	if m == nil {
		return nil
	}
	m = proto.Clone(m)
	fields := m.ProtoReflect().Descriptor().Fields()
	for _, name := range []protoreflect.Name{"message", "retry_after_seconds", "conditions", "unknown_members"} {
		m.ProtoReflect().Clear(fields.ByName(name))
	}
	if a, ok := m.(*infrastructurev1alpha1.ReconcileMachinePoolResponse); ok {
		slices.SortFunc(a.GetInstances(), func(a, b *infrastructurev1alpha1.Instance) int {
			return strings.Compare(a.GetName(), b.GetName())
		})
	}
	return m
}

// remakeMachine deletes the machine, and asks for it with its provider ID: it must not be made again.
func (t *trial) remakeMachine(ctx context.Context, id string) {
	if id == "" || !t.remove(ctx, "DeleteMachine", t.machine) {
		return
	}
	t.try(checkAgain)
	x, _ := t.until(ctx, "ReconcileMachine", t.machine, func(m proto.Message) {
		t.starting(m)
		m.(*infrastructurev1alpha1.ReconcileMachineRequest).ProviderId = id
	}, func(m proto.Message) bool { // a provider that looks in the background says so first
		a, ok := m.(*infrastructurev1alpha1.ReconcileMachineResponse)
		return !ok || a.GetPhase() != infrastructurev1alpha1.Phase_PHASE_PROVISIONING
	})
	if x == nil {
		return
	}
	a, ok := x.message.(*infrastructurev1alpha1.ReconcileMachineResponse)
	if ok && ready(a) && a.GetProviderId() == id {
		t.failf(checkDeleted, x, "the machine %s is said to be Gone, but is still Ready", id)
		return
	}
	if ctx.Err() == nil && x.status() == success &&
		(!ok || a.GetPhase() != infrastructurev1alpha1.Phase_PHASE_FAILED || a.GetReason() != "InstanceGone") {
		t.failf(checkAgain, x, "the machine that was recorded as %s is gone, but is not Failed with the reason "+
			"InstanceGone", id)
	}
}

// remove deletes until everything is gone, and once more. It reports whether it is.
func (t *trial) remove(ctx context.Context, name, id string) bool {
	if t.provider.handlers[name] == nil {
		return false
	}
	t.try(checkDeleted)
	x, ok := t.until(ctx, name, id, nil, gone)
	if !ok {
		t.failf(checkDeleted, x, "%s is not Gone after %s, and may be left behind", id, t.options.wait())
		return false
	}
	if again := t.asked(ctx, name, id, nil); ctx.Err() == nil && again.status() == success && !gone(again.message) {
		t.failf(checkDeleted, again, "an object that was Gone exists again")
	}
	return true
}
