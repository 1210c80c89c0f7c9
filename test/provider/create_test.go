// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"fmt"
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"
	"k8s.io/apimachinery/pkg/api/meta"

	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	infrahooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/infrastructure/v1alpha1"
	machinesv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/machines/v1alpha1"
	infrav1 "github.com/hookgate/hookgate/infrastructure/v1alpha1"
)

// creates makes the gateway answer BeforeMachineCreate, and the cloud everything else.
func (w *fixture) creates(answer func(*machinesv1alpha1.BeforeMachineCreateRequest) *machinesv1alpha1.BeforeMachineCreateResponse) {
	w.cloud.answers(func(req proto.Message) (proto.Message, error) {
		r, ok := req.(*machinesv1alpha1.BeforeMachineCreateRequest)
		if !ok {
			return nil, nil
		}
		return answer(r), nil
	})
}

func newCreates(t *testing.T) *fixture {
	t.Helper()
	return newFixture(t, func(w *fixture) { w.cloud.creates = true })
}

// isHeld reports whether a machine is held, with a message, and nothing is recorded for it.
func isHeld(message string) func(*infrav1.HookgateMachine) bool {
	return func(m *infrav1.HookgateMachine) bool {
		c := meta.FindStatusCondition(m.Status.Conditions, infrav1.ReadyCondition)
		return c != nil && c.Reason == infrav1.HeldByHookReason && c.Message == message &&
			m.Spec.ExternalID == "" && len(m.Finalizers) == 0
	}
}

// TestCreateIsHeld holds machines by a wait and by a Failure, before anything is made or recorded. One that is let go is
// not asked about again, also by other controllers, and one that is deleted meanwhile goes.
func TestCreateIsHeld(t *testing.T) {
	w := newCreates(t)
	w.readyCluster("c")
	w.creates(func(*machinesv1alpha1.BeforeMachineCreateRequest) *machinesv1alpha1.BeforeMachineCreateResponse {
		return &machinesv1alpha1.BeforeMachineCreateResponse{Status: success, Message: "waits for a place", RetryAfterSeconds: 1}
	})
	_, m := w.newMachine("c", "m")
	eventually(w, m, "held", isHeld("BeforeMachineCreate: waits for a place"))
	w.creates(func(*machinesv1alpha1.BeforeMachineCreateRequest) *machinesv1alpha1.BeforeMachineCreateResponse {
		return &machinesv1alpha1.BeforeMachineCreateResponse{
			Status: hooksv1alpha1.ResponseStatus_RESPONSE_STATUS_FAILURE, Message: "no team",
		}
	})
	eventually(w, m, "refused", isHeld("BeforeMachineCreate: the extension answers Failure: no team"))
	_, gone := w.newMachine("c", "gone")
	eventually(w, gone, "refused", isHeld("BeforeMachineCreate: the extension answers Failure: no team"))
	w.delete(gone)
	w.gone(gone)
	if made := w.cloud.existing(); len(made) > 0 {
		t.Errorf("%v were made", made)
	}
	w.restart()
	w.cloud.answers(nil)
	eventually(w, m, "provisioned", isProvisioned)
	asked := len(calls[*machinesv1alpha1.BeforeMachineCreateRequest](w.cloud))
	w.restart()
	since := len(calls[*infrahooksv1alpha1.ReconcileMachineRequest](w.cloud))
	w.until("the new controllers have called the extension", func() bool {
		return len(calls[*infrahooksv1alpha1.ReconcileMachineRequest](w.cloud)) > since
	})
	if again := len(calls[*machinesv1alpha1.BeforeMachineCreateRequest](w.cloud)); again != asked {
		t.Errorf("it was asked %d times again about a machine that exists", again-asked)
	}
}

// TestQuota creates six machines at the same time, of which a handler lets two go per Cluster, and three per namespace.
// When one is gone, the next is made.
func TestQuota(t *testing.T) {
	w := newCreates(t)
	for _, cluster := range []string{"a", "b"} {
		w.readyCluster(cluster)
	}
	w.creates(func(r *machinesv1alpha1.BeforeMachineCreateRequest) *machinesv1alpha1.BeforeMachineCreateResponse {
		if r.GetMachine() == nil || r.GetCluster() == nil || r.GetInfrastructureMachine() == nil {
			t.Errorf("a request lacks an object: %v", r)
		}
		a := &machinesv1alpha1.BeforeMachineCreateResponse{Status: success}
		if r.GetClusterMachines() >= 2 || r.GetNamespaceMachines() >= 3 {
			a.RetryAfterSeconds, a.Message = 1, "the quota is used up"
		}
		return a
	})
	var all []*infrav1.HookgateMachine
	for i := range 3 {
		for _, cluster := range []string{"a", "b"} {
			_, m := w.newMachine(cluster, fmt.Sprintf("%s%d", cluster, i))
			all = append(all, m)
		}
	}
	settled := func(n int) {
		t.Helper()
		w.until(fmt.Sprintf("%d machines are made, and the others held", n), func() bool {
			made, held := 0, 0
			for _, m := range all {
				if !w.get(m) {
					continue
				}
				switch {
				case isProvisioned(m):
					made++
				case isHeld("BeforeMachineCreate: the quota is used up")(m):
					held++
				}
			}
			return made == n && made+held == len(all)
		})
	}
	settled(3)
	asked := len(calls[*machinesv1alpha1.BeforeMachineCreateRequest](w.cloud))
	w.until("they are asked about again", func() bool {
		return len(calls[*machinesv1alpha1.BeforeMachineCreateRequest](w.cloud)) > asked+6
	})
	if n := len(w.cloud.existing()); n != 3 {
		t.Errorf("there are %d machines, want 3", n)
	}
	i := slices.IndexFunc(all, isProvisioned)
	w.delete(all[i])
	w.gone(all[i])
	all = slices.Delete(all, i, i+1)
	settled(3)
}
