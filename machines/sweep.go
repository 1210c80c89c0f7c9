// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package machines

import (
	"context"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

const (
	// lookEvery is how often the controllers look whether the registry has changed.
	lookEvery = time.Second
	// sweepEvery is how often they look at all objects, whatever has changed: the labels of a namespace, which select
	// extensions, or what was not known.
	sweepEvery = time.Minute
)

// sweep returns a source that adds what all returns to the queue when the registry has changed, and once in a while.
// For all but Clusters that are gone, looking makes no calls.
func (b *base) sweep(all func(ctx context.Context, changed bool) ([]reconcile.Request, error)) source.Source {
	return source.Func(func(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		go func() {
			tick := time.NewTicker(lookEvery)
			defer tick.Stop()
			seen, last := b.config.Registry.Snapshot(), b.now() // every object is in the queue at the beginning
			for {
				select {
				case <-ctx.Done():
					return
				case <-tick.C:
				}
				current, now := b.config.Registry.Snapshot(), b.now()
				if current == seen && now.Sub(last) < sweepEvery {
					continue
				}
				requests, err := all(ctx, current != seen)
				seen, last = current, now
				if err != nil {
					b.config.Logger.Error("objects cannot be listed", "error", err)
				}
				for _, r := range requests {
					queue.Add(r)
				}
			}
		}()
		return nil
	})
}

// requestsFor returns the requests for objects.
func requestsFor[T any, P interface {
	*T
	client.Object
}](items []T, err error) ([]reconcile.Request, error) {
	requests := make([]reconcile.Request, len(items))
	for i := range items {
		requests[i].NamespacedName = client.ObjectKeyFromObject(P(&items[i]))
	}
	return requests, err
}
