// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"log/slog"
	"maps"
	"strings"
	"sync"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/hookgate/hookgate/api/v1alpha1"
	"github.com/hookgate/hookgate/internal/kinds/owner"
	"github.com/hookgate/hookgate/registry"
)

// clusters holds the labels of the Clusters, by which steps of in-place chains and the Clusters of ExtensionRollouts
// are chosen, and which rollouts their annotations approve. It watches them from the first call of need: there may be
// thousands of Clusters, and most gateways have neither.
type clusters struct {
	byName sync.Map // namespace/name to clusterMetadata; the maps are never changed

	logger *slog.Logger
	// changed is called for each Cluster that is new or has changed in what is held of it, and gone for each that was
	// deleted. Neither blocks.
	changed func(cluster types.NamespacedName)
	gone    func(cluster types.NamespacedName, uid types.UID)
	// cache is not the manager's, which has to sync before anything starts, because it starts later, and the kind may not
	// be installed or the gateway not allowed to read it.
	cache  cache.Cache
	synced func() bool // the cache has all of them

	needed  chan struct{} // closed by need
	refused chan struct{} // closed once the API server has said that the gateway cannot watch them

	once, onceRefused sync.Once
	logged            atomic.Pointer[string] // the last reason
}

// clusterMetadata is what is held of a Cluster.
type clusterMetadata struct{ labels, annotations map[string]string }

func newClusters(c *rest.Config, logger *slog.Logger) (*clusters, error) {
	s := &clusters{
		logger: logger, needed: make(chan struct{}), refused: make(chan struct{}), synced: func() bool { return false },
	}
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(owner.ClusterKind, meta.RESTScopeNamespace)
	var err error
	s.cache, err = cache.New(c, cache.Options{
		Scheme: runtime.NewScheme(), Mapper: mapper, DefaultWatchErrorHandler: s.watchFailed,
		ByObject: map[client.Object]cache.ByObject{metadataOf(owner.ClusterKind): {Transform: keepApproval}},
	})
	return s, err
}

// ClusterMetadata implements rollout.Clusters.
func (s *clusters) ClusterMetadata(namespace, name string) (labels, annotations map[string]string, known bool) {
	found, ok := s.byName.Load(namespace + "/" + name)
	if !ok {
		return nil, nil, false
	}
	of, known := found.(clusterMetadata)
	return of.labels, of.annotations, known
}

// keepApproval removes metadata that the cache does not need. It keeps names, versions, labels, and the annotation that
// approves a rollout.
func keepApproval(object any) (any, error) {
	o, ok := object.(*metav1.PartialObjectMetadata)
	if !ok {
		return object, nil
	}
	approval, approves := o.Annotations[v1alpha1.ApproveRolloutAnnotation]
	if _, err := keepLabels(o); err != nil {
		return nil, err
	}
	if approves {
		o.Annotations = map[string]string{v1alpha1.ApproveRolloutAnnotation: approval}
	}
	return o, nil
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
	s.synced, err = followMetadata(ctx, s.cache, metadataOf(owner.ClusterKind), s.set, s.remove)
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
	o, ok := object.(*metav1.PartialObjectMetadata)
	if !ok {
		return
	}
	now := clusterMetadata{o.Labels, o.Annotations} // shared with the cache, which changes no map
	found, _ := s.byName.Swap(o.Namespace+"/"+o.Name, now)
	before, known := found.(clusterMetadata)
	if !known || !maps.Equal(before.labels, now.labels) || !maps.Equal(before.annotations, now.annotations) {
		s.changed(types.NamespacedName{Namespace: o.Namespace, Name: o.Name})
	}
}

func (s *clusters) remove(object any) {
	var key string
	var uid types.UID // empty if the deletion was missed
	if unknown, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
		key = unknown.Key
	} else if o, ok := object.(*metav1.PartialObjectMetadata); ok {
		key, uid = o.Namespace+"/"+o.Name, o.UID
	}
	s.byName.Delete(key)
	namespace, name, _ := strings.Cut(key, "/")
	s.gone(types.NamespacedName{Namespace: namespace, Name: name}, uid)
}

// watchFailed logs why Clusters cannot be watched, once for each reason. The watch is retried.
func (s *clusters) watchFailed(_ context.Context, _ *toolscache.Reflector, err error) {
	if isEnd(err) {
		return
	}
	reason, advice := "unreachable", "the known labels stay in use, and the watch is retried"
	if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) {
		reason = "refused"
		advice = "allow the gateway's service account to list and watch clusters of " + owner.ClusterKind.Group +
			", and install Cluster API; until then, calls of " + registry.ChainKind + "s fail if an objectSelector " +
			"applies to a step of an in-place hook, and " + registry.RolloutKind + "s know only the Clusters that " +
			"calls are about"
		s.onceRefused.Do(func() { close(s.refused) })
	}
	if before := s.logged.Swap(&reason); before != nil && *before == reason {
		return
	}
	s.logger.Warn("API server does not let the gateway watch",
		"what", owner.ClusterKind.Kind, "error", err, "advice", advice)
}
