// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package infrastructure

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	machinesv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/machines/v1alpha1"
	"github.com/hookgate/hookgate/infrastructure/internal/calls"
	infrav1 "github.com/hookgate/hookgate/infrastructure/v1alpha1"
)

// turnInterval is when to try again if another machine of the namespace is asked about.
const turnInterval = time.Second

// creation lets one machine of a namespace at a time ask whether it may be made, so that two do not take the last place
// of a quota. It is safe for concurrent use.
type creation struct {
	mu   sync.Mutex
	busy map[string]bool // by namespace
	// letGo has the machines that were let go, which the cache may lack, with their Clusters.
	letGo map[types.NamespacedName]string
}

func newCreation() *creation {
	return &creation{busy: map[string]bool{}, letGo: map[types.NamespacedName]string{}}
}

// take reports whether it is the turn of a machine of the namespace. The turn ends with done.
func (c *creation) take(namespace string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.busy[namespace] {
		return false
	}
	c.busy[namespace] = true
	return true
}

func (c *creation) done(namespace string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.busy, namespace)
}

func (c *creation) let(m *infrav1.HookgateMachine) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.letGo[client.ObjectKeyFromObject(m)] = m.Labels[clusterv1.ClusterNameLabel]
}

// count returns how many machines of a namespace, and of a Cluster in it, have been let go. listed are all of the
// cache.
func (c *creation) count(namespace, cluster string, listed []infrav1.HookgateMachine) (ofCluster, ofNamespace int32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	waiting := map[types.NamespacedName]bool{} // in the cache, without a mark that they have been let go
	for i := range listed {
		m := &listed[i]
		if m.Spec.ExternalID == "" && m.Spec.ProviderID == "" {
			waiting[client.ObjectKeyFromObject(m)] = true
			continue
		}
		if ofNamespace++; m.Labels[clusterv1.ClusterNameLabel] == cluster {
			ofCluster++
		}
	}
	for key, of := range c.letGo {
		switch {
		case key.Namespace != namespace:
		case !waiting[key]: // counted, or gone
			delete(c.letGo, key)
		default:
			if ofNamespace++; of == cluster {
				ofCluster++
			}
		}
	}
	return ofCluster, ofNamespace
}

// mayBeMade asks the handlers of BeforeMachineCreate about a machine for which nothing has been recorded. It returns
// why it must wait, and for how long; nil if it may be made.
func (r *machines) mayBeMade(ctx context.Context, m *infrav1.HookgateMachine, w *scope) (*block, time.Duration, error) {
	list := &infrav1.HookgateMachineList{}
	if err := r.client.List(ctx, list, client.InNamespace(m.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, 0, fmt.Errorf("list HookgateMachines: %w", err)
	}
	req := &machinesv1alpha1.BeforeMachineCreateRequest{}
	req.ClusterMachines, req.NamespaceMachines = r.creation.count(m.Namespace, m.Labels[clusterv1.ClusterNameLabel],
		list.Items)
	var err error
	if req.Machine, err = rawOf(w.machine.DeepCopy(), "Machine"); err != nil {
		return nil, 0, err
	}
	if req.Cluster, err = rawOf(w.cluster.DeepCopy(), clusterv1.ClusterKind); err != nil {
		return nil, 0, err
	}
	own := m.DeepCopy()
	own.SetGroupVersionKind(infrav1.GroupVersion.WithKind(infrav1.HookgateMachineKind))
	own.SetManagedFields(nil)
	data, err := json.Marshal(own)
	if err != nil {
		return nil, 0, fmt.Errorf("write HookgateMachine: %w", err)
	}
	req.InfrastructureMachine = &hooksv1alpha1.RawExtension{Raw: data}
	answer, err := r.calls.BeforeMachineCreate(ctx, w.className, req)
	e, failed := errors.AsType[*calls.Error](err)
	switch wait := calls.RetryAfter(answer); {
	case failed:
		return waits(infrav1.HeldByHookReason, e.Message), cmp.Or(e.RetryAfter, jitter(provisioningInterval)), nil
	case errors.Is(err, calls.ErrBusy):
		return nil, turnInterval, nil
	case err != nil:
		return nil, 0, err
	case wait > 0:
		return waits(infrav1.HeldByHookReason, "BeforeMachineCreate: "+
			cmp.Or(answer.GetMessage(), "a handler gives no reason")), wait, nil
	}
	return nil, 0, nil
}
