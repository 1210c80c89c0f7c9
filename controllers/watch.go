// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/url"
	"slices"
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
	"github.com/hookgate/hookgate/internal/base/notify"
	"github.com/hookgate/hookgate/internal/kinds/extensionconfig"
)

// The indexes of ExtensionConfigs. With them, the cost of a change elsewhere does not grow with their number.
const (
	secretIndex  = "caSecret"
	serviceIndex = "service"
	urlIndex     = "url"
)

// patience bounds the first list. It is unlimited, because the process waits, not ready, for an API server that is away
// and for a kind that is not installed.
const patience = 10 * 365 * 24 * time.Hour

// watch adds r to a manager as a controller. It reconciles an ExtensionConfig whenever this, its Secret or the
// endpoints of its Service change, and when something else is sent to r.requests.
func (r *reconciler) watch(ctx context.Context, mgr manager.Manager, concurrency int, readOnly bool) error {
	b := builder.ControllerManagedBy(mgr).
		Named("extensionconfig").
		For(&runtimev1.ExtensionConfig{}, builder.WithPredicates(predicate.Funcs{UpdateFunc: r.matters})).
		WatchesRawSource(source.Channel(r.requests, &handler.EnqueueRequestForObject{})).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: concurrency,
			CacheSyncTimeout:        patience,
			SkipNameValidation:      new(true),
			// The queue with priorities can deadlock when it stops: it hands an item to a worker that has left, while
			// it holds the lock that the others need to finish theirs.
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
	ofService := func(ctx context.Context, o client.Object) []reconcile.Request {
		return r.indexed(ctx, serviceIndex, o.GetNamespace()+"/"+o.GetLabels()[discoveryv1.LabelServiceName])
	}
	return b.
		// The generation of an EndpointSlice counts changes of its endpoints, but not of its annotations.
		Watches(&discoveryv1.EndpointSlice{}, handler.EnqueueRequestsFromMapFunc(ofService),
			builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Complete(r)
}

// matters reports whether an update has to be reconciled. A follower reconciles every update; a leader only updates of
// parts that it does not write itself or that it restores.
func (r *reconciler) matters(e event.UpdateEvent) bool {
	switch {
	case e.ObjectOld.GetResourceVersion() == e.ObjectNew.GetResourceVersion():
		return false
	case r.leadership.term() == nil:
		return true
	}
	before, after := maps.Clone(e.ObjectOld.GetAnnotations()), maps.Clone(e.ObjectNew.GetAnnotations())
	// Any replica adds to the first, and the second is what a discovery leaves: no reasons to discover again.
	for _, own := range []string{lossesAnnotation, extensionconfig.DiscoveredAtAnnotation} {
		delete(before, own)
		delete(after, own)
	}
	return e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration() ||
		e.ObjectOld.GetDeletionTimestamp().IsZero() != e.ObjectNew.GetDeletionTimestamp().IsZero() ||
		!maps.Equal(before, after)
}

// warmUp registers the handlers in the status of all ExtensionConfigs, before any extension is discovered.
func (r *reconciler) warmUp(ctx context.Context) error {
	var list runtimev1.ExtensionConfigList
	if err := r.client.List(ctx, &list); err != nil {
		if ctx.Err() != nil {
			return nil //nolint:nilerr // stopped before the cache had them
		}
		return fmt.Errorf("list ExtensionConfigs: %w", err)
	}
	r.observeAll(list.Items)
	r.logger.Info("registry has the handlers in the status of the ExtensionConfigs",
		"extensionConfigs", len(list.Items))
	r.registry.SetReady()
	if !r.readOnly {
		r.leadership.beginAlone(ctx) // before the first one is reconciled, so that each is reconciled once
	}
	close(r.warm)
	return nil
}

// reconcileAdded makes this replica reconcile the ExtensionConfigs that are added to a set, until ctx is done.
func (r *reconciler) reconcileAdded(ctx context.Context, names *notify.Set[string]) {
	for {
		select {
		case <-names.C():
			r.reconcileNamed(ctx, names.Take())
		case <-ctx.Done():
			return
		}
	}
}

// reconcileNamed makes this replica reconcile ExtensionConfigs, for a reason that the API server does not know of.
func (r *reconciler) reconcileNamed(ctx context.Context, names []string) {
	for _, name := range names {
		config := &runtimev1.ExtensionConfig{}
		config.Name = name
		select {
		case r.requests <- event.GenericEvent{Object: config}:
		case <-ctx.Done():
			return
		}
	}
}

// lead makes this replica, which was elected, reconcile all ExtensionConfigs as their leader, except for those that it
// has begun to reconcile in this term, so that their extensions are not asked twice.
func (r *reconciler) lead(ctx context.Context) {
	term := r.leadership.present()
	for _, name := range r.list(ctx) {
		if m, ok := r.memories.Load(name); !ok || m.(*memory).led.Load() != term {
			r.reconcileNamed(ctx, []string{name})
		}
	}
}

// exists reports whether the cache has an ExtensionConfig of that name.
func (r *reconciler) exists(ctx context.Context, name string) bool {
	var config runtimev1.ExtensionConfig
	err := r.client.Get(ctx, client.ObjectKey{Name: name}, &config)
	return err == nil && config.DeletionTimestamp.IsZero()
}

// list returns the names of the ExtensionConfigs in the cache.
func (r *reconciler) list(ctx context.Context, options ...client.ListOption) []string {
	var list runtimev1.ExtensionConfigList
	if err := r.client.List(ctx, &list, append(options, client.UnsafeDisableDeepCopy)...); err != nil {
		if ctx.Err() == nil {
			r.logger.Error("ExtensionConfigs cannot be listed from the cache", "error", err)
		}
		return nil
	}
	names := make([]string, len(list.Items))
	for i := range list.Items {
		names[i] = list.Items[i].Name
	}
	return names
}

// indexed returns requests for the ExtensionConfigs that have a value in an index, if this replica leads: followers
// have nothing to do with it.
func (r *reconciler) indexed(ctx context.Context, index, value string) []reconcile.Request {
	if r.leadership.term() == nil {
		return nil
	}
	var requests []reconcile.Request
	for _, name := range r.list(ctx, client.MatchingFields{index: value}) {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKey{Name: name}})
	}
	return requests
}

func bySecret(o client.Object) []string {
	if config, ok := o.(*runtimev1.ExtensionConfig); ok {
		if name, ok := config.Annotations[runtimev1.InjectCAFromSecretAnnotation]; ok {
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

// isEnd reports whether an error is the regular end of a watch, which then begins again.
func isEnd(err error) bool {
	var lost *url.Error // a request that failed, for whatever reason
	return apierrors.IsResourceExpired(err) || apierrors.IsGone(err) || errors.Is(err, io.EOF) && !errors.As(err, &lost)
}

// isLacking reports whether the API server has not what is asked for, or not for this gateway.
func isLacking(err error) bool { return apierrors.IsForbidden(err) || apierrors.IsNotFound(err) }

// watchProblems logs why a kind cannot be watched, once for each reason.
type watchProblems struct {
	logger  *slog.Logger
	group   string
	missing func(kind string) // called when a kind of Hookgate's own is not installed, or there can be no records
	logged  sync.Map          // the last reason, by type
}

func (p *watchProblems) handle(_ context.Context, r *toolscache.Reflector, err error) {
	if isEnd(err) {
		return
	}
	reason, advice := "unreachable", "the known state stays in use, and the watch is retried"
	own := ownKinds()
	i := slices.IndexFunc(own, func(k ownKind) bool { return strings.Contains(r.TypeDescription(), k.name) })
	switch {
	case strings.Contains(r.TypeDescription(), revisionKind) && isLacking(err):
		reason = "forbidden"
		advice = "apply the Role " + lastValidRole + " of this release in the gateway's namespace, and its " +
			"binding. Without the Role, if an object has a mistake when the gateway starts, the gateway refuses every " +
			"call that the object may apply to, even if the object was valid before"
		p.missing(revisionKind)
	case apierrors.IsNotFound(err) && i >= 0:
		reason = "missing"
		advice = "install the CustomResourceDefinition of " + own[i].name + " in " + v1alpha1.GroupVersion.Group +
			", if you want " + own[i].wanted
		p.missing(own[i].name)
	case apierrors.IsNotFound(err):
		reason = "missing"
		advice = "install the CustomResourceDefinition of ExtensionConfig in " + p.group +
			" with version " + runtimev1.GroupVersion.Version
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
		reason, advice = "forbidden", "allow the gateway's service account to list and watch it"
	}
	if before, ok := p.logged.Swap(r.TypeDescription(), reason); ok && before == reason {
		return
	}
	p.logger.Warn("API server does not let the gateway watch", "what", r.TypeDescription(), "error", err,
		"advice", advice)
}

// awaitSync waits until a cache has synced, or needless is closed, and reports whether that was before ctx was done.
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
