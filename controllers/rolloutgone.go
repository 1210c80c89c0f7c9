// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"golang.org/x/time/rate"

	"github.com/hookgate/hookgate/api/v1alpha1"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/base/notify"
	"github.com/hookgate/hookgate/internal/kinds/owner"
)

// goneAttempts is how often the records of a Cluster are tried to be deleted before the next sweep.
const goneAttempts = 10

// goneClusters are the Clusters that were deleted, or may have been, and that have records, which are to be deleted.
type goneClusters struct {
	queue workqueue.TypedRateLimitingInterface[goneCluster]
	began *notify.Signal // a term as the leader
}

// goneCluster is a Cluster that was deleted, with its UID; or one that is not in the cache, without.
type goneCluster struct {
	name types.NamespacedName
	uid  types.UID
}

func newGoneClusters() *goneClusters {
	return &goneClusters{
		queue: workqueue.NewTypedRateLimitingQueue(
			workqueue.NewTypedItemExponentialFailureRateLimiter[goneCluster](time.Second, time.Minute)),
		began: notify.NewSignal(),
	}
}

// forget takes note that a Cluster was deleted. Every replica deletes its records: none may lead just now, and a
// Cluster of the same name may come at once.
func (r *rollouts) forget(cluster types.NamespacedName, uid types.UID) {
	if len(r.engine.Gone(cluster)) > 0 && !r.readOnly {
		r.gone.queue.Add(goneCluster{cluster, uid})
	}
}

// sweep looks for records of Clusters that were deleted while no replica ran, and for those that have come back from a
// backup without an owner, when this one begins to lead and now and then, until ctx is done.
func (r *rollouts) sweep(ctx context.Context, cache client.Reader) {
	defer r.gone.queue.ShutDown()
	again := time.NewTicker(limits.RolloutSweep)
	defer again.Stop()
	for {
		if r.leads() && r.clusters.synced() {
			if err := r.ownAll(ctx, cache); err != nil && ctx.Err() == nil {
				r.logger.Warn("owner of a Cluster's record cannot be set; trying again", "error", err)
			}
			for _, cluster := range r.engine.Recorded() {
				if _, _, known := r.clusters.ClusterMetadata(cluster.Namespace, cluster.Name); !known {
					r.gone.queue.Add(goneCluster{name: cluster})
				}
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-again.C:
		case <-r.gone.began.C():
		}
	}
}

// ownAll makes Clusters the owners of their records.
func (r *rollouts) ownAll(ctx context.Context, cache client.Reader) error {
	list := &v1alpha1.ExtensionRolloutRecordList{}
	if err := cache.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return err
	}
	for i := range list.Items {
		if list.Items[i].Spec.Cluster == nil || owner.ClusterUID(&list.Items[i]) != "" {
			continue
		}
		record := list.Items[i].DeepCopy()
		err := r.own(ctx, record)
		if err == nil && owner.ClusterUID(record) != "" {
			err = r.client.Update(ctx, record)
		}
		if err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
			return err
		}
	}
	return nil
}

// collect deletes the records of the Clusters in the queue until it is shut down.
func (r *rollouts) collect(ctx context.Context) {
	pace := rate.NewLimiter(limits.RolloutGonePerSecond, 1)
	for {
		of, ended := r.gone.queue.Get()
		if ended {
			return
		}
		if pace.Wait(ctx) == nil {
			switch err := r.deleteRecords(ctx, of); {
			case err == nil || ctx.Err() != nil:
				r.gone.queue.Forget(of)
			case r.gone.queue.NumRequeues(of) < goneAttempts:
				r.gone.queue.AddRateLimited(of)
			default:
				r.gone.queue.Forget(of)
				r.logger.Error("record of a deleted Cluster cannot be deleted; trying again: a new Cluster of this name "+
					"would be taken for the deleted one", "cluster", of.name.String(), "error", err)
			}
		}
		r.gone.queue.Done(of)
	}
}

// deleteRecords deletes the records of a Cluster, unless the API server still has it. If it has another one of the
// name, the records from before that are deleted.
func (r *rollouts) deleteRecords(ctx context.Context, of goneCluster) error {
	found, err := owner.Find(ctx, r.live, of.name)
	if err != nil {
		return err
	}
	records := r.engine.Gone
	if found != nil {
		if of.uid == "" || found.UID == of.uid {
			return nil
		}
		records = r.engine.RecordsOf // forget has noted the end of the other one, and this one is there
	}
	for _, record := range records(of.name) {
		// Times are in seconds: a record of the same one may be of either Cluster.
		if found != nil && (owner.ClusterUID(record) == found.UID ||
			found.CreationTimestamp.Before(&record.CreationTimestamp)) {
			continue
		}
		err := r.client.Delete(ctx, record.DeepCopy(), client.Preconditions{UID: &record.UID})
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete record: %w", err)
		}
		r.logger.Info("record of a deleted Cluster is deleted", "extensionRollout", record.Spec.Rollout,
			"cluster", of.name.String())
	}
	return nil
}
