// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/calls/policy"
)

// Closure is what an object closes that has a mistake and no valid version before it: the calls that it may govern fail
// as NotReady until it is corrected or deleted. In a Snapshot it is immutable.
type Closure struct {
	// Kind and Name identify the object; Mistake says what is wrong with it.
	Kind, Name, Mistake string
	// Extensions are the names of ExtensionConfigs, or of other objects with handlers, all of whose handlers are closed.
	Extensions []string
	// Handlers are the registered names of further handlers that are closed.
	Handlers []string
	// Hooks are the hooks of which calls to all handlers are closed, and AllHooks closes those of every hook, for requests
	// about namespaces that NamespaceSelector matches; nil matches all.
	Hooks             []hook.GroupHook
	AllHooks          bool
	NamespaceSelector labels.Selector
	// ByName closes the handlers of Hooks for calls that name them, too.
	ByName bool
}

// String names the object in messages.
func (c *Closure) String() string { return fmt.Sprintf("%s %q", c.Kind, c.Name) }

// Error returns the error of a call that is closed.
func (c *Closure) Error() *hook.Error {
	return hook.Errorf(hook.NotReady, "%s has a mistake; until you correct or delete it, the gateway refuses "+
		"every call that the object may apply to: %s", c, c.Mistake)
}

// Closes reports whether calls to all handlers of a hook are closed for the namespaces that NamespaceSelector matches.
func (c *Closure) Closes(gh hook.GroupHook) bool { return c.AllHooks || slices.Contains(c.Hooks, gh) }

func (c *Closure) equal(o *Closure) bool {
	return sameSelector(c.NamespaceSelector, o.NamespaceSelector) && c.Kind == o.Kind && c.Name == o.Name &&
		c.Mistake == o.Mistake && c.AllHooks == o.AllHooks && c.ByName == o.ByName &&
		slices.Equal(c.Extensions, o.Extensions) && slices.Equal(c.Handlers, o.Handlers) && slices.Equal(c.Hooks, o.Hooks)
}

// Registration returns the registration of a closed object without a server, so that its handler stays offered to
// callers, and fails. It returns false if the object could not have one.
func (c *Closure) Registration(handler string, h hook.GroupVersionHook) (Registration, bool) {
	reg := Registration{
		Name: c.Name, InProcess: closedLocal{c}, NamespaceSelector: c.NamespaceSelector,
		Handlers: []Handler{{Name: handler, Hook: h, Timeout: limits.DefaultTimeout, FailurePolicy: hook.Fail}},
	}
	return reg, check(&reg) == nil
}

// closedLocal answers for a closed object. Calls fail before they ask it.
type closedLocal struct{ *Closure }

func (l closedLocal) Kind() string { return l.Closure.Kind }

func (l closedLocal) Answer(context.Context, proto.Message, policy.Guard) (proto.Message, error) {
	return nil, l.Error()
}

// SetClosures replaces the closures of the objects of a kind. They must not change afterwards.
func (r *Registry) SetClosures(kind string, closures []Closure) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.current.Load()
	all := slices.DeleteFunc(slices.Clone(s.closures), func(c *Closure) bool { return c.Kind == kind })
	for i := range closures {
		next := &closures[i]
		same := slices.IndexFunc(s.closures, next.equal)
		if same >= 0 {
			next = s.closures[same]
		}
		all = append(all, next)
	}
	slices.SortFunc(all, func(a, b *Closure) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
	})
	if slices.Equal(all, s.closures) {
		return
	}
	next := *s
	next.closures, next.generation = all, s.generation+1
	next.closed = map[string]*Closure{}
	for _, c := range slices.Backward(all) { // so that the first one is named
		for _, name := range c.Extensions {
			next.closed[name] = c
		}
		for _, name := range c.Handlers {
			next.closed[name] = c
		}
	}
	r.current.Store(&next)
}

// Closures returns what is closed, ordered by kind and name. Callers must not change the slice.
func (s *Snapshot) Closures() []*Closure { return s.closures }

// Closed returns the closure of a handler, or nil. named reports whether the call names the handler.
func (s *Snapshot) Closed(e *Entry, named bool) *Closure {
	if len(s.closures) == 0 {
		return nil
	}
	if c := cmp.Or(s.closed[e.Name], s.closed[e.Registration.Name]); c != nil {
		return c
	}
	if v := e.Variants; v != nil {
		if c := s.closed[v.Name]; c != nil {
			return c
		}
	}
	if !named {
		return nil
	}
	gh := e.Handler.Hook.GroupHook()
	i := slices.IndexFunc(s.closures, func(c *Closure) bool { return c.ByName && c.Closes(gh) })
	if i < 0 {
		return nil
	}
	return s.closures[i]
}

// ClosedName returns the closure of what a call names, by a registered name, a label without a hash or the name of a
// chain, although it is not registered; nil if it is not closed.
func (s *Snapshot) ClosedName(name string) *Closure {
	if len(s.closures) == 0 {
		return nil
	}
	handler, extension, ok := splitName(name)
	if ok {
		if c := cmp.Or(s.closed[handler+"."+extension], s.closed[extension]); c != nil {
			return c
		}
	}
	return s.ClosedChain(strings.ToLower(name))
}

// ClosedChain returns the closure of a HandlerChain, or nil.
func (s *Snapshot) ClosedChain(name string) *Closure {
	i := slices.IndexFunc(s.closures, func(c *Closure) bool { return c.Kind == ChainKind && c.Name == name })
	if i < 0 {
		return nil
	}
	return s.closures[i]
}

// shadow keeps the registrations of ExtensionConfigs out of sight whose names local registrations have: whoever may
// only register an extension cannot turn off what an operator has written.
func (d *draft) shadow() {
	for name, c := range d.byConfig {
		if c.registration.InProcess == nil && len(d.localsNamed(name)) > 0 {
			d.place(name, nil)
			d.setShadowed(name, c.registration)
		}
	}
	for name, reg := range d.shadowed {
		if len(d.localsNamed(name)) > 0 {
			continue
		}
		d.setShadowed(name, nil)
		if c := d.newConfig(reg, d.policies[name]); d.checkLabels(c) == nil && d.checkSum(c) == nil {
			d.place(name, c)
		}
	}
}

// Shadowed returns the names of the ExtensionConfigs that are not called because local registrations have their names,
// in order, be their handlers known or not.
func (s *Snapshot) Shadowed() []string {
	names := slices.Collect(maps.Keys(s.shadowed))
	for _, u := range s.undiscovered {
		if len(s.localsNamed(u.Name)) > 0 {
			names = append(names, u.Name)
		}
	}
	slices.Sort(names)
	return names
}
