// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package machines

import (
	"context"
	"time"

	"k8s.io/client-go/util/workqueue"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

const (
	// lookEvery is how often the controllers look whether the registry has changed.
	lookEvery = time.Second
	// sweepEvery is how often they look at all Machines, whatever has changed: the labels of a namespace, which select
	// extensions, or what was not known.
	sweepEvery = time.Minute
)

// sweep adds every Machine to the queue when the registry has changed, and once in a while. Looking at a Machine calls
// nobody.
func (r *lifecycle) sweep(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	go func() {
		tick := time.NewTicker(lookEvery)
		defer tick.Stop()
		seen, last := r.config.Registry.Snapshot(), r.now() // every Machine is in the queue at the beginning
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			current, now := r.config.Registry.Snapshot(), r.now()
			if current == seen && now.Sub(last) < sweepEvery {
				continue
			}
			seen, last = current, now
			list := &clusterv1.MachineList{}
			if err := r.client.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
				r.config.Logger.Error("the Machines cannot be listed", "error", err)
				continue
			}
			for i := range list.Items {
				queue.Add(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
			}
		}
	}()
	return nil
}
