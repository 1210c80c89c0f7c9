// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/events"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/controllers/discovery"
	"github.com/hookgate/hookgate/controllers/extensionconfig"
	"github.com/hookgate/hookgate/convert"
)

// conflictDelay is how long to wait when somebody else has written meanwhile, for the watch to tell what.
const conflictDelay = time.Second

// reconciler works on one ExtensionConfig at a time for each name, as a leader or as a follower.
type reconciler struct {
	core       *discovery.Reconciler
	registry   discovery.Registry
	hooks      *catalog.Catalog
	client     client.Client
	secrets    client.Reader // not cached: only names and versions of Secrets are
	namespace  string        // the only one whose Secrets may be read, if not empty
	logger     *slog.Logger
	events     events.EventRecorder
	own        extensionconfig.Addresses
	resync     time.Duration
	attempts   attempts
	leadership *leadership
	policies   *discovery.PolicySet
	losses     *convert.Losses // nil if nobody converts
	readOnly   bool

	warm    chan struct{} // closed once the registry has what the status of all ExtensionConfigs says
	elected chan event.GenericEvent
	// By name of the ExtensionConfig: what was logged last of what is wrong with it, and with its annotation of stated versions.
	problems, misstated sync.Map
	bases               sync.Map // by name of the ExtensionConfig: what its losses were recorded on
}

// warmUp serves all that the status of the ExtensionConfigs tells, before anything is discovered.
func (r *reconciler) warmUp(ctx context.Context) error {
	var list runtimev1.ExtensionConfigList
	if err := r.client.List(ctx, &list); err != nil {
		if ctx.Err() != nil {
			return nil // stopped before the cache had them
		}
		return fmt.Errorf("list ExtensionConfigs: %w", err)
	}
	for i := range list.Items {
		if list.Items[i].DeletionTimestamp.IsZero() {
			r.follow(&list.Items[i])
		}
	}
	r.logger.Info("registry has what the status of the ExtensionConfigs says", "extensionConfigs", len(list.Items))
	r.registry.SetReady()
	close(r.warm)
	return nil
}

// reconcileAll makes a leader of this replica look at everything.
func (r *reconciler) reconcileAll(ctx context.Context) {
	var list runtimev1.ExtensionConfigList
	if err := r.client.List(ctx, &list); err != nil {
		if ctx.Err() == nil {
			r.logger.Error("ExtensionConfigs cannot be listed from the cache", "error", err)
		}
		return
	}
	for i := range list.Items {
		select {
		case r.elected <- event.GenericEvent{Object: &list.Items[i]}:
		case <-ctx.Done():
			return
		}
	}
}

// reconcileThese makes this replica look at ExtensionConfigs whose policies change how they are called, or with calls that lost something.
func (r *reconciler) reconcileThese(ctx context.Context, names []string) {
	for _, name := range names {
		config := &runtimev1.ExtensionConfig{}
		config.Name = name
		select {
		case r.elected <- event.GenericEvent{Object: config}:
		case <-ctx.Done():
			return
		}
	}
}

// Reconcile implements reconcile.Reconciler. It returns no error, because each failure has been told where it belongs.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	select {
	case <-r.warm:
	case <-ctx.Done():
		return reconcile.Result{}, nil
	}
	config := &runtimev1.ExtensionConfig{}
	err := r.client.Get(ctx, request.NamespacedName, config)
	switch {
	case apierrors.IsNotFound(err), err == nil && !config.DeletionTimestamp.IsZero():
		r.core.Remove(request.Name)
		r.attempts.forget(request.Name)
		r.problems.Delete(request.Name)
		r.misstated.Delete(request.Name)
		r.bases.Delete(request.Name)
		return reconcile.Result{}, nil
	case err != nil:
		return reconcile.Result{}, err
	}
	term := r.leadership.term()
	if term == nil {
		r.follow(config)
		return reconcile.Result{RequeueAfter: r.addLosses(ctx, config)}, nil
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(term, cancel)()
	return reconcile.Result{RequeueAfter: r.lead(ctx, config)}, nil
}

// exists tells whether there is an ExtensionConfig of that name.
func (r *reconciler) exists(ctx context.Context, name string) bool {
	var config runtimev1.ExtensionConfig
	err := r.client.Get(ctx, client.ObjectKey{Name: name}, &config) // from the cache
	return err == nil && config.DeletionTimestamp.IsZero()
}

// extension returns what config says, with its last known handlers. An error says why it is not called as it is.
func (r *reconciler) extension(config *runtimev1.ExtensionConfig) (extensionconfig.Extension, error) {
	x, errs := extensionconfig.Convert(config)
	if len(errs) > 0 {
		return x, errs.ToAggregate()
	}
	if err := r.own.Check(x.ClientConfig.URL); err != nil {
		return x, fmt.Errorf("spec.clientConfig: %w", err)
	}
	x, err := r.policies.WithProtocol(x)
	if err != nil {
		return x, err
	}
	r.readStated(config)
	handlers, _, errs := extensionconfig.LastKnownHandlers(config, r.hooks)
	if len(errs) > 0 {
		r.logger.Warn("status is ignored, the handlers come from discovery alone", "extensionConfig", config.Name, "error", errs.ToAggregate())
	}
	x.LastKnown = handlers
	return x, nil
}

// follow brings into the registry what the leader has found.
func (r *reconciler) follow(config *runtimev1.ExtensionConfig) {
	x, err := r.extension(config)
	if err == nil {
		err = r.core.Serve(x, discovered(config))
	}
	r.report(config.Name, err)
}

// lead makes one attempt at an ExtensionConfig, tells in its status how that went, and returns how long to wait before
// the next one: zero if there is nothing to do before something changes.
func (r *reconciler) lead(ctx context.Context, config *runtimev1.ExtensionConfig) time.Duration {
	x, invalid := r.extension(config)
	if x.Paused {
		if invalid == nil {
			r.report(config.Name, r.core.Serve(x, false))
		}
		return r.write(ctx, config, pausedStatus(config), 0)
	}
	ca, complaint, err := r.caBundle(ctx, config)
	switch {
	case err != nil: // the API server did not say, which says nothing about the ExtensionConfig
		return r.failed(ctx, config, err)
	case complaint != "":
		if invalid == nil {
			r.report(config.Name, r.core.Serve(x, false))
		}
		return r.write(ctx, config, failedStatus(config, complaint), r.attempts.failed(config.Name, config.Generation))
	case ca != nil && !bytes.Equal(ca, config.Spec.ClientConfig.CABundle):
		return r.inject(ctx, config, ca) // the watch brings the change back here
	case invalid != nil:
		r.report(config.Name, invalid)
		return r.write(ctx, config, failedStatus(config, invalid.Error()), 0)
	}
	r.report(config.Name, nil)

	found, err := r.core.Reconcile(ctx, x)
	if ctx.Err() != nil {
		return 0 // somebody else leads, or nobody has to
	}
	if err != nil {
		return r.write(ctx, config, failedStatus(config, err.Error()), r.attempts.failed(config.Name, config.Generation))
	}
	r.attempts.forget(config.Name)
	stating, err := r.keepStated(ctx, config, found.Handlers)
	if err != nil {
		return r.failed(ctx, config, err)
	}
	status := discoveredStatus(stating, found, r.sharing(ctx, &x))
	return r.write(ctx, stating, status, wait.Jitter(r.resync-r.resync/10, 0.2))
}

// report logs what is wrong with an ExtensionConfig, if that is new.
func (r *reconciler) report(name string, err error) {
	if err == nil {
		r.problems.Delete(name)
		return
	}
	if before, ok := r.problems.Swap(name, err.Error()); !ok || before != err.Error() {
		r.logger.Error("ExtensionConfig is not served as it is; what was served for it before stays", "extensionConfig", name, "error", err)
	}
}

// failed tells that the API server refused something, and returns when to try again.
func (r *reconciler) failed(ctx context.Context, config *runtimev1.ExtensionConfig, err error) time.Duration {
	switch {
	case ctx.Err() != nil, apierrors.IsNotFound(err):
		return 0
	case apierrors.IsConflict(err):
		return conflictDelay
	}
	r.logger.Error("API server refused, which is tried again", "extensionConfig", config.Name, "error", err)
	return r.attempts.failed(config.Name, config.Generation)
}

// sharing returns the names of the other ExtensionConfigs with the URL of x, in order.
func (r *reconciler) sharing(ctx context.Context, x *extensionconfig.Extension) []string {
	var list runtimev1.ExtensionConfigList
	if err := r.client.List(ctx, &list, client.MatchingFields{urlIndex: x.ClientConfig.URL}); err != nil {
		r.report(x.Name, errors.Join(errors.New("list ExtensionConfigs of one URL"), err))
		return nil
	}
	return namesBut(list.Items, x.Name)
}
