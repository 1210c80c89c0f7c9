// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/protobuf/proto"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrahooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/infrastructure/v1alpha1"
	infrav1 "github.com/hookgate/hookgate/infrastructure/v1alpha1"
)

// TestFleet restarts the controllers of 20 machines in 4 Clusters, and asks about each machine again: nothing is made
// again, and nothing is written while nothing changes.
func TestFleet(t *testing.T) {
	w := newFixture(t)
	w.cloud.answers(askAgain)
	if err := w.createFleet(t.Context(), 4, 5); err != nil {
		t.Fatal(err)
	}
	w.untilFleet(20)
	if got := len(w.cloud.existing()); got != 20 {
		t.Errorf("there are %d machines, want 20", got)
	}
	w.restart()
	w.untilAskedTwice(len(w.cloud.asked(0)), 24) // what a first answer changes is written before the second call
	if written := w.writes.all(); len(written) > 0 {
		t.Errorf("the controllers wrote while nothing changed: %v", written)
	}
	w.madeOnce()
}

// askAgain answers that everything is ready, and wants to be asked again after a second.
func askAgain(req proto.Message) (proto.Message, error) {
	switch r := req.(type) {
	case *infrahooksv1alpha1.ReconcileMachineRequest:
		if r.GetProviderId() == "" {
			return nil, nil // it has to be made
		}
		a := readyMachine(r.GetSubject().GetExternalId())
		a.RetryAfterSeconds = 1
		return a, nil
	case *infrahooksv1alpha1.ReconcileClusterRequest:
		return &infrahooksv1alpha1.ReconcileClusterResponse{
			Status: success, Phase: infrahooksv1alpha1.Phase_PHASE_READY, RetryAfterSeconds: 1,
			ControlPlaneEndpoint: &infrahooksv1alpha1.Endpoint{Host: "10.0.0.1", Port: 6443},
		}, nil
	}
	return nil, nil
}

// createFleet creates Clusters, each with the same number of machines, as Cluster API does: the machines once the
// infrastructure of their Cluster is provisioned.
func (w *fixture) createFleet(ctx context.Context, clusters, machines int) error {
	group, ctx := errgroup.WithContext(ctx)
	for c := range clusters {
		group.Go(func() error { return w.createOne(ctx, fmt.Sprintf("c%03d", c), machines) })
	}
	return group.Wait()
}

// createOne creates a Cluster with credentials of its own, and its machines.
func (w *fixture) createOne(ctx context.Context, name string, machines int) error {
	cluster := newCluster(name)
	infra := newInfraCluster(name, w.namespace)
	infra.Spec.CredentialsRef = &infrav1.SecretReference{Name: name}
	if err := w.createAll(ctx, secret(name, "token", "t-"+name), cluster); err != nil {
		return err
	}
	own(infra, "Cluster", cluster)
	if err := w.createAll(ctx, infra); err != nil {
		return err
	}
	for !ptr.Deref(infra.Status.Initialization.Provisioned, false) {
		if err := pause(ctx, 100*time.Millisecond); err != nil {
			return fmt.Errorf("%s is not provisioned: %w", name, err)
		}
		if err := w.client.Get(ctx, client.ObjectKeyFromObject(infra), infra); err != nil {
			return err
		}
	}
	before := cluster.DeepCopy()
	cluster.Status.Initialization.InfrastructureProvisioned = new(true)
	if err := w.client.Status().Patch(ctx, cluster, client.MergeFrom(before)); err != nil {
		return err
	}
	for i := range machines {
		machine := newMachine(name, fmt.Sprintf("%s-m%03d", name, i))
		if err := w.createAll(ctx, bootstrapOf(machine.Name), machine); err != nil {
			return err
		}
		infra := newInfraMachine(name, machine.Name)
		own(infra, "Machine", machine)
		if err := w.createAll(ctx, infra); err != nil {
			return err
		}
	}
	return nil
}

// createAll creates objects in the fixture's namespace.
func (w *fixture) createAll(ctx context.Context, objects ...client.Object) error {
	for _, o := range objects {
		w.place(o)
		if err := w.client.Create(ctx, o); err != nil {
			return err
		}
	}
	return nil
}

// fleet returns the HookgateMachines of the fixture.
func (w *fixture) fleet() []infrav1.HookgateMachine {
	w.t.Helper()
	list := &infrav1.HookgateMachineList{}
	if err := w.client.List(w.t.Context(), list, client.InNamespace(w.namespace)); err != nil {
		w.t.Fatal(err)
	}
	return list.Items
}

// readyFleet returns how many machines are ready.
func (w *fixture) readyFleet() int {
	w.t.Helper()
	ready := 0
	for _, m := range w.fleet() {
		if isProvisioned(&m) && has(&m, infrav1.ReadyCondition, metav1.ConditionTrue, "", "") {
			ready++
		}
	}
	return ready
}

// untilFleet waits until so many machines are ready.
func (w *fixture) untilFleet(n int) {
	w.t.Helper()
	w.until(fmt.Sprintf("%d machines ready", n), func() bool { return w.readyFleet() == n })
}

// madeOnce checks that every machine exists once, and was made once.
func (w *fixture) madeOnce() {
	w.t.Helper()
	var ids []string
	for _, m := range w.fleet() {
		ids = append(ids, m.Spec.ExternalID)
		if n := w.cloud.madeOf(m.Spec.ExternalID); n != 1 {
			w.t.Errorf("%s was made %d times", m.Name, n)
		}
	}
	slices.Sort(ids)
	if got := w.cloud.existing(); !slices.Equal(got, ids) {
		w.t.Errorf("there are %d machines outside, and %d HookgateMachines", len(got), len(ids))
	}
}

// asked returns the external_ids of the requests about clusters and machines after the first since.
func (c *cloud) asked(since int) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var ids []string
	for _, req := range c.requests {
		switch r := req.(type) {
		case *infrahooksv1alpha1.ReconcileClusterRequest:
			ids = append(ids, r.GetSubject().GetExternalId())
		case *infrahooksv1alpha1.ReconcileMachineRequest:
			ids = append(ids, r.GetSubject().GetExternalId())
		}
	}
	return ids[since:]
}

// untilAskedTwice waits until the extension was asked about each of so many objects twice, after the first since
// requests.
func (w *fixture) untilAskedTwice(since, objects int) {
	w.t.Helper()
	w.until(fmt.Sprintf("asked twice about each of %d objects", objects), func() bool {
		count := map[string]int{}
		for _, id := range w.cloud.asked(since) {
			count[id]++
		}
		twice := 0
		for _, n := range count {
			if n > 1 {
				twice++
			}
		}
		return twice == objects
	})
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}

// Controllers whose cache lags behind do not take back what they have written, and do not ask again.
func TestLaggingCache(t *testing.T) {
	w := newFixture(t)
	w.readyCluster("c")
	release := sync.OnceFunc(w.writes.held.Unlock)
	var lag sync.Once
	var waited atomic.Int64 // writes of the status before the first call
	w.cloud.answers(func(req proto.Message) (proto.Message, error) {
		if _, ok := req.(*infrahooksv1alpha1.ReconcileMachineRequest); ok {
			lag.Do(func() {
				waited.Store(int64(w.writes.accepted("/hookgatemachines/m/status")))
				w.writes.held.Lock()
				t.Cleanup(release) // before the controllers end, which wait for their watches
			})
		}
		return nil, nil
	})
	machine, m := w.newMachine("c", "m")
	eventually(w, m, "ready", func(m *infrav1.HookgateMachine) bool {
		return has(m, infrav1.ReadyCondition, metav1.ConditionTrue, "", "")
	})
	// The Machine, whose events are not held, has the controllers look again, at a cache without the provider ID.
	before := w.writes.reads("/hookgatemachines/m")
	update(w, machine, func(m *clusterv1.Machine) { m.Labels["looked"] = "again" })
	w.until("looked at past the cache", func() bool { return w.writes.reads("/hookgatemachines/m") > before })
	release()
	update(w, machine, func(m *clusterv1.Machine) { m.Spec.Version = "v1.34.1" }) // which the extension has to know
	w.until("asked about another version", func() bool {
		return len(calls[*infrahooksv1alpha1.ReconcileMachineRequest](w.cloud)) == 2
	})
	if n := w.writes.accepted("/hookgatemachines/m/status") - int(waited.Load()); n != 1 {
		t.Errorf("the status was written %d times after the first call, want once:\n%s", n, conditionsOf(m))
	}
	if n := w.cloud.madeOf(m.Spec.ExternalID); n != 1 {
		t.Errorf("made %d times", n)
	}
}
