// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"fmt"

	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/hookgate/hookgate/api/v1alpha1"
	"github.com/hookgate/hookgate/internal/kinds/rollout"
)

// rolloutRecords follows the ExtensionRolloutRecords.
type rolloutRecords struct {
	*records

	engine *rollout.Engine
}

func newRolloutRecords(engine *rollout.Engine, shared *own) *rolloutRecords {
	return &rolloutRecords{records: newRecords(rollout.RecordKind, shared), engine: engine}
}

// follow gives the records to the engine as they come and go. Only one that says that no more Clusters move changes a
// condition.
func (r *rolloutRecords) follow(ctx context.Context, changes toolscache.ResourceEventHandler) error {
	informer, err := r.cache.GetInformer(ctx, &v1alpha1.ExtensionRolloutRecord{}, cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("watch %s: %w", rollout.RecordKind, err)
	}
	set := func(object any) {
		if record, ok := object.(*v1alpha1.ExtensionRolloutRecord); ok {
			r.engine.Set(record)
			if record.Spec.State == v1alpha1.RolloutStateAborted {
				changes.OnAdd(record, false)
			}
		}
	}
	registration, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: set, UpdateFunc: func(_, object any) { set(object) },
		DeleteFunc: func(object any) {
			if unknown, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
				object = unknown.Obj
			}
			if record, ok := object.(*v1alpha1.ExtensionRolloutRecord); ok {
				r.engine.Remove(record)
				if record.Spec.State == v1alpha1.RolloutStateAborted {
					changes.OnDelete(record)
				}
			}
		},
	})
	if err != nil {
		return fmt.Errorf("watch %s: %w", rollout.RecordKind, err)
	}
	r.isSynced = registration.HasSynced
	return nil
}

// apply lets the engine decide once it has all records. Without their kind, it decides nothing.
func (r *rolloutRecords) apply(context.Context) (changed []string) {
	if r.isSynced() {
		r.engine.SetRead()
	}
	return nil
}
