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

	"github.com/hookgate/hookgate/internal/policy"
)

// Local answers the requests of a registration in this process, in place of a server. It is immutable, comparable and
// safe for concurrent use.
type Local interface {
	// Kind is the kind of the object that is registered, such as HookRule.
	Kind() string
	// Answer answers a request in the version of the hook that the handler has, with the settings that are meant for it.
	// The answer is a fresh message. An error is a *hook.Error, or one of guard.
	Answer(ctx context.Context, request proto.Message, guard policy.Guard) (proto.Message, error)
}

// Describe names the object that r was made from, as in ExtensionConfig "acme".
func (r *Registration) Describe() string {
	kind := "ExtensionConfig"
	if r.Local != nil {
		kind = r.Local.Kind()
	}
	return fmt.Sprintf("%s %q", kind, r.Name)
}

// SetLocal replaces all registrations of a kind that has no servers. One whose name something else has, too, is not
// served while that lasts: an ExtensionConfig precedes them, and of two kinds, none is served. The error of each
// registration says what is wrong with it, by its index; one that is wrong keeps no other from being served. One whose
// Local is the same as before is not replaced.
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
		case l.Local.Kind() != kind:
			locals = append(locals, l)
		case reg != nil && reg.Local == l.Local:
			next[l.Name] = l
		}
	}
	d.locals = slices.AppendSeq(locals, maps.Values(next))
	slices.SortFunc(d.locals, func(a, b *Registration) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Local.Kind(), b.Local.Kind()))
	})
	r.store(d)
	return errs
}

// store makes a draft the current snapshot, with the local registrations whose names are free, if it differs from the
// current one.
func (r *Registry) store(d *draft) {
	d.placeLocals()
	if len(d.touched) > 0 || !slices.Equal(d.locals, d.base.locals) {
		r.current.Store(d.finish())
	}
}

// placeLocals serves the local registrations whose names are free, and no others.
func (d *draft) placeLocals() {
	for name, c := range d.byConfig {
		if c.registration.Local != nil && d.localOf(name) != c.registration {
			d.put(name, nil)
		}
	}
	for _, reg := range d.locals {
		if c := d.byConfig[reg.Name]; c == nil && d.localOf(reg.Name) == reg {
			d.put(reg.Name, d.newConfig(reg, d.policies[reg.Name]))
		}
	}
}

// localOf returns the local registration that is served under a name if no ExtensionConfig has it, or nil: if several
// kinds have one of the name, none is.
func (s *Snapshot) localOf(name string) *Registration {
	if _, undiscovered := s.findUndiscovered(name); undiscovered {
		return nil
	}
	i, ok := slices.BinarySearchFunc(s.locals, name, func(r *Registration, name string) int {
		return cmp.Compare(r.Name, name)
	})
	if !ok || i+1 < len(s.locals) && s.locals[i+1].Name == name {
		return nil
	}
	return s.locals[i]
}

// TakenLocal says what else the name of a local registration means, so that it is not served, for a message; nothing
// if it is served.
func (s *Snapshot) TakenLocal(kind, name string) string {
	c, served := s.byConfig[name]
	_, undiscovered := s.findUndiscovered(name)
	switch {
	case served && c.registration.Local != nil && c.registration.Local.Kind() == kind:
		return ""
	case served, undiscovered:
		return fmt.Sprintf("the name of ExtensionConfig %q", name)
	}
	for _, l := range s.locals {
		if l.Name == name && l.Local.Kind() != kind {
			return fmt.Sprintf("the name of %s", l.Describe())
		}
	}
	return ""
}
