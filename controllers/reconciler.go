// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/tools/reference"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/internal/base/problems"
	"github.com/hookgate/hookgate/internal/contract/convert"
	"github.com/hookgate/hookgate/internal/kinds/extensionconfig"
	"github.com/hookgate/hookgate/internal/kinds/extensionpolicy"
	"github.com/hookgate/hookgate/internal/sources/discovery"
	"github.com/hookgate/hookgate/registry"
)

const (
	// conflictDelay is the time from a conflicting write to the next attempt, in which the watch brings the other
	// write.
	conflictDelay = time.Second
	// cacheDelay is the time between two reads of a cache that lacks the last write of this replica.
	cacheDelay = 10 * time.Millisecond
)

// reconciler works on ExtensionConfigs, as a leader or as a follower. Only one goroutine at a time works on each of
// them.
type reconciler struct {
	core       *discovery.Reconciler
	registry   discovery.Registry
	hooks      *catalog.Catalog
	client     client.Client
	secrets    *secrets
	namespace  string // the only one whose Secrets may be read, if not empty
	logger     *slog.Logger
	events     events.EventRecorder
	own        extensionconfig.Addresses
	resync     time.Duration
	backoff    discovery.Backoff
	lag        time.Duration // how long the cache may lack the last write
	leadership *leadership
	policies   *extensionpolicy.Set
	losses     *convert.Losses    // nil if this process converts nothing
	circuits   discovery.Circuits // nil if this process calls nothing
	readOnly   bool

	warm     chan struct{} // closed once the registry has what the status of all ExtensionConfigs says
	requests chan event.GenericEvent
	memories sync.Map // of *memory, by name of the ExtensionConfig
}

// Reconcile implements reconcile.Reconciler: it observes an ExtensionConfig and its surroundings, computes the desired
// ExtensionConfig, and writes the difference. It logs errors of the API server and of extensions instead of returning
// them.
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
		r.memories.Delete(request.Name)
		return reconcile.Result{}, nil
	case err != nil:
		return reconcile.Result{}, err
	}
	m := r.memoryOf(config.Name)
	if m.outdated(config, r.lag) {
		return reconcile.Result{RequeueAfter: cacheDelay}, nil
	}
	term := r.leadership.present()
	if term != nil {
		m.led.Store(term)
		var cancel context.CancelFunc
		ctx, cancel = context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(term.ctx, cancel)()
	}
	o, err := r.observe(ctx, m, config, term != nil)
	if err == nil && ctx.Err() == nil {
		err = r.write(ctx, m, config, desired(&o))
	}
	after := r.next(ctx, m, &o, err)
	if o.settles > 0 && ctx.Err() == nil && (after == 0 || o.settles < after) {
		after = o.settles
	}
	return reconcile.Result{RequeueAfter: after}, nil
}

// observe returns the observed state of an ExtensionConfig, and registers it. An error means that the API server did
// not answer, so that nothing can be decided.
func (r *reconciler) observe(
	ctx context.Context, m *memory, config *runtimev1.ExtensionConfig, leads bool,
) (observation, error) {
	o, x, invalid := r.read(m, config, leads)
	switch {
	case !leads:
		r.report(m, config, r.serve(x, invalid, isCurrent(config, &x)))
	case x.Paused:
		o.paused = true
		r.report(m, config, r.serve(x, invalid, false))
	default:
		if err := r.discover(ctx, m, x, invalid, &o); err != nil {
			return o, err
		}
	}
	if reg := r.core.Applied(config.Name); leads && reg != nil && len(reg.Handlers) > 0 {
		o.called = reg
	}
	if leads {
		o.standing = standings(r.registry.Snapshot(), r.hooks)[config.Name]
	}
	r.observeAvailability(&o)
	if ctx.Err() == nil {
		r.observeLosses(m, &o)
	}
	return o, nil
}

// read returns the part of an observation that an ExtensionConfig says by itself, and the Extension that it defines, or
// an error if that cannot be used.
func (r *reconciler) read(
	m *memory, config *runtimev1.ExtensionConfig, leads bool,
) (o observation, x extensionconfig.Extension, invalid error) {
	o = observation{config: config, hooks: r.hooks, now: metav1.Now(), leads: leads}
	x, invalid = r.extension(config)
	x.LastKnown, x.LastClient, o.unreadable = r.lastKnown(m, config)
	if invalid != nil {
		r.core.Refuse(config.Name, r.mistake(config, invalid))
	}
	// Of handlers that cannot be read, or for which there was no room, it is known that there are some.
	x.Awaited = o.unreadable || beyond(config)
	x.Discovered = !o.unreadable && (len(x.LastKnown) > 0 || meta.IsStatusConditionTrue(config.Status.Conditions,
		runtimev1.ExtensionConfigDiscoveredCondition))
	o.handlers, o.protocol = x.LastKnown, x.ClientConfig.Protocol
	return o, x, invalid
}

// beyond reports whether the status says that there was no room for the handlers of config, which only the replica that
// has discovered them knows otherwise.
func beyond(config *runtimev1.ExtensionConfig) bool {
	c := meta.FindStatusCondition(config.Status.Conditions, runtimev1.ExtensionConfigDiscoveredCondition)
	return c != nil && c.Status == metav1.ConditionFalse && strings.HasPrefix(c.Message, registry.ErrTooMany.Error())
}

// observeAll is observe for all ExtensionConfigs when nothing is registered yet, as a follower: the registry takes them
// together, which costs little more than one of them.
func (r *reconciler) observeAll(configs []runtimev1.ExtensionConfig) {
	var known []discovery.Known
	var valid []observation
	for i := range configs {
		config := &configs[i]
		if !config.DeletionTimestamp.IsZero() {
			continue
		}
		m := r.memoryOf(config.Name)
		o, x, invalid := r.read(m, config, false)
		if invalid == nil {
			known = append(known, discovery.Known{Extension: x, Current: isCurrent(config, &x)})
			valid = append(valid, o)
			continue
		}
		r.report(m, config, invalid)
		r.observeLosses(m, &o)
	}
	for i, err := range r.core.ServeAll(known) {
		m := r.memoryOf(valid[i].config.Name)
		r.report(m, valid[i].config, err)
		r.observeLosses(m, &valid[i])
	}
}

// mistake returns what calls wait for because config has a mistake in its text; nil if there is another reason not to
// use it.
func (r *reconciler) mistake(config *runtimev1.ExtensionConfig, invalid error) *registry.Undiscovered {
	if _, errs := extensionconfig.Convert(config); len(errs) == 0 {
		return nil
	}
	content, _ := json.Marshal(config) // what cannot be written is read as missing
	return extensionconfig.Description.Close(config.Name, content, invalid.Error(), r.hooks).Extension
}

// extension returns the Extension that config defines, or an error if it cannot be used.
func (r *reconciler) extension(config *runtimev1.ExtensionConfig) (extensionconfig.Extension, error) {
	x, errs := extensionconfig.Convert(config)
	if len(errs) > 0 {
		return x, problems.Join(errs)
	}
	if err := r.own.Check(x.ClientConfig.URL); err != nil {
		return x, fmt.Errorf("spec.clientConfig: %w", err)
	}
	return r.policies.WithProtocol(x)
}

// lastKnown returns the handlers in the status of config and where they were discovered, and reports whether the status
// cannot be read.
func (r *reconciler) lastKnown(
	m *memory, config *runtimev1.ExtensionConfig,
) (handlers []registry.Handler, at *extensionconfig.LastClient, unreadable bool) {
	_, errs := extensionconfig.StatedVersions(config)
	_, more := extensionconfig.Gateways(config)
	at, wrong := extensionconfig.DiscoveredAt(config)
	if at != nil && r.own.Check(at.URL) != nil {
		at = nil
	}
	r.ignore(m, config, "annotation is invalid; its invalid entries are ignored",
		problems.Join(slices.Concat(errs, more, wrong)))
	handlers, _, errs = extensionconfig.LastKnownHandlers(config, r.hooks)
	r.ignore(m, config, "status is ignored; the handlers come from discovery alone", problems.Join(errs))
	return handlers, at, len(errs) > 0
}

// serve registers x without discovering it. If current, its last known handlers are its current handlers.
func (r *reconciler) serve(x extensionconfig.Extension, invalid error, current bool) error {
	if invalid != nil {
		return invalid
	}
	return r.core.Serve(discovery.Known{Extension: x, Current: current})
}

// discover tries to discover x, unless a precondition is missing.
func (r *reconciler) discover(
	ctx context.Context, m *memory, x extensionconfig.Extension, invalid error, o *observation,
) error {
	ca, complaint, err := r.caBundle(ctx, o.config)
	switch {
	case err != nil:
		return err
	case complaint != "":
		o.problem, o.retry = complaint, true
		r.report(m, o.config, r.serve(x, invalid, false))
		return nil
	case ca != nil && !bytes.Equal(ca, o.config.Spec.ClientConfig.CABundle):
		o.ca = ca // the watch brings the change back here
		r.report(m, o.config, r.serve(x, invalid, false))
		return nil
	case invalid != nil:
		o.problem = invalid.Error()
		r.report(m, o.config, invalid)
		return nil
	}
	r.report(m, o.config, nil)
	found, err := r.core.Reconcile(ctx, x)
	if err != nil {
		x.Awaited = x.Awaited || errors.Is(err, registry.ErrTooMany)
		o.problem, o.retry, o.undiscovered = err.Error(), true, r.policies.OnUndiscovered(&x)
		return nil
	}
	found.Handlers, o.withheld, o.policy = r.policies.Split(x.Name, found.Handlers)
	o.found, o.handlers, o.unreadable = &found, found.Handlers, false
	o.sharing, err = r.sharing(ctx, x)
	r.report(m, o.config, err)
	return nil
}

// sharing returns the names of the other ExtensionConfigs with the URL of x.
func (r *reconciler) sharing(ctx context.Context, x extensionconfig.Extension) ([]string, error) {
	var list runtimev1.ExtensionConfigList
	// All may have one URL, and a copy of each for each takes long.
	err := r.client.List(ctx, &list, client.MatchingFields{urlIndex: x.ClientConfig.URL}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, fmt.Errorf("list ExtensionConfigs with the same URL: %w", err)
	}
	var names []string
	for i := range list.Items {
		if name := list.Items[i].Name; name != x.Name {
			names = append(names, name)
		}
	}
	return names, nil
}

// write sends the differences between config and want to the API server; they are confined to annotations, caBundle and
// status. The status comes last, so that a replica which sees a handler in it sees in the annotations what the handler
// understands.
func (r *reconciler) write(ctx context.Context, m *memory, config, want *runtimev1.ExtensionConfig) error {
	// The lock keeps two writers from mixing their conditions, which a merge patch replaces as a whole.
	lock := client.MergeFromWithOptimisticLock{}
	stored := config.DeepCopy()
	if !equality.Semantic.DeepEqual(config.Annotations, want.Annotations) ||
		!equality.Semantic.DeepEqual(config.Spec, want.Spec) {
		want.ObjectMeta.DeepCopyInto(&stored.ObjectMeta)
		want.Spec.DeepCopyInto(&stored.Spec)
		if err := r.client.Patch(ctx, stored, client.MergeFromWithOptions(config, lock)); err != nil {
			return fmt.Errorf("write annotations and spec.clientConfig.caBundle: %w", err)
		}
		m.wrote(stored)
	}
	if !equality.Semantic.DeepEqual(config.Status, want.Status) {
		before := stored.DeepCopy()
		want.Status.DeepCopyInto(&stored.Status)
		if err := r.client.Status().Patch(ctx, stored, client.MergeFromWithOptions(before, lock)); err != nil {
			return fmt.Errorf("write status: %w", err)
		}
		m.wrote(stored)
	}
	for _, n := range notices(config, want) {
		r.events.Eventf(r.regarding(config, n), nil, n.kind, n.reason, n.action, "%s", n.note)
	}
	return nil
}

// regarding returns the object of an event. Events with equal objects are counted in one, whatever their notes, so only
// an event with a constant note regards config in any version.
func (r *reconciler) regarding(config *runtimev1.ExtensionConfig, n notice) runtime.Object {
	if !n.constant {
		return config
	}
	ref, err := reference.GetReference(r.client.Scheme(), config)
	if err != nil {
		return config
	}
	ref.ResourceVersion = ""
	return ref
}

// next returns the time until the next attempt, or zero if only a change requires one.
func (r *reconciler) next(ctx context.Context, m *memory, o *observation, err error) time.Duration {
	switch {
	case ctx.Err() != nil, apierrors.IsNotFound(err):
		return 0
	case apierrors.IsConflict(err):
		return conflictDelay
	case err != nil:
		r.logger.Error("API server refused; trying again", "extensionConfig", o.config.Name, "error", err)
		return m.failed(o.config.Generation, r.backoff)
	case o.retry:
		return m.failed(o.config.Generation, r.backoff)
	case o.found == nil:
		return 0
	}
	m.succeeded()
	return wait.Jitter(r.resync-r.resync/10, 0.2)
}

// report logs why an ExtensionConfig is not served in its current form, if the reason is new.
func (r *reconciler) report(m *memory, config *runtimev1.ExtensionConfig, err error) {
	const message = "ExtensionConfig is not served in its current form; its previous registration stays"
	if m.isNew(message, err) {
		r.logger.Error(message, "extensionConfig", config.Name, "error", err)
	}
}

// ignore logs an ignored error in an ExtensionConfig, if the error is new.
func (r *reconciler) ignore(m *memory, config *runtimev1.ExtensionConfig, message string, err error) {
	if m.isNew(message, err) {
		r.logger.Warn(message, "extensionConfig", config.Name, "error", err)
	}
}
