// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/hookgate/hookgate/internal/calls/policy"
)

// Guard bounds the work of an Answerer: by the time of the call, and by its memory.
type Guard = policy.Guard

// Answerer answers the requests of a registration in this process, in place of a server. It is immutable, comparable
// and safe for concurrent use.
type Answerer interface {
	// Kind is the kind of the object that is registered, such as HookRule.
	Kind() string
	// Answer answers a request in the version of the hook that the handler has, with the settings that are meant for it.
	// The answer is a fresh message. An error is a *hook.Error, or one of guard.
	Answer(ctx context.Context, request proto.Message, guard Guard) (proto.Message, error)
}

// Describe names the object that r was made from, as in ExtensionConfig "acme".
func (r *Registration) Describe() string {
	kind := "ExtensionConfig"
	if r.InProcess != nil {
		kind = r.InProcess.Kind()
	}
	return fmt.Sprintf("%s %q", kind, r.Name)
}

// SetLocal replaces all registrations of a kind that has no servers. They precede ExtensionConfigs and Rollouts of
// their names, which are not called meanwhile; of two kinds, the last one by name is served, so that a HookRule
// precedes a HookJob. The error of each registration says what is wrong with it, by its index; one that is wrong keeps
// no other from being served. One whose Answerer is the same as before is not replaced.
func (r *Registry) SetLocal(kind string, regs []Registration) []error {
	errs := make([]error, len(regs))
	next := map[string]*Registration{}
	for i := range regs {
		reg := clone(regs[i])
		if errs[i] = check(&reg); errs[i] == nil {
			next[reg.Name] = &reg
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	d := r.current.Load().draft()
	locals := make([]*Registration, 0, len(d.locals)+len(next))
	for _, l := range d.locals {
		switch reg := next[l.Name]; {
		case l.InProcess.Kind() != kind:
			locals = append(locals, l)
		case reg != nil && reg.InProcess == l.InProcess:
			next[l.Name] = l
		}
	}
	d.locals = slices.AppendSeq(locals, maps.Values(next))
	slices.SortFunc(d.locals, func(a, b *Registration) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.InProcess.Kind(), b.InProcess.Kind()))
	})
	r.store(d)
	return errs
}

// store makes a draft the current snapshot if it differs from that.
func (r *Registry) store(d *draft) {
	d.settle()
	if len(d.touched) > 0 || !slices.Equal(d.locals, d.base.locals) {
		r.current.Store(d.finish())
	}
}

// settle serves each name for what stands before the others that have it.
func (d *draft) settle() {
	d.placeMembers()
	d.shadow()
	d.placeLocals()
}

// placeLocals serves the local registrations that stand before the others of their names.
func (d *draft) placeLocals() {
	for name, c := range d.byConfig {
		if c.registration.InProcess != nil && d.localOf(name) != c.registration {
			d.place(name, nil)
		}
	}
	for _, reg := range d.locals {
		if c := d.byConfig[reg.Name]; c == nil && d.localOf(reg.Name) == reg {
			d.place(reg.Name, d.newConfig(reg, d.policies[reg.Name]))
		}
	}
}

// localOf returns the local registration that is served under a name, or nil.
func (s *Snapshot) localOf(name string) *Registration {
	named := s.localsNamed(name)
	if len(named) == 0 {
		return nil
	}
	return named[len(named)-1]
}

// TakenLocal says what else the name of a local registration means, so that it is not served, for a message; nothing
// if it is served, or would be.
func (s *Snapshot) TakenLocal(kind, name string) string {
	if l := s.localOf(name); l != nil && l.InProcess.Kind() > kind {
		return "the name of " + l.Describe()
	}
	return ""
}

// TakenByLocal says which local registration has a name, be it served or not, for a message; nothing if none has.
func (s *Snapshot) TakenByLocal(name string) string {
	if l := s.localOf(name); l != nil {
		return "the name of " + l.Describe()
	}
	return ""
}

// TakenNameOfLocal says what keeps a new local registration of a kind from having a name, for a message; nothing if it
// is free. handler is the name of its handler. What has the name would lose it, and so would a chain and a handler that
// is offered under its own name.
func (s *Snapshot) TakenNameOfLocal(kind, name, handler string) string {
	for _, l := range s.localsNamed(name) {
		if l.InProcess.Kind() != kind {
			return "the name of " + l.Describe()
		}
	}
	if of := s.memberOf[name]; of != nil {
		return of.taken(name)
	}
	if c, registered := s.byConfig[name]; registered && c.registration.InProcess == nil {
		return "the name of " + c.registration.Describe()
	}
	if i, undiscovered := s.findUndiscovered(name); undiscovered {
		return "the name of " + s.undiscovered[i].String()
	}
	if c, ok := s.Chain(name); ok {
		return "the name of " + c.String()
	}
	label := Label(handler + "." + name)
	if c, ok := s.Chain(label); ok {
		return fmt.Sprintf("already in use: the offered name of its handler, %q, is the name of a %s", c.Name, ChainKind)
	}
	if e, ok := s.byOwnName[label]; ok {
		return fmt.Sprintf("already in use: the offered name of its handler, %q, is also the offered name of "+
			"handler %q", label, e.Name)
	}
	return ""
}

// localsNamed returns the local registrations with a name.
func (s *Snapshot) localsNamed(name string) []*Registration {
	byName := func(r *Registration, name string) int { return cmp.Compare(r.Name, name) }
	i, _ := slices.BinarySearchFunc(s.locals, name, byName)
	n := i
	for n < len(s.locals) && s.locals[n].Name == name {
		n++
	}
	return s.locals[i:n]
}
