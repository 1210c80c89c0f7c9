// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"maps"
	"net/url"
	"strings"
	"sync"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	toolscache "k8s.io/client-go/tools/cache"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/hookgate/hookgate/api/v1alpha1"
	"github.com/hookgate/hookgate/controllers/extensionconfig"
)

// The indexes of ExtensionConfigs, so that a change elsewhere costs as little with many of them as with few.
const (
	secretIndex  = "caSecret"
	serviceIndex = "service"
	urlIndex     = "url"
)

// patience is how long the first list may take. An API server that is away, or a kind that is not installed, is waited
// for, and the process is not ready meanwhile.
const patience = 10 * 365 * 24 * time.Hour

// watch makes a controller of r: it looks at an ExtensionConfig when that has changed, when its Secret or the endpoints
// of its Service have, and when this replica begins to lead.
func (r *reconciler) watch(ctx context.Context, mgr manager.Manager, concurrency int, readOnly bool) error {
	b := builder.ControllerManagedBy(mgr).
		Named("extensionconfig").
		For(&runtimev1.ExtensionConfig{}, builder.WithPredicates(predicate.Funcs{UpdateFunc: r.matters})).
		WatchesRawSource(source.Channel(r.elected, &handler.EnqueueRequestForObject{})).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: concurrency,
			CacheSyncTimeout:        patience,
			SkipNameValidation:      new(true),
			// The queue with priorities can hang for ever when it stops: it hands an item to a worker that has left, while it
			// holds the lock that the others need to finish theirs.
			UsePriorityQueue: new(false),
		})
	if readOnly {
		return b.Complete(r)
	}
	indexes := map[string]client.IndexerFunc{secretIndex: bySecret, serviceIndex: byService, urlIndex: byURL}
	for name, index := range indexes {
		if err := mgr.GetFieldIndexer().IndexField(ctx, &runtimev1.ExtensionConfig{}, name, index); err != nil {
			return err
		}
	}
	return b.
		WatchesMetadata(secretMetadata(), handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, o client.Object) []reconcile.Request {
			return r.requests(ctx, secretIndex, o.GetNamespace()+"/"+o.GetName())
		}), builder.WithPredicates(predicate.ResourceVersionChangedPredicate{})).
		// The generation of an EndpointSlice counts changes of its endpoints, not of what is noted in annotations.
		Watches(&discoveryv1.EndpointSlice{}, handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, o client.Object) []reconcile.Request {
			return r.requests(ctx, serviceIndex, o.GetNamespace()+"/"+o.GetLabels()[discoveryv1.LabelServiceName])
		}), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Complete(r)
}

// matters tells whether an update needs a look: for a leader if somebody else has changed what it reads, for a follower
// also if the leader has written.
func (r *reconciler) matters(e event.UpdateEvent) bool {
	switch {
	case e.ObjectOld.GetResourceVersion() == e.ObjectNew.GetResourceVersion():
		return false
	case r.leadership.term() == nil:
		return true
	}
	return e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration() ||
		e.ObjectOld.GetDeletionTimestamp().IsZero() != e.ObjectNew.GetDeletionTimestamp().IsZero() ||
		!maps.Equal(e.ObjectOld.GetAnnotations(), e.ObjectNew.GetAnnotations())
}

// requests returns the ExtensionConfigs that have that value in that index.
func (r *reconciler) requests(ctx context.Context, index, value string) []reconcile.Request {
	var list runtimev1.ExtensionConfigList
	if r.leadership.term() == nil {
		return nil // followers have nothing to do with it
	}
	if err := r.client.List(ctx, &list, client.MatchingFields{index: value}); err != nil {
		if ctx.Err() == nil {
			r.logger.Error("ExtensionConfigs cannot be listed from the cache", "error", err)
		}
		return nil
	}
	requests := make([]reconcile.Request, len(list.Items))
	for i := range list.Items {
		requests[i].Name = list.Items[i].Name
	}
	return requests
}

func bySecret(o client.Object) []string {
	if config, ok := o.(*runtimev1.ExtensionConfig); ok {
		if name, ok := caSecret(config); ok {
			return []string{name}
		}
	}
	return nil
}

func byService(o client.Object) []string {
	config, ok := o.(*runtimev1.ExtensionConfig)
	if !ok || !config.Spec.ClientConfig.Service.IsDefined() {
		return nil
	}
	return []string{config.Spec.ClientConfig.Service.Namespace + "/" + config.Spec.ClientConfig.Service.Name}
}

func byURL(o client.Object) []string {
	config, ok := o.(*runtimev1.ExtensionConfig)
	if !ok {
		return nil
	}
	x, errs := extensionconfig.Convert(config)
	if len(errs) > 0 {
		return nil
	}
	return []string{x.ClientConfig.URL}
}

// isEnd tells of an error whether it is the end of a watch, which begins again.
func isEnd(err error) bool {
	var lost *url.Error // a request that did not come through, whatever the reason
	return apierrors.IsResourceExpired(err) || apierrors.IsGone(err) || errors.Is(err, io.EOF) && !errors.As(err, &lost)
}

// watchProblems logs why something cannot be watched, once for each reason.
type watchProblems struct {
	logger     *slog.Logger
	group      string
	noPolicies func()   // called when the kind ExtensionPolicy is not installed
	logged     sync.Map // by type: the last reason
}

func (p *watchProblems) handle(_ context.Context, r *toolscache.Reflector, err error) {
	if isEnd(err) {
		return
	}
	reason, advice := "unreachable", "what is known stays in use, and it is tried again"
	switch {
	case apierrors.IsNotFound(err) && strings.Contains(r.TypeDescription(), policyKind):
		reason, advice = "missing", "install the CustomResourceDefinition of "+policyKind+" in "+v1alpha1.GroupVersion.Group+", if you want policies"
		p.noPolicies()
	case apierrors.IsNotFound(err):
		reason, advice = "missing", "install the CustomResourceDefinition of ExtensionConfig in "+p.group+" with version "+runtimev1.GroupVersion.Version
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
		reason, advice = "forbidden", "allow the gateway's service account to list and watch it"
	}
	if before, ok := p.logged.Swap(r.TypeDescription(), reason); ok && before == reason {
		return
	}
	p.logger.Warn("API server does not let the gateway watch", "what", r.TypeDescription(), "error", err, "advice", advice)
}

// awaitSync waits until a cache has everything, or nobody need wait for it, and tells whether that was so before ctx was done.
func awaitSync(ctx context.Context, synced func() bool, needless <-chan struct{}) bool {
	waiting, stop := context.WithCancel(ctx)
	defer stop()
	var stopping sync.WaitGroup
	defer stopping.Wait()
	stopping.Go(func() {
		select {
		case <-needless:
			stop()
		case <-waiting.Done():
		}
	})
	toolscache.WaitForCacheSync(waiting.Done(), synced)
	stop()
	return ctx.Err() == nil
}
