// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/limits"
)

// draft is the next snapshot while it is made. Lookups by name see each change at once; the lists stay as they were
// until finish, so that many changes copy them once.
type draft struct {
	Snapshot
	base     *Snapshot
	touched  map[string]struct{} // the ExtensionConfigs that differ from base, or may
	handlers int                 // of all registrations
	// labelsCopied reports whether byHashedLabel is no longer the one of base.
	labelsCopied bool
}

// draft returns a draft without changes.
func (s *Snapshot) draft() *draft {
	d := &draft{Snapshot: *s, base: s, touched: map[string]struct{}{}, handlers: len(s.all)}
	d.byConfig = maps.Clone(s.byConfig)
	return d
}

// apply adds a registration or replaces the one with the same name, unless there is a reason against that among the
// others.
func (d *draft) apply(reg *Registration) error {
	c := d.newConfig(reg, d.policies[reg.Name])
	if d.sidecar {
		for name := range d.byConfig {
			if name != reg.Name {
				return fmt.Errorf("ExtensionConfig %q: a sidecar serves only one extension, here %q", reg.Name, name)
			}
		}
	} else if err := d.checkLabels(c); err != nil {
		return err
	}
	if err := d.checkSum(c); err != nil {
		return err
	}
	if len(d.localsNamed(reg.Name)) > 0 {
		d.discover(reg.Name)
		d.setShadowed(reg.Name, reg)
		return nil
	}
	d.put(reg.Name, c)
	return nil
}

// setShadowed replaces the registration of an ExtensionConfig that is not called; nil removes it.
func (d *draft) setShadowed(name string, reg *Registration) {
	d.shadowed = maps.Clone(d.shadowed)
	if delete(d.shadowed, name); reg != nil {
		d.shadowed[name] = reg
	}
	d.touched[name] = struct{}{}
}

// ErrTooMany is the error of a registration for whose handlers there is no room beside those of all others: they exist,
// and cannot be called.
var ErrTooMany = errors.New("too many handlers")

// tooManyError is an ErrTooMany that says everything itself: who unwraps errors for their causes finds none.
type tooManyError string

func (e tooManyError) Error() string { return ErrTooMany.Error() + ": " + string(e) }

// Is makes it an ErrTooMany.
func (tooManyError) Is(target error) bool { return target == ErrTooMany }

// checkSum returns an error if a registration makes the handlers too many that there are, or more so.
func (d *draft) checkSum(c *config) error {
	before := 0
	if known := d.byConfig[c.registration.Name]; known != nil {
		before = len(known.entries)
	}
	if added := len(c.entries) - before; added > 0 && d.handlers+added > limits.AllHandlers {
		return tooManyError(fmt.Sprintf("with the handlers of ExtensionConfig %q (%d), there would be %d in total; "+
			"at most %d are allowed",
			c.registration.Name, len(c.entries), d.handlers+added, limits.AllHandlers))
	}
	return nil
}

// put replaces the registration name with added, which is known then. If added is nil, it removes the registration.
func (d *draft) put(name string, added *config) {
	d.discover(name)
	if _, shadowed := d.shadowed[name]; shadowed && added == nil {
		d.setShadowed(name, nil)
		return
	}
	d.place(name, added)
}

// place is put of a registration whose ExtensionConfig, if there is one, stays undiscovered.
func (d *draft) place(name string, added *config) {
	if before := d.byConfig[name]; before != nil {
		d.handlers -= len(before.entries)
		for _, e := range before.entries {
			d.relabel(e, nil)
		}
	}
	if delete(d.byConfig, name); added != nil {
		d.byConfig[name] = added
		d.handlers += len(added.entries)
		for _, e := range added.entries {
			d.relabel(e, e)
		}
	}
	d.touched[name] = struct{}{}
}

// relabel makes now, which may be nil, the entry with the label of e. It copies byHashedLabel only if that changes.
func (d *draft) relabel(e, now *Entry) {
	if d.sidecar || !hashed(e.Handler.Name, e.Registration.Name) {
		return
	}
	if !d.labelsCopied {
		d.byHashedLabel, d.labelsCopied = maps.Clone(d.byHashedLabel), true
	}
	if now == nil {
		delete(d.byHashedLabel, e.Label)
	} else {
		d.byHashedLabel[e.Label] = now
	}
}

// finish returns the snapshot. The draft must not be used afterwards.
func (d *draft) finish() *Snapshot {
	d.placeRollouts()
	var gone, come []*Registration
	var before, after []*Entry // all
	var hidden, shown []*Entry // to callers
	for name := range d.touched {
		if c := d.base.byConfig[name]; c != nil {
			gone, before = append(gone, c.registration), append(before, c.entries...)
		}
		if c := d.byConfig[name]; c != nil {
			come, after = append(come, c.registration), append(after, c.entries...)
		}
		if c := d.base.offering(name); c != nil {
			hidden = append(hidden, c.entries...)
		}
		if c := d.offering(name); c != nil {
			shown = append(shown, c.entries...)
		}
	}
	for _, list := range [][]*Registration{gone, come} {
		slices.SortFunc(list, byNameOfConfig)
	}
	for _, list := range [][]*Entry{before, after, hidden, shown} {
		slices.SortFunc(list, byName)
	}

	next := d.Snapshot
	next.generation++
	next.registrations = replace(d.base.registrations, gone, come, byNameOfConfig)
	next.all = replace(d.base.all, before, after, byName)
	next.byHook, next.selected = maps.Clone(d.base.byHook), maps.Clone(d.base.selected)
	beforeByHook, afterByHook := hooksOf(hidden), hooksOf(shown)
	for gh := range beforeByHook {
		if _, ok := afterByHook[gh]; !ok {
			afterByHook[gh] = nil
		}
	}
	for gh, added := range afterByHook {
		if entries := replace(d.base.byHook[gh], beforeByHook[gh], added, byName); len(entries) > 0 {
			next.byHook[gh] = entries
		} else {
			delete(next.byHook, gh)
		}
		if d.base.selected[gh] != nil || slices.ContainsFunc(added, requires) {
			next.selected[gh] = newSelected(next.byHook[gh])
		}
	}
	next.setOffered()
	return &next
}

// replace returns list without removed, which are in it, and with added. All lists are in order. It compares only what
// is next to a change: of the rest, which is most of it, it copies the pointers.
func replace[E any](list, removed, added []*E, compare func(a, b *E) int) []*E {
	merged := make([]*E, 0, len(list)-len(removed)+len(added))
	for len(removed) > 0 || len(added) > 0 {
		removes := len(added) == 0 || len(removed) > 0 && compare(removed[0], added[0]) <= 0
		change := added
		if removes {
			change = removed
		}
		i, _ := slices.BinarySearchFunc(list, change[0], compare)
		merged, list = append(merged, list[:i]...), list[i:]
		if removes {
			list, removed = list[1:], removed[1:]
		} else {
			merged, added = append(merged, added[0]), added[1:]
		}
	}
	return append(merged, list...)
}

func byName(a, b *Entry) int { return cmp.Compare(a.Name, b.Name) }

func byNameOfConfig(a, b *Registration) int { return cmp.Compare(a.Name, b.Name) }

// hooksOf returns entries by their hooks, each list in the order of entries.
func hooksOf(entries []*Entry) map[hook.GroupHook][]*Entry {
	hooks := map[hook.GroupHook][]*Entry{}
	for _, e := range entries {
		gh := e.Handler.Hook.GroupHook()
		hooks[gh] = append(hooks[gh], e)
	}
	return hooks
}

// newConfig returns reg with its entries, to which it applies the policies. Handlers that the policy for all does not
// allow have no entry.
func (s *Snapshot) newConfig(reg *Registration, policies Policies) *config {
	c := &config{registration: reg, entries: make([]*Entry, 0, len(reg.Handlers))}
	for _, h := range reg.Handlers {
		p, all := policies.Of(h.Name), policies.All
		if h.Everything {
			p, all = nil, nil
		}
		if !all.Allows(h.Hook.Hook) {
			c.withheld = append(c.withheld, h)
			continue
		}
		name, label := h.Name, h.Name
		if !s.sidecar {
			name += "." + reg.Name
			label = Label(name)
		}
		c.entries = append(c.entries, &Entry{
			Name: name, Label: label, Handler: override(h, p), Registration: reg, Policy: p, OfExtension: all,
		})
	}
	return c
}

// checkLabels returns an error if another handler has a label of c. Only labels with a hash can collide: by intent, or
// with a probability of one in four billion.
func (s *Snapshot) checkLabels(c *config) error {
	var errs []error
	seen := make(map[string]*Entry, len(c.entries))
	for _, e := range c.entries {
		other, ok := seen[e.Label]
		if !ok {
			if other, ok = s.byLabel(e.Label); ok && other.Registration.Name == c.registration.Name {
				ok = false // about to be replaced
			}
		}
		if ok {
			errs = append(errs, fmt.Errorf("ExtensionConfig %q: handler %q: label %q belongs to handler %q already",
				c.registration.Name, e.Handler.Name, e.Label, other.Name))
		}
		seen[e.Label] = e
	}
	return errors.Join(errs...)
}
