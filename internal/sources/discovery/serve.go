// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"errors"
	"time"

	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/base/text"
	"github.com/hookgate/hookgate/internal/kinds/extensionconfig"
	"github.com/hookgate/hookgate/registry"
)

// Known is an Extension to register without calling it.
type Known struct {
	Extension extensionconfig.Extension
	// Current reports whether Extension.LastKnown is the result of discovering the Extension in its current form.
	Current bool
}

// ServeAll registers Extensions of different names without calling them, where another replica discovers them or before
// they are asked. An Extension that is not current is still to be discovered: of it, ServeAll registers the same
// handlers as Reconcile does when an extension does not answer. ServeAll returns the error of each current Extension
// that the registry refuses. All changes are visible at once, and many cost little more than one.
func (r *Reconciler) ServeAll(xs []Known) []error {
	return r.serveAll(xs, r.want(xs))
}

// Serve is ServeAll for one Extension.
func (r *Reconciler) Serve(x Known) error { return r.ServeAll([]Known{x})[0] }

// Serves reports whether some handlers of x are registered, and call its extension as x says. They may be older than x.
func (r *Reconciler) Serves(x *extensionconfig.Extension) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.states[x.Name]
	return s != nil && s.applied != nil && extensionconfig.SameClient(s.applied.ClientConfig, x.ClientConfig)
}

func (r *Reconciler) serveAll(xs []Known, states []*state) []error {
	defer r.await(xs, states)
	errs := make([]error, len(xs))
	var offers []offer
	var indexes []int // into xs
	for i := range xs {
		if next, ok := xs[i].next(states[i]); ok {
			offers, indexes = append(offers, offer{states[i], next}), append(indexes, i)
		}
	}
	for j, got := range r.applyAll(offers) {
		i := indexes[j]
		logger := r.logger.With("extensionConfig", xs[i].Extension.Name)
		handlers := len(offers[j].next.Handlers)
		switch current := xs[i].current(); {
		case got.err != nil && current:
			errs[i] = got.err
		case got.err != nil:
			logger.Warn("registry refused the last known handlers of the extension", "error", got.err)
		case current:
			states[i].discovered, states[i].failure = true, ""
			if got.changed {
				logger.Info("extension is served as its status says", "handlers", handlers)
			}
		case got.changed:
			logger.Info("extension is served with the handlers that were known before", "handlers", handlers)
		}
	}
	return errs
}

func (k *Known) current() bool { return k.Current && !k.Extension.Paused }

// next returns what is to be registered before the extension answers, unless what s has registered is better.
func (k *Known) next(s *state) (next registry.Registration, ok bool) {
	x := &k.Extension
	next = x.Registration
	switch {
	case k.current():
		next.Handlers = x.LastKnown
	case x.Paused && s.applied != nil:
		return next, false
	case !s.discovered && (len(x.LastKnown) > 0 || x.Discovered):
		next.Handlers = x.LastKnown
		at := s.lastClient()
		if last := x.LastClient; last != nil && (at == nil || !last.Since.IsZero() || !last.Is(&s.applied.ClientConfig)) {
			at = last
		}
		at.KeepIn(&next, time.Now())
	case s.applied != nil:
		next.Handlers = s.applied.Handlers
		s.lastClient().KeepIn(&next, time.Now())
	default:
		return next, false
	}
	return next, true
}

// lastClient returns how the extension is called now, or nil.
func (s *state) lastClient() *extensionconfig.LastClient {
	if s.applied == nil {
		return nil
	}
	return extensionconfig.LastClientOf(s.applied)
}

// Applied returns what is registered of an ExtensionConfig, or nil. It must not be changed.
func (r *Reconciler) Applied(name string) *registry.Registration {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s := r.states[name]; s != nil {
		return s.applied
	}
	return nil
}

// await tells the registry which of xs have unknown handlers. Calls to all handlers of a hook do not wait for those
// that are paused, or that the gateway may not call. They do for those whose handlers are known to exist, but are too
// many for the gateway.
func (r *Reconciler) await(xs []Known, states []*state) {
	var unknown []registry.Undiscovered
	for i := range xs {
		x, s := &xs[i].Extension, states[i]
		if s.applied != nil {
			continue
		}
		u := registry.Undiscovered{
			Name: x.Name, ClientConfig: x.ClientConfig, NamespaceSelector: x.NamespaceSelector, Default: x.OnUndiscovered(),
			Cause: text.Cut(s.failure, limits.ProblemBytes), Aside: x.Paused || s.refused,
		}
		if s.beyond {
			u.Default = hook.Fail
		}
		if x.Paused {
			u.Cause = "it is paused"
		}
		unknown = append(unknown, u)
	}
	if len(unknown) > 0 {
		r.registry.SetUndiscovered(unknown)
	}
}

// Refuse is called for an ExtensionConfig that cannot be used as it is now. If nothing of it is registered, calls wait
// for it as mistake says, or do not wait if that is nil.
func (r *Reconciler) Refuse(name string, mistake *registry.Undiscovered) {
	r.mu.Lock()
	s := r.states[name]
	r.mu.Unlock()
	switch {
	case s != nil && s.applied != nil:
	case mistake != nil:
		r.registry.SetUndiscovered([]registry.Undiscovered{*mistake})
	default:
		r.registry.RemoveAll([]string{name})
	}
}

// offer is a registration for the registry, and where it is remembered.
type offer struct {
	state *state
	next  registry.Registration
}

// applied is what has become of an offer.
type applied struct {
	changed bool
	err     error
}

// applyAll registers what differs from what is registered.
func (r *Reconciler) applyAll(offers []offer) []applied {
	outcomes := make([]applied, len(offers))
	var regs []registry.Registration
	var indexes []int // into offers
	for i := range offers {
		o := &offers[i]
		if o.state.applied == nil || !extensionconfig.SameRegistration(o.state.applied, &o.next) {
			regs, indexes = append(regs, o.next), append(indexes, i)
		}
	}
	if len(regs) == 0 {
		return outcomes
	}
	errs := r.registry.ApplyAll(regs)
	r.mu.Lock()
	defer r.mu.Unlock()
	unused := false
	for j, i := range indexes {
		s := offers[i].state
		outcomes[i].err, s.beyond = errs[j], errors.Is(errs[j], registry.ErrTooMany)
		if errs[j] != nil {
			continue
		}
		var before *registry.ClientConfig
		if s.applied != nil {
			before = &s.applied.ClientConfig
		}
		s.applied = &offers[i].next
		unused = r.use(&s.applied.ClientConfig, before) || unused
		outcomes[i].changed = true
	}
	if unused {
		r.retain()
	}
	return outcomes
}

// apply registers next, and reports whether that is a change.
func (r *Reconciler) apply(s *state, next registry.Registration) (changed bool, err error) {
	outcome := r.applyAll([]offer{{s, next}})[0]
	return outcome.changed, outcome.err
}
