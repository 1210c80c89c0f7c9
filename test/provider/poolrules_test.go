// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"slices"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	infrahooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/infrastructure/v1alpha1"
	infrav1 "github.com/hookgate/hookgate/provider/v1alpha1"
	"github.com/hookgate/hookgate/test/process"
)

// missingFor is how long an instance must be missing before its provider ID leaves the list.
const missingFor = 30 * time.Second

// eventuallyWithin is eventually with another time to wait.
func (w *fixture) eventuallyWithin(d time.Duration, p *infrav1.HookgateMachinePool, what string, ok func(*infrav1.HookgateMachinePool) bool) {
	w.t.Helper()
	for deadline := time.Now().Add(d); !w.get(p) || !ok(p); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			w.t.Fatalf("%s: still not: %s; the list is %v, and the conditions are:\n%s", p.Name, what, p.Spec.ProviderIDList, conditionsOf(p))
		}
	}
}

// instancesMade returns how many instances of groups were ever made.
func (c *cloud) instancesMade() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.sequence
}

// makesPool makes the cloud carry out a request about a pool.
func (w *fixture) makesPool(req proto.Message) {
	r, _ := req.(*infrahooksv1alpha1.ReconcileMachinePoolRequest)
	if _, err := w.cloud.ReconcileMachinePool(w.t.Context(), r); err != nil {
		w.t.Error(err)
	}
}

func isPoolRequest(req proto.Message) bool {
	_, ok := req.(*infrahooksv1alpha1.ReconcileMachinePoolRequest)
	return ok
}

// Rule 2, of pools: an answer that is lost after the instances were made changes Synced alone, and they are not made
// again; neither are those whose answer could not be recorded.
func TestRule2TheAnswerAboutAPoolIsLost(t *testing.T) {
	for name, change := range map[string]func(*infrav1.HookgateMachinePool){
		"Group": grouped, "Machines": func(*infrav1.HookgateMachinePool) {},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t, func(w *fixture) { w.cloud.pools = true })
			w.readyCluster("c")
			lose := func() {
				w.cloud.answers(func(req proto.Message) (proto.Message, error) {
					if !isPoolRequest(req) {
						return nil, nil
					}
					w.makesPool(req)
					return nil, status.Error(codes.Unavailable, "the connection is cut")
				})
			}
			lost := func(p *infrav1.HookgateMachinePool) bool {
				return has(p, infrav1.SyncedCondition, metav1.ConditionFalse, infrav1.CallFailedReason, "")
			}
			lose()
			pool, infra := w.newPool("c", "p", 2, change)
			eventually(w, infra, "not in sync", lost)
			if len(infra.Spec.ProviderIDList) != 0 || infra.Status.Replicas != nil || infra.Status.Ready != nil ||
				w.cloud.instancesMade() != 2 {
				t.Errorf("after an answer that was lost: %v %v; %d were made", infra.Spec, infra.Status, w.cloud.instancesMade())
			}
			w.cloud.answers(nil)
			eventually(w, infra, "2 instances", settled(2))
			before := slices.Clone(infra.Spec.ProviderIDList)
			lose()
			update(w, pool, func(p *clusterv1.MachinePool) { p.Spec.Replicas = ptr.To[int32](3) })
			eventually(w, infra, "not in sync", lost)
			if !slices.Equal(infra.Spec.ProviderIDList, before) || !settled(2)(infra) {
				t.Errorf("an answer that was lost changed more than Synced: %v %v", infra.Spec, infra.Status)
			}
			// Now an answer comes, and cannot be recorded.
			w.cloud.answers(func(req proto.Message) (proto.Message, error) {
				if isPoolRequest(req) {
					w.writes.refused("/hookgatemachinepools/")
				}
				return nil, nil
			})
			n := len(calls[*infrahooksv1alpha1.ReconcileMachinePoolRequest](w.cloud))
			w.until("asked again, twice", func() bool {
				return len(calls[*infrahooksv1alpha1.ReconcileMachinePoolRequest](w.cloud)) >= n+2
			})
			w.cloud.answers(nil)
			w.writes.refused("")
			eventually(w, infra, "3 instances", settled(3))
			if made := w.cloud.instancesMade(); made != 3 || len(w.cloud.instances()) != 3 {
				t.Errorf("%d instances were made, and there are %v; want 3", made, w.cloud.instances())
			}
		})
	}
}

// Controllers that are killed after the instances of a pool were made, and before they know it, find them again.
func TestRule2KilledAfterAPoolWasMade(t *testing.T) {
	process.Program(t, "HOOKGATE_BIN")
	w := newFixture(t, func(w *fixture) { w.cloud.pools = true })
	w.stop()
	p := w.command(t)
	w.readyCluster("c")
	made := w.hang(isPoolRequest, w.makesPool)
	_, infra := w.newPool("c", "p", 2)
	<-made
	p.Kill()
	if !w.get(infra) || infra.Spec.ExternalID == "" || len(infra.Finalizers) == 0 || len(infra.Spec.ProviderIDList) != 0 {
		t.Fatalf("before the answer, the pool is %v %v", infra.Finalizers, infra.Spec)
	}
	w.command(t)
	eventually(w, infra, "2 instances", settled(2))
	shown := w.shows("p", 2)
	if n := w.cloud.instancesMade(); n != 2 || len(w.cloud.instances()) != 2 {
		t.Errorf("%d instances were made, and there are %v; want 2", n, w.cloud.instances())
	}
	for _, m := range shown {
		if !slices.Contains(infra.Spec.ProviderIDList, m.Spec.ProviderID) {
			t.Errorf("%s stands for %s, which is not in %v", m.Name, m.Spec.ProviderID, infra.Spec.ProviderIDList)
		}
	}
}

// Rule 8: what is missing from complete answers leaves the list 30 s after the first of them, and not before. An answer
// without any instance has to be acknowledged with the pool's own externalID as well.
func TestRule8WhatIsMissingLeavesAfterHalfAMinute(t *testing.T) {
	for name, left := range map[string]int{"partial": 1, "empty": 0} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t, func(w *fixture) { w.cloud.pools = true })
			w.readyCluster("c")
			_, infra := w.newPool("c", "p", 2, grouped)
			eventually(w, infra, "2 instances", settled(2))
			before := slices.Clone(infra.Spec.ProviderIDList)
			w.cloud.answersPools(func(r *infrahooksv1alpha1.ReconcileMachinePoolResponse) {
				r.Instances, r.InstanceCount = r.Instances[:left], new(int32(left))
			})
			if left == 0 {
				for _, acknowledged := range []string{"", "another"} {
					update(w, infra, func(p *infrav1.HookgateMachinePool) {
						p.Annotations[infrav1.AcceptEmptyAnnotation] = acknowledged
					})
					n := w.cloud.count()
					w.until("asked again", func() bool { return w.cloud.count() >= n+2 })
					eventually(w, infra, "doubted", func(p *infrav1.HookgateMachinePool) bool {
						return has(p, infrav1.SyncedCondition, metav1.ConditionFalse, infrav1.EmptyListReason, p.Spec.ExternalID)
					})
					if !slices.Equal(infra.Spec.ProviderIDList, before) || *infra.Status.Replicas != 2 {
						t.Errorf("acknowledged with %q: %v %v", acknowledged, infra.Spec.ProviderIDList, infra.Status)
					}
				}
				update(w, infra, func(p *infrav1.HookgateMachinePool) {
					p.Annotations[infrav1.AcceptEmptyAnnotation] = p.Spec.ExternalID
				})
			}
			start := time.Now()
			w.eventuallyWithin(patience, infra, "the number of instances", func(p *infrav1.HookgateMachinePool) bool {
				return *p.Status.Replicas == int32(left)
			})
			if !slices.Equal(infra.Spec.ProviderIDList, before) {
				t.Fatalf("after the first answer the list is %v, want %v", infra.Spec.ProviderIDList, before)
			}
			first := time.Now()
			w.eventuallyWithin(missingFor+patience, infra, "what is missing has left", func(p *infrav1.HookgateMachinePool) bool {
				return len(p.Spec.ProviderIDList) == left
			})
			if waited := time.Since(start); waited < missingFor {
				t.Errorf("it left after %s, want %s or more", waited, missingFor)
			}
			t.Logf("it left %s after the first answer without it was recorded", time.Since(first).Round(time.Second))
			if !ptr.Deref(infra.Status.Ready, false) || !ptr.Deref(infra.Status.Initialization.Provisioned, false) {
				t.Errorf("ready and provisioned are off: %v", infra.Status)
			}
		})
	}
}

// A pool that is scaled to nothing says so with a written zero, stays ready, and comes back.
func TestPoolScaledToZero(t *testing.T) {
	for name, c := range map[string]struct {
		pools  bool
		change func(*infrav1.HookgateMachinePool)
	}{
		"of-machines": {false, func(*infrav1.HookgateMachinePool) {}},
		"instances":   {true, func(*infrav1.HookgateMachinePool) {}},
		"group":       {true, grouped},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t, func(w *fixture) { w.cloud.pools = c.pools })
			w.readyCluster("c")
			pool, infra := w.newPool("c", "p", 2, c.change)
			eventually(w, infra, "2 instances", settled(2))
			update(w, pool, func(p *clusterv1.MachinePool) { p.Spec.Replicas = ptr.To[int32](0) })
			// Without Machines, nothing says which instances go: they leave the list as those that are missing.
			w.eventuallyWithin(missingFor+patience, infra, "nothing", func(p *infrav1.HookgateMachinePool) bool {
				return settled(0)(p) && has(p, infrav1.SyncedCondition, metav1.ConditionTrue, "", "")
			})
			w.until("nothing is left", func() bool {
				return len(w.cloud.existing()) == 0 && len(w.cloud.instances()) == 0 && len(w.poolMachines("p")) == 0
			})
			update(w, pool, func(p *clusterv1.MachinePool) { p.Spec.Replicas = ptr.To[int32](1) })
			eventually(w, infra, "1 instance", settled(1))
			w.delete(infra)
			w.gone(infra)
		})
	}
}
