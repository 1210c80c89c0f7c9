// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/calls/extension"
	"github.com/hookgate/hookgate/internal/contract/convert"
	"github.com/hookgate/hookgate/internal/kinds/extensionconfig"
	"github.com/hookgate/hookgate/internal/network/connect"
	"github.com/hookgate/hookgate/registry"
)

// Outcomes of a discovery. Any other outcome is the name of the hook.Kind of its error.
const (
	OutcomeSuccess = "Success"
	// OutcomeRefused is the outcome of a discovery whose handlers the registry refused.
	OutcomeRefused = "Refused"
)

// Registry is the registry that sources fill.
type Registry interface {
	// ApplyAll adds or replaces registrations, and returns the error of each that it refuses.
	ApplyAll(regs []registry.Registration) []error
	// RemoveAll removes the registrations of ExtensionConfigs, of those that exist, and what SetUndiscovered has added.
	RemoveAll(names []string)
	// SetUndiscovered adds or replaces ExtensionConfigs whose handlers are not known, until they are registered.
	SetUndiscovered(all []registry.Undiscovered)
	// SetAllPolicies replaces the policies for the handlers of ExtensionConfigs, by name, which need not be registered.
	SetAllPolicies(byConfig map[string]registry.Policies)
	// SetChains replaces the chains of handlers, whose steps need not be registered. It keeps chains.
	SetChains(chains []registry.Chain)
	// SetRollouts replaces the rollouts, whose members need not be registered.
	SetRollouts(rollouts []registry.Rollout)
	// SetLocal replaces the registrations of a kind without servers, and returns the error of each that it refuses.
	SetLocal(kind string, regs []registry.Registration) []error
	// SetClosures replaces what the mistaken objects of a kind close.
	SetClosures(kind string, closures []registry.Closure)
	SetReady()
	// Snapshot returns what is registered.
	Snapshot() *registry.Snapshot
}

var _ Registry = (*registry.Registry)(nil)

// Discoverer calls extensions. It must be safe for concurrent use.
type Discoverer interface {
	// Discover asks an extension for its handlers, until ctx is done.
	Discover(ctx context.Context, client registry.ClientConfig) (extension.Discovered, error)
	// Retain is called with the extensions that are in use whenever one of them has gone out of use. Connections to
	// all others may be closed once they are idle.
	Retain(clients []registry.ClientConfig)
}

// Observer records metrics. It must be safe for concurrent use.
type Observer interface {
	// Discovery records an attempt to discover an extension.
	Discovery(a Attempt)
}

// Attempt is an attempt to discover the extension of an ExtensionConfig.
type Attempt struct {
	ExtensionConfig, URL string
	Outcome              string
	Took                 time.Duration
	Err                  error    // nil if it succeeded
	HealthUnchecked      bool     // as extension.Discovered has it
	Misspelt             []string // the same
}

// ReconcilerConfig configures a Reconciler.
type ReconcilerConfig struct {
	Registry   Registry
	Discoverer Discoverer
	Logger     *slog.Logger
	Observer   Observer        // may be nil
	Losses     *convert.Losses // may be nil; forgotten with the ExtensionConfig
}

// Reconciler registers Extensions, and keeps the last known handlers of those that do not answer.
//
// Its methods are safe for concurrent use for different ExtensionConfigs, but not for the same one.
type Reconciler struct {
	registry   Registry
	discoverer Discoverer
	logger     *slog.Logger
	observer   Observer
	losses     *convert.Losses

	mu     sync.Mutex
	states map[string]*state
	refs   map[client]int // how many states use a client
}

// client is a comparable registry.ClientConfig.
type client struct {
	owner     string
	protocol  registry.Protocol
	url       string
	caBundle  string
	inCluster bool
}

func clientOf(c *registry.ClientConfig) client {
	return client{
		owner: c.Owner, protocol: c.Protocol, url: c.URL, caBundle: string(c.CABundle), inCluster: c.InCluster,
	}
}

// state is the state of one ExtensionConfig. The first three fields are shared and guarded by Reconciler.mu.
type state struct {
	wanted    *registry.ClientConfig
	applied   *registry.Registration // what the registry has
	unwatched bool                   // it is paused: its server is left alone

	discovered bool   // the extension has answered at least once
	failure    string // what the last attempt failed with, empty after a success
	skipped    []extension.Skipped
	paused     bool
	refused    bool // the gateway may not call it
	beyond     bool // the gateway has no room for its handlers, which exist
}

// NewReconciler returns a Reconciler.
func NewReconciler(c ReconcilerConfig) (*Reconciler, error) {
	if c.Registry == nil || c.Discoverer == nil || c.Logger == nil {
		return nil, errors.New("reconciler: Registry, Discoverer and Logger are required")
	}
	r := &Reconciler{
		registry: c.Registry, discoverer: c.Discoverer, logger: c.Logger, observer: c.Observer, losses: c.Losses,
		states: map[string]*state{}, refs: map[client]int{},
	}
	if r.observer == nil {
		r.observer = noObserver{}
	}
	return r, nil
}

// Reconcile makes one attempt, of at most limits.DiscoveryTimeout, to discover and register x, and returns the answer
// of the extension. A paused x is not discovered. If the extension does not answer, or the registry refuses its
// handlers, Reconcile returns an error and leaves registered:
//
//   - the handlers that were known, or x.LastKnown if no discovery has succeeded yet;
//   - called where they were discovered, if x calls another address, which may well be wrong, or by another protocol;
//   - with everything else as x says: the namespaces, the CA and the settings apply at once.
//
// It logs changes, not every attempt. The caller decides when to try again.
func (r *Reconciler) Reconcile(ctx context.Context, x extensionconfig.Extension) (extension.Discovered, error) {
	logger := r.logger.With("extensionConfig", x.Name)
	offered := []Known{{Extension: x}}
	states := r.want(offered)
	r.serveAll(offered, states)
	s := states[0]

	if x.Paused {
		if !s.paused {
			logger.Info("extension is paused: it is not discovered, and its registration does not change")
		}
		s.paused = true
		return extension.Discovered{}, nil
	}
	s.paused = false

	began := time.Now()
	known := x.LastKnown
	if s.discovered && s.applied != nil {
		known = s.applied.Handlers
	}
	found, outcome, err := r.discover(ctx, &x, known)
	if ctx.Err() != nil {
		return extension.Discovered{}, ctx.Err() // the source stopped, which is no failure of the extension
	}
	changed := false
	if err == nil {
		next := x.Registration
		next.Handlers = slices.Clone(found.Handlers)
		// An extension may list its handlers in another order every time. That is not a change.
		slices.SortFunc(next.Handlers, func(a, b registry.Handler) int { return strings.Compare(a.Name, b.Name) })
		if changed, err = r.apply(s, next); err != nil {
			outcome = OutcomeRefused
		}
	}
	r.observer.Discovery(Attempt{
		ExtensionConfig: x.Name, URL: x.ClientConfig.URL, Outcome: outcome, Took: time.Since(began), Err: err,
		HealthUnchecked: found.HealthUnchecked, Misspelt: found.Misspelt,
	})
	if err != nil {
		s.refused = errors.Is(err, connect.ErrNotAllowed) || hook.KindOf(err) == hook.Loop
		logFailure(logger, s, &x, err)
		r.await(offered, states)
		return extension.Discovered{}, err
	}
	logSuccess(logger, s, changed, found.Skipped)
	return found, nil
}

// Forgetter is an Observer that keeps something of each ExtensionConfig.
type Forgetter interface {
	// Forget is called when an ExtensionConfig is removed.
	Forget(extensionConfig string)
}

// Remove removes an ExtensionConfig from the registry, and forgets its losses.
func (r *Reconciler) Remove(name string) { r.RemoveAll([]string{name}) }

// RemoveAll is Remove for ExtensionConfigs of different names. All changes are visible at once, and many cost little
// more than one.
func (r *Reconciler) RemoveAll(names []string) {
	r.registry.RemoveAll(names)
	forgetter, _ := r.observer.(Forgetter)
	for _, name := range names {
		if r.losses != nil {
			r.losses.Forget(name)
		}
		if forgetter != nil {
			forgetter.Forget(name)
		}
	}
	for _, name := range r.forget(names) {
		r.logger.Info("extension removed", "extensionConfig", name)
	}
}

// forget deletes the states of ExtensionConfigs, and returns the names of those that had one.
func (r *Reconciler) forget(names []string) (known []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	unused := false
	for _, name := range names {
		s, ok := r.states[name]
		if !ok {
			continue
		}
		known = append(known, name)
		delete(r.states, name)
		unused = r.use(nil, s.wanted) || unused
		if s.applied != nil {
			unused = r.use(nil, &s.applied.ClientConfig) || unused
		}
	}
	if unused {
		r.retain()
	}
	return known
}

// discover calls the extension. A panic while its answer is read is an error of this extension alone.
func (r *Reconciler) discover(
	ctx context.Context, x *extensionconfig.Extension, known []registry.Handler,
) (found extension.Discovered, outcome string, err error) {
	ctx, cancel := context.WithTimeout(ctx, limits.DiscoveryTimeout)
	defer cancel()
	defer func() {
		if p := recover(); p != nil {
			r.logger.Error("discovery panicked", "extensionConfig", x.Name, "panic", p, "stack", string(debug.Stack()))
			outcome, err = hook.Internal.String(), hook.Errorf(hook.Internal, "discovery panicked: %v", p)
		}
	}()
	found, err = r.discoverer.Discover(ctx, x.ClientConfig)
	if err == nil {
		err = unanswered(&found, known)
	}
	if err != nil {
		return found, hook.KindOf(err).String(), err
	}
	return found, OutcomeSuccess, nil
}

// unanswered returns an error if the extension did not list the handlers of a group of which some are known, so that
// these stay. If none is known, the group is skipped.
func unanswered(found *extension.Discovered, known []registry.Handler) error {
	for _, u := range found.Unanswered {
		if slices.ContainsFunc(known, func(h registry.Handler) bool { return h.Hook.Group == u.Hook.Group }) {
			return u.Err
		}
		found.Skipped = append(found.Skipped, extension.Skipped{Name: u.Hook.Hook, Reason: u.Err.Error()})
	}
	return nil
}

// want returns the states of xs and keeps the connections to their extensions.
func (r *Reconciler) want(xs []Known) []*state {
	states := make([]*state, len(xs))
	r.mu.Lock()
	defer r.mu.Unlock()
	unused := false
	for i := range xs {
		x := &xs[i].Extension
		s := r.states[x.Name]
		if s == nil {
			s = &state{}
			r.states[x.Name] = s
		}
		before := s.wanted
		s.wanted, s.unwatched = &x.ClientConfig, x.Paused
		unused = r.use(s.wanted, before) || unused
		states[i] = s
	}
	if unused {
		r.retain()
	}
	return states
}

// use counts the references to a client: a state has one for the client that it wants, and one for the client that is
// registered. It reports whether the last reference to a client is gone, so that retain is due.
func (r *Reconciler) use(now, before *registry.ClientConfig) (unused bool) {
	if now != nil {
		r.refs[clientOf(now)]++
	}
	if before == nil {
		return false
	}
	key := clientOf(before)
	if r.refs[key]--; r.refs[key] > 0 {
		return false
	}
	delete(r.refs, key)
	return true
}

// hold keeps the connections to a client, with the lock held, until release is called without it.
func (r *Reconciler) hold(client *registry.ClientConfig) (release func()) {
	r.use(client, nil)
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.use(nil, client) {
			r.retain()
		}
	}
}

// retain passes the clients that are in use to the discoverer, with the lock held, so that an older set never follows a
// newer one.
func (r *Reconciler) retain() {
	left := make([]registry.ClientConfig, 0, len(r.refs))
	for c := range r.refs {
		left = append(left, registry.ClientConfig{
			Owner: c.owner, Protocol: c.protocol, URL: c.url, CABundle: []byte(c.caBundle), InCluster: c.inCluster,
		})
	}
	slices.SortFunc(left, func(a, b registry.ClientConfig) int {
		return cmp.Or(strings.Compare(a.URL, b.URL), cmp.Compare(a.Protocol, b.Protocol),
			bytes.Compare(a.CABundle, b.CABundle), strings.Compare(a.Owner, b.Owner))
	})
	r.discoverer.Retain(left)
}

// logSuccess logs and records the changes since the last attempt.
func logSuccess(logger *slog.Logger, s *state, changed bool, skipped []extension.Skipped) {
	handlers := slog.Int("handlers", len(s.applied.Handlers))
	switch {
	case !s.discovered:
		logger.Info("extension discovered", handlers)
	case s.failure != "":
		logger.Info("extension answers again", handlers)
	case changed:
		logger.Info("extension changed", handlers)
	}
	if !slices.Equal(skipped, s.skipped) {
		for _, h := range skipped {
			logger.Warn("handler is left out", "handler", h.Name, "reason", h.Reason)
		}
	}
	s.failure, s.discovered, s.skipped = "", true, skipped
}

// logFailure logs and records a failure that differs from the failure of the last attempt.
func logFailure(logger *slog.Logger, s *state, x *extensionconfig.Extension, err error) {
	if s.failure == err.Error() {
		return
	}
	s.failure = err.Error()
	served := "nothing is served for it yet"
	switch {
	case s.applied == nil && s.refused:
	case s.applied == nil && (x.Awaited || s.beyond):
		served += "; calls to all handlers of a hook fail, unless its policy has onUndiscovered: Ignore"
	case s.applied == nil:
		served += "; calls to all handlers of a hook are answered without it, unless its policy has onUndiscovered: Fail"
	default:
		where := strings.TrimSuffix(" "+extensionconfig.PreviousClient(s.applied), " ")
		served = fmt.Sprintf("its last known handlers are still served%s: %d", where, len(s.applied.Handlers))
	}
	attributes := []any{"url", x.ClientConfig.URL, "error", err, "effect", served}
	var e *hook.Error
	if errors.As(err, &e) && e.Cause != nil {
		attributes = append(attributes, "cause", e.Cause)
	}
	logger.Error("extension was not discovered; trying again until it succeeds", attributes...)
}

// noObserver records nothing.
type noObserver struct{}

func (noObserver) Discovery(Attempt) {}
