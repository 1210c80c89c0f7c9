// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package discovery

import (
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

	"github.com/hookgate/hookgate/controllers/extensionconfig"
	"github.com/hookgate/hookgate/convert"
	"github.com/hookgate/hookgate/extension"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/limits"
	"github.com/hookgate/hookgate/registry"
)

// The outcomes of a discovery that an Observer sees. Any other is the name of the hook.Kind of its error.
const (
	OutcomeSuccess = "Success"
	// OutcomeRefused is that of a discovery whose handlers the registry did not take.
	OutcomeRefused = "Refused"
)

// Registry is what sources fill.
type Registry interface {
	// Apply adds or replaces a registration, or returns an error and changes nothing.
	Apply(registry.Registration) error
	Remove(name string)
	// SetPolicies replaces what the operator wants of the handlers of an ExtensionConfig, which need not be registered.
	SetPolicies(extensionConfig string, p registry.Policies)
	SetReady()
}

var _ Registry = (*registry.Registry)(nil)

// Discoverer reaches extensions. It must be safe for concurrent use.
type Discoverer interface {
	// Discover asks an extension for its handlers, until ctx is done.
	Discover(ctx context.Context, client registry.ClientConfig) (extension.Discovered, error)
	// Retain says which extensions are in use, whenever one of them has gone out of use; connections to all others may be
	// closed once they are idle.
	Retain(clients []registry.ClientConfig)
}

// Observer sees what happens, for metrics. It must be safe for concurrent use.
type Observer interface {
	// Discovery tells of an attempt to discover the extension of the ExtensionConfig of that name.
	Discovery(name, outcome string, took time.Duration)
}

// ReconcilerConfig is what a Reconciler needs.
type ReconcilerConfig struct {
	Registry   Registry
	Discoverer Discoverer
	Logger     *slog.Logger
	Observer   Observer // may be nil
	// Losses, which may be nil, are forgotten with the ExtensionConfig that they are of.
	Losses *convert.Losses
}

// Reconciler brings Extensions into the registry, and keeps there what is known of those that do not answer.
//
// Calls for different ExtensionConfigs may come at the same time; calls for one must not.
type Reconciler struct {
	registry   Registry
	discoverer Discoverer
	logger     *slog.Logger
	observer   Observer
	losses     *convert.Losses

	mu     sync.Mutex
	states map[string]*state
	inUse  map[client]int // by how many states
}

// client is a registry.ClientConfig as a value.
type client struct {
	protocol  registry.Protocol
	url       string
	caBundle  string
	inCluster bool
}

func clientOf(c *registry.ClientConfig) client {
	return client{protocol: c.Protocol, url: c.URL, caBundle: string(c.CABundle), inCluster: c.InCluster}
}

// state is what is known of one ExtensionConfig. Only wanted and applied are shared; they are guarded by Reconciler.mu.
type state struct {
	wanted  *registry.ClientConfig
	applied *registry.Registration // what the registry has

	discovered bool   // the extension has answered at least once
	failure    string // what the last attempt failed with, empty after a success
	skipped    []extension.Skipped
	paused     bool
}

// NewReconciler returns a Reconciler.
func NewReconciler(c ReconcilerConfig) (*Reconciler, error) {
	if c.Registry == nil || c.Discoverer == nil || c.Logger == nil {
		return nil, errors.New("reconciler: Registry, Discoverer and Logger are required")
	}
	r := &Reconciler{
		registry: c.Registry, discoverer: c.Discoverer, logger: c.Logger, observer: c.Observer, losses: c.Losses, states: map[string]*state{}, inUse: map[client]int{},
	}
	if r.observer == nil {
		r.observer = noObserver{}
	}
	return r, nil
}

// Reconcile makes one attempt, of at most limits.DiscoveryTimeout, to bring x into the registry, and returns what the extension
// said, which is nothing while x is paused. If the extension does not answer, or the registry does not take its handlers, it returns an error, and what was served before still is:
//
//   - the handlers that were known, with the settings and namespaces of x, if x calls the extension as before;
//   - the registration as it was, if x calls it at another address or with another CA, since it may well be wrong there;
//   - x.LastKnown, if no discovery has succeeded yet.
//
// It logs what changes, not every attempt. The caller decides when to try again.
func (r *Reconciler) Reconcile(ctx context.Context, x extensionconfig.Extension) (extension.Discovered, error) {
	logger := r.logger.With("extensionConfig", x.Name)
	s := r.want(&x)
	r.applyKnown(logger, s, &x)

	if x.Paused {
		if !s.paused {
			logger.Info("extension is paused: it is not discovered, and what is served for it does not change")
		}
		s.paused = true
		return extension.Discovered{}, nil
	}
	s.paused = false

	began := time.Now()
	found, outcome, err := r.discover(ctx, &x)
	if ctx.Err() != nil {
		return extension.Discovered{}, ctx.Err() // the source gave up, which says nothing about the extension
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
	r.observer.Discovery(x.Name, outcome, time.Since(began))
	if err != nil {
		logFailure(logger, s, &x, err)
		return extension.Discovered{}, err
	}
	logSuccess(logger, s, changed, found.Skipped)
	return found, nil
}

// Serve brings x into the registry without asking its extension, for a source that leaves discovery to somebody else.
// With current, x.LastKnown is what that discovery has found for x as it is now. Without, x is discovered anew at
// present, and what is served meanwhile is what Reconcile serves while an extension does not answer.
//
// It counts as a call of Reconcile where those must not overlap. It returns an error only if the registry refuses x.
func (r *Reconciler) Serve(x extensionconfig.Extension, current bool) error {
	logger := r.logger.With("extensionConfig", x.Name)
	s := r.want(&x)
	if !current || x.Paused {
		r.applyKnown(logger, s, &x)
		return nil
	}
	next := x.Registration
	next.Handlers = x.LastKnown
	changed, err := r.apply(s, next)
	if err != nil {
		return err
	}
	s.discovered, s.failure = true, ""
	if changed {
		logger.Info("extension is served as its status says", "handlers", len(next.Handlers))
	}
	return nil
}

// Remove removes an ExtensionConfig from the registry.
func (r *Reconciler) Remove(name string) {
	r.registry.Remove(name)
	if r.losses != nil {
		r.losses.Forget(name)
	}
	r.mu.Lock()
	gone, known := r.states[name]
	delete(r.states, name)
	if known {
		r.use(nil, gone.wanted)
		if gone.applied != nil {
			r.use(nil, &gone.applied.ClientConfig)
		}
	}
	r.mu.Unlock()
	if known {
		r.logger.Info("extension removed", "extensionConfig", name)
	}
}

// discover asks the extension. A panic while its answer is read is an error of this one extension.
func (r *Reconciler) discover(ctx context.Context, x *extensionconfig.Extension) (found extension.Discovered, outcome string, err error) {
	ctx, cancel := context.WithTimeout(ctx, limits.DiscoveryTimeout)
	defer cancel()
	defer func() {
		if p := recover(); p != nil {
			r.logger.Error("discovery panicked", "extensionConfig", x.Name, "panic", p, "stack", string(debug.Stack()))
			outcome, err = hook.Internal.String(), hook.Errorf(hook.Internal, "discovery panicked: %v", p)
		}
	}()
	found, err = r.discoverer.Discover(ctx, x.ClientConfig)
	if err != nil {
		return found, hook.KindOf(err).String(), err
	}
	return found, OutcomeSuccess, nil
}

// applyKnown serves what is known of x before its extension has answered, where that is better than what is served.
func (r *Reconciler) applyKnown(logger *slog.Logger, s *state, x *extensionconfig.Extension) {
	next := x.Registration
	switch {
	case x.Paused && s.applied != nil:
		return
	case !s.discovered && len(x.LastKnown) > 0:
		next.Handlers = x.LastKnown
	case s.applied != nil && extensionconfig.SameClient(s.applied.ClientConfig, x.ClientConfig):
		next.Handlers = s.applied.Handlers
	default:
		return
	}
	if changed, err := r.apply(s, next); err != nil {
		logger.Warn("registry refused what was known of the extension", "error", err)
	} else if changed {
		logger.Info("extension is served with the handlers that were known before", "handlers", len(next.Handlers))
	}
}

// apply brings next into the registry if it is another registration than the one there.
func (r *Reconciler) apply(s *state, next registry.Registration) (changed bool, err error) {
	if s.applied != nil && extensionconfig.SameRegistration(s.applied, &next) {
		return false, nil
	}
	if err := r.registry.Apply(next); err != nil {
		return false, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	var before *registry.ClientConfig
	if s.applied != nil {
		before = &s.applied.ClientConfig
	}
	s.applied = &next
	r.use(&next.ClientConfig, before)
	return true, nil
}

// want returns the state of x and keeps connections to where it wants to go.
func (r *Reconciler) want(x *extensionconfig.Extension) *state {
	r.mu.Lock()
	s := r.states[x.Name]
	if s == nil {
		s = &state{}
		r.states[x.Name] = s
	}
	before := s.wanted
	s.wanted = &x.ClientConfig
	r.use(s.wanted, before)
	r.mu.Unlock()
	return s
}

// use counts who calls an extension: a state does where it wants to, and where what the registry has of it leads. When
// nobody uses one any more, the discoverer is told which are left. The lock is held, so that an older set never comes
// after a newer one. The cost of a change does not grow with the number of extensions, unless one goes out of use.
func (r *Reconciler) use(now, before *registry.ClientConfig) {
	if now != nil {
		r.inUse[clientOf(now)]++
	}
	if before == nil {
		return
	}
	key := clientOf(before)
	if r.inUse[key]--; r.inUse[key] > 0 {
		return
	}
	delete(r.inUse, key)
	left := make([]registry.ClientConfig, 0, len(r.inUse))
	for c := range r.inUse {
		left = append(left, registry.ClientConfig{Protocol: c.protocol, URL: c.url, CABundle: []byte(c.caBundle), InCluster: c.inCluster})
	}
	slices.SortFunc(left, func(a, b registry.ClientConfig) int {
		return cmp.Or(strings.Compare(a.URL, b.URL), cmp.Compare(a.Protocol, b.Protocol), strings.Compare(string(a.CABundle), string(b.CABundle)))
	})
	r.discoverer.Retain(left)
}

// logSuccess logs what is new since the last attempt, and remembers it.
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

// logFailure logs a failure that differs from that of the last attempt, and remembers it.
func logFailure(logger *slog.Logger, s *state, x *extensionconfig.Extension, err error) {
	if s.failure == err.Error() {
		return
	}
	s.failure = err.Error()
	served := "nothing is served for it yet"
	switch {
	case s.applied != nil && extensionconfig.SameClient(s.applied.ClientConfig, x.ClientConfig):
		served = fmt.Sprintf("its %d last known handlers stay served", len(s.applied.Handlers))
	case s.applied != nil:
		served = "it stays served as before the change of its clientConfig"
	}
	attributes := []any{"url", x.ClientConfig.URL, "error", err, "effect", served}
	var e *hook.Error
	if errors.As(err, &e) && e.Cause != nil {
		attributes = append(attributes, "cause", e.Cause)
	}
	logger.Error("extension was not discovered, which is tried again until it succeeds", attributes...)
}

// noObserver sees nothing.
type noObserver struct{}

func (noObserver) Discovery(string, string, time.Duration) {}
