// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// clusterKind is Cluster API's kind, of which only metadata is watched.
var clusterKind = clusterv1.GroupVersion.WithKind("Cluster")

// clusters holds the labels of the Clusters, by which steps of in-place chains are chosen. It watches them from the
// first call of need: there may be thousands of Clusters, and most gateways have no such chain.
type clusters struct {
	byName sync.Map // namespace/name to map[string]string; the maps are never changed

	logger *slog.Logger
	// cache is not the manager's, which has to sync before anything starts, because it starts later, and the kind may not
	// be installed or the gateway not allowed to read it.
	cache  cache.Cache
	synced func() bool // the cache has all of them

	needed  chan struct{} // closed by need
	refused chan struct{} // closed once the API server has said that the gateway cannot watch them

	once, onceRefused sync.Once
	logged            atomic.Pointer[string] // the last reason
}

func newClusters(c *rest.Config, logger *slog.Logger) (*clusters, error) {
	s := &clusters{logger: logger, needed: make(chan struct{}), refused: make(chan struct{})}
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(clusterKind, meta.RESTScopeNamespace)
	var err error
	s.cache, err = cache.New(c, cache.Options{
		Scheme: runtime.NewScheme(), Mapper: mapper, DefaultWatchErrorHandler: s.watchFailed,
		ByObject: map[client.Object]cache.ByObject{metadataOf(clusterKind): {Transform: keepLabels}},
	})
	return s, err
}

func (s *clusters) labelsOf(namespace, name string) (labels map[string]string, known bool) {
	found, ok := s.byName.Load(namespace + "/" + name)
	if !ok {
		return nil, false
	}
	labels, known = found.(map[string]string)
	return labels, known
}

// need makes run watch the Clusters.
func (s *clusters) need() { s.once.Do(func() { close(s.needed) }) }

// start waits until the Clusters are known, if they are needed, or cannot be, and reports whether that was before ctx
// was done. Without the wait, a replica that has just become ready would fail calls that another one answers.
func (s *clusters) start(ctx context.Context) bool {
	select {
	case <-s.needed:
		return awaitSync(ctx, s.synced, s.refused)
	default:
		return true
	}
}

// follow subscribes s to Clusters, which run watches.
func (s *clusters) follow(ctx context.Context) error {
	var err error
	s.synced, err = followMetadata(ctx, s.cache, metadataOf(clusterKind), s.set, s.remove)
	return err
}

// run watches the Clusters once they are needed, until ctx is done.
func (s *clusters) run(ctx context.Context) error {
	select {
	case <-s.needed:
		return s.cache.Start(ctx)
	case <-ctx.Done():
		return nil
	}
}

func (s *clusters) set(object any) {
	if o, ok := object.(*metav1.PartialObjectMetadata); ok {
		s.byName.Store(o.Namespace+"/"+o.Name, o.Labels) // shared with the cache, which changes no map
	}
}

func (s *clusters) remove(object any) {
	if unknown, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
		s.byName.Delete(unknown.Key)
	} else if o, ok := object.(*metav1.PartialObjectMetadata); ok {
		s.byName.Delete(o.Namespace + "/" + o.Name)
	}
}

// watchFailed logs why Clusters cannot be watched, once for each reason. The watch is retried.
func (s *clusters) watchFailed(_ context.Context, _ *toolscache.Reflector, err error) {
	if isEnd(err) {
		return
	}
	reason, advice := "unreachable", "the known labels stay in use, and the watch is retried"
	if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) {
		reason = "refused"
		advice = "allow the gateway's service account to list and watch clusters of " + clusterKind.Group + ", and install " +
			"Cluster API; until then, calls of HandlerChains with an objectSelector for a step of an in-place hook fail"
		s.onceRefused.Do(func() { close(s.refused) })
	}
	if before := s.logged.Swap(&reason); before != nil && *before == reason {
		return
	}
	s.logger.Warn("API server does not let the gateway watch", "what", clusterKind.Kind, "error", err, "advice", advice)
}
