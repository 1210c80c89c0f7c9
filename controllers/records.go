// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"fmt"
	"sync"

	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/hookgate/hookgate/api/v1alpha1"
	"github.com/hookgate/hookgate/internal/kinds"
)

// clusterRecordKind is the kind of what rules and jobs know of Clusters.
const clusterRecordKind = "ClusterRecord"

// records follows objects that gateways write about Clusters. They have no verdicts, and are not compiled.
type records struct {
	kind     string
	cache    cache.Cache
	isSynced func() bool // the cache has all of them
	missing  chan struct{}
	once     sync.Once
}

var _ followed = (*records)(nil)

func newRecords(kind string, shared *own) *records {
	return &records{
		kind: kind, cache: shared.cache, missing: make(chan struct{}), isSynced: func() bool { return false },
	}
}

func (r *records) isKind(name string) bool                { return name == r.kind }
func (r *records) setAbsent()                             { r.once.Do(func() { close(r.missing) }) }
func (r *records) absent() <-chan struct{}                { return r.missing }
func (r *records) synced() bool                           { return r.isSynced() }
func (*records) judge() map[string]kinds.Verdict          { return nil }
func (*records) apply(context.Context) (changed []string) { return nil }

func (*records) write(context.Context, map[string]kinds.Verdict) (refused bool) { return false }

// follow keeps ClusterRecords in the cache.
func (r *records) follow(ctx context.Context, _ toolscache.ResourceEventHandler) error {
	informer, err := r.cache.GetInformer(ctx, &v1alpha1.ClusterRecord{}, cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("watch %s: %w", r.kind, err)
	}
	r.isSynced = informer.HasSynced
	return nil
}
