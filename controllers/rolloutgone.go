// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"golang.org/x/time/rate"

	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/base/notify"
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

// sweep looks for records of Clusters that were deleted while no replica ran, when this one begins to lead and now and
// then, until ctx is done.
func (r *rollouts) sweep(ctx context.Context) {
	defer r.gone.queue.ShutDown()
	again := time.NewTicker(limits.RolloutSweep)
	defer again.Stop()
	for {
		if r.leads() && r.clusters.synced() {
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
				r.logger.Error("record of a Cluster that was deleted stays, which is tried again: a new Cluster of this name "+
					"would be taken for it", "cluster", of.name.String(), "error", err)
			}
		}
		r.gone.queue.Done(of)
	}
}

// deleteRecords deletes the records of a Cluster, unless the API server still has it. If it has another one of the
// name, the records from before that are deleted.
func (r *rollouts) deleteRecords(ctx context.Context, of goneCluster) error {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(clusterKind)
	err := r.live.List(ctx, list, client.InNamespace(of.name.Namespace),
		client.MatchingFields{"metadata.name": of.name.Name})
	if err != nil {
		return fmt.Errorf("read Cluster: %w", err)
	}
	var other *metav1.Time
	if len(list.Items) > 0 {
		if of.uid == "" || list.Items[0].UID == of.uid {
			return nil
		}
		other = &list.Items[0].CreationTimestamp
	}
	for _, record := range r.engine.Gone(of.name) {
		if other != nil && other.Before(&record.CreationTimestamp) {
			continue
		}
		err := r.client.Delete(ctx, record.DeepCopy(), client.Preconditions{UID: &record.UID})
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete record: %w", err)
		}
		r.logger.Info("record of a Cluster that was deleted is deleted", "extensionRollout", record.Spec.Rollout,
			"cluster", of.name.String())
	}
	return nil
}
