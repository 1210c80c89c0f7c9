// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/hookgate/hookgate/hook"
)

// Chain is a HandlerChain: a handler that consists of other handlers of its hook. In a Snapshot it is immutable.
type Chain struct {
	// Name is the name of the HandlerChain, a DNS-1123 label. It is the name under which the chain is called.
	Name string
	Hook hook.GroupHook
	// OneHandler reports whether callers take one handler of Hook in all: the chain is offered in place of its steps.
	OneHandler bool
	// Strict reports whether the hook is an in-place one: failurePolicy Ignore is refused for the steps, because a failure
	// that is ignored would read as an answer, and their objectSelector selects Clusters.
	Strict bool
	// Block reports whether changes that no step covers fail the call (onPartialCoverage: Block).
	Block bool
	Steps []ChainStep
}

// ChainStep is a step of a Chain.
type ChainStep struct {
	// Handler is a registered name, <handler>.<ExtensionConfig>.
	Handler string
	// Settings are added to the step's requests, over those of the ExtensionConfig.
	Settings map[string]string
	// Optional reports whether the step is passed over while its handler is not registered.
	Optional bool
	// OnHold is StopOnHold if the steps after it are not called while it holds. Empty calls them.
	OnHold string
	// Allow has the paths that the step's patches may change, as JSON pointers into the objects of a request. Empty
	// allows all.
	Allow []string
}

// StopOnHold is the value of ChainStep.OnHold.
const StopOnHold = "Stop"

// Step is a step of a Chain with its handler in a Snapshot.
type Step struct {
	*ChainStep
	Entry *Entry
}

// ChainKind is the kind of the objects that Chains are of.
const ChainKind = "HandlerChain"

// String names the chain in messages.
func (c *Chain) String() string { return fmt.Sprintf("%s %q", ChainKind, c.Name) }

// HasStep reports whether a handler, by its registered name, is a step of c.
func (c *Chain) HasStep(handler string) bool {
	return slices.ContainsFunc(c.Steps, func(s ChainStep) bool { return s.Handler == handler })
}

// SetChains replaces all chains. It keeps chains, which must not change afterwards. A chain whose content stays keeps
// its pointer in the Snapshot.
func (r *Registry) SetChains(chains []Chain) {
	r.mu.Lock()
	defer r.mu.Unlock()
	next := *r.current.Load()
	before := next.chains
	next.chains = make([]*Chain, len(chains))
	for i := range chains {
		next.chains[i] = &chains[i]
		if same, ok := r.current.Load().Chain(chains[i].Name); ok && reflect.DeepEqual(same, &chains[i]) {
			next.chains[i] = same
		}
	}
	slices.SortFunc(next.chains, func(a, b *Chain) int { return cmp.Compare(a.Name, b.Name) })
	if slices.Equal(before, next.chains) {
		return
	}
	next.generation++
	next.setOffered()
	r.current.Store(&next)
}

// Chains returns every chain, ordered by name. Callers must not change the slice.
func (s *Snapshot) Chains() []*Chain { return s.chains }

// Chain returns the chain with a name, in any letter case, even one that cannot be called.
func (s *Snapshot) Chain(name string) (*Chain, bool) {
	i, ok := slices.BinarySearchFunc(s.chains, strings.ToLower(name), func(c *Chain, name string) int {
		return cmp.Compare(c.Name, name)
	})
	if !ok {
		return nil, false
	}
	return s.chains[i], true
}

// standing are the chains of a hook that stand for their steps.
type standing struct {
	chains []*Chain // by name
	steps  map[string]bool
}

// StandsFor returns the chains of a hook, and the names of the handlers that these stand for where all handlers of the
// hook are called, or one of them. Callers must not change either.
func (s *Snapshot) StandsFor(gh hook.GroupHook) (chains []*Chain, steps map[string]bool) {
	of := s.standing[gh]
	return of.chains, of.steps
}

// setStanding finds the chains that stand for their steps. Those whose names are taken do not.
func (s *Snapshot) setStanding() {
	s.standing = make(map[hook.GroupHook]standing, len(s.chains))
	for _, c := range s.chains {
		if s.Taken(c) != "" {
			continue
		}
		of := s.standing[c.Hook]
		if of.steps == nil {
			of.steps = map[string]bool{}
		}
		of.chains = append(of.chains, c)
		for i := range c.Steps {
			of.steps[c.Steps[i].Handler] = true
		}
		s.standing[c.Hook] = of
	}
}

// OfferedOf returns the names under which handlers of a hook are offered to callers of which it takes one, by name:
// those of chains, and of the handlers that no chain stands for.
func (s *Snapshot) OfferedOf(gh hook.GroupHook) []string {
	chains, steps := s.StandsFor(gh)
	offered := make([]string, 0, len(chains))
	for _, c := range chains {
		offered = append(offered, c.Name)
	}
	for _, e := range s.Handlers(gh) {
		if !steps[e.Name] {
			name, _ := s.Offered(e)
			offered = append(offered, name)
		}
	}
	slices.Sort(offered)
	return offered
}

// Taken says what else the name of a chain means, for a message; nothing if it is the name of the chain alone. A chain
// whose name is taken is not offered. It precedes an ExtensionConfig of its name, and a handler with it as its label:
// whoever may only register an extension cannot turn it off.
func (s *Snapshot) Taken(c *Chain) string {
	if merged, ok := s.merged[c.Name]; ok {
		return "the name of the gateway's own handler of " + merged.Hook
	}
	if of := s.memberOf[c.Name]; of != nil && of.Name == c.Name {
		return of.taken(c.Name)
	}
	return s.TakenByLocal(c.Name)
}

// TakenName says what keeps a new chain from having a name, for a message; nothing if it is free. A handler that is
// offered under its own name would lose that to the chain.
func (s *Snapshot) TakenName(name string) string {
	if e, ok := s.byOwnName[name]; ok {
		return fmt.Sprintf("the name under which handler %q is offered", e.Name)
	}
	if taken := s.meaning(name); taken != "" {
		return taken
	}
	return s.TakenByLocal(name)
}

// meaning says what a name means, besides a chain and the own name of a handler; nothing if it means nothing.
func (s *Snapshot) meaning(name string) string {
	if merged, ok := s.merged[name]; ok {
		return "the name of the gateway's own handler of " + merged.Hook
	}
	if of := s.memberOf[name]; of != nil {
		return of.taken(name)
	}
	if c, registered := s.byConfig[name]; registered {
		return "the name of " + c.registration.Describe()
	}
	if u := s.awaits(name); u != nil {
		return "the name of " + u.String()
	}
	if e, ok := s.byLabel(name); ok {
		return fmt.Sprintf("the label of handler %q", e.Name)
	}
	return ""
}

// StepsOf returns the steps of a chain with their handlers, without optional ones that are not registered. The error
// joins everything that keeps the chain from being called, in the order of steps.
func (s *Snapshot) StepsOf(c *Chain) ([]Step, error) {
	if taken := s.Taken(c); taken != "" {
		return nil, fmt.Errorf("its name is also %s: rename the chain", taken)
	}
	steps := make([]Step, 0, len(c.Steps))
	var errs []error
	for i := range c.Steps {
		switch e, err := s.Step(c, i); {
		case err != nil:
			errs = append(errs, fmt.Errorf("step %d: %w", i+1, err))
		case e != nil:
			steps = append(steps, Step{&c.Steps[i], e})
		}
	}
	return steps, errors.Join(errs...)
}

// Step returns the handler of a step of a chain, or what keeps the step from being called. It returns nil for both if
// the step is optional and not registered.
func (s *Snapshot) Step(c *Chain, i int) (*Entry, error) {
	step := &c.Steps[i]
	e, ok := s.Handler(step.Handler)
	if of := s.ClosedName(step.Handler); !ok && of != nil {
		return nil, of.Error()
	}
	if !ok && step.Optional && !s.mayRegister(step.Handler) {
		return nil, nil
	}
	if err := s.checkStep(c, step, e); err != nil {
		return nil, err
	}
	return e, nil
}

// checkStep returns an error unless e, which is nil if no handler has the step's name, can be called in the chain.
func (s *Snapshot) checkStep(c *Chain, step *ChainStep, e *Entry) error {
	switch {
	case e == nil && s.mayRegister(step.Handler):
		return fmt.Errorf("handler %q is not known yet", step.Handler)
	case e == nil:
		if _, p, ok := s.WithheldAs(step.Handler); ok {
			return fmt.Errorf("handler %q is not served: spec.hooks of %s does not list the hook %s",
				step.Handler, p, c.Hook.Hook)
		}
		return fmt.Errorf("no handler %q is registered", step.Handler)
	case e.Handler.Hook.GroupHook() != c.Hook:
		return fmt.Errorf("handler %q serves the hook %s, not %s", e.Name, e.Handler.Hook.Hook, c.Hook.Hook)
	case c.Strict && e.Handler.FailurePolicy == hook.Ignore:
		return fmt.Errorf("handler %q has failurePolicy Ignore, so a failure would look like an answer: set "+
			"failurePolicy: Fail in its ExtensionPolicy", e.Name)
	}
	return nil
}

// mayRegister reports whether a handler may be registered by an ExtensionConfig whose handlers are not known.
func (s *Snapshot) mayRegister(handler string) bool {
	if _, ok := s.UndiscoveredOf(handler); ok {
		return true
	}
	_, extensionConfig, _ := splitName(handler)
	if s.offering(extensionConfig) != nil {
		return false
	}
	return slices.ContainsFunc(s.undiscovered, func(u *Undiscovered) bool { return u.Unreadable != "" })
}
