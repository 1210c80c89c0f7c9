// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"cmp"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/calls/policy"
)

// Undiscovered is an ExtensionConfig whose handlers are not known, so that it may have some for every hook. In a
// Snapshot it is immutable.
type Undiscovered struct {
	// Name is the name of the ExtensionConfig.
	Name string
	// Unreadable is set instead of Name. It names what may define ExtensionConfigs and cannot be read, for messages.
	Unreadable string
	// ClientConfig is where the extension would be called; empty if that is not known.
	ClientConfig ClientConfig
	// NamespaceSelector is the one of the ExtensionConfig. Nil matches all.
	NamespaceSelector labels.Selector
	// Mistake says what is wrong with the text of the ExtensionConfig, so that it cannot be discovered; empty if nothing
	// is.
	Mistake string
	// Default decides the result of calls to all handlers of a hook, unless a policy does: Fail fails them, and Ignore
	// leaves the ExtensionConfig out.
	Default hook.FailurePolicy
	// Cause says why the last discovery failed, for calls that name a handler. It is empty before the first has ended.
	Cause string
	// Aside keeps calls to all handlers of a hook from waiting for it, whatever a policy says: it is paused, or the
	// gateway may not call it. It takes no name.
	Aside bool
}

// String returns the name as it appears in messages.
func (u *Undiscovered) String() string {
	if u.Unreadable != "" {
		return u.Unreadable
	}
	return fmt.Sprintf("ExtensionConfig %q", u.Name)
}

// Effect returns Fail or Ignore: what the policy for the whole extension, which may be nil, says, or else the default.
func (u *Undiscovered) Effect(all *Policy) hook.FailurePolicy {
	if u.Aside {
		return hook.Ignore
	}
	if all != nil && all.OnUndiscovered != "" {
		return all.OnUndiscovered
	}
	return u.Default
}

func (u *Undiscovered) key() string { return cmp.Or(u.Name, u.Unreadable) }

func (u *Undiscovered) equal(o *Undiscovered) bool {
	return u.Name == o.Name && u.Unreadable == o.Unreadable && u.Default == o.Default && u.Cause == o.Cause &&
		u.Aside == o.Aside && u.Mistake == o.Mistake && u.ClientConfig.equal(&o.ClientConfig) &&
		sameSelector(u.NamespaceSelector, o.NamespaceSelector)
}

// sameSelector reports whether two selectors, which may be nil, match the same labels.
func sameSelector(a, b labels.Selector) bool {
	return (a == nil) == (b == nil) && (a == nil || a.String() == b.String())
}

// Undiscovered returns the ExtensionConfigs whose handlers are not known, ordered by name. Callers must not change the
// slice.
func (s *Snapshot) Undiscovered() []*Undiscovered {
	taken := func(u *Undiscovered) bool { return len(s.localsNamed(u.Name)) > 0 }
	if !slices.ContainsFunc(s.undiscovered, taken) {
		return s.undiscovered
	}
	return slices.DeleteFunc(slices.Clone(s.undiscovered), taken) // they would not be called
}

// UndiscoveredOf returns the ExtensionConfig of a handler, by its registered name or its label, if the handlers of that
// ExtensionConfig are not known.
func (s *Snapshot) UndiscoveredOf(handler string) (*Undiscovered, bool) {
	_, name, ok := splitName(handler)
	names := []string{name}
	if of := s.memberOf[name]; of != nil {
		names = []string{of.Stable, of.Candidate}
	}
	for _, name := range names {
		if i, found := s.findUndiscovered(name); ok && found && len(s.localsNamed(name)) == 0 {
			return s.undiscovered[i], true
		}
	}
	for _, u := range s.undiscovered {
		if u.Name != "" && !ok && hasHashedLabel(handler, u.Name) {
			return u, true
		}
	}
	return nil, false
}

// Awaited says what keeps it from being known whether there is a handler or chain of a name that the snapshot does not
// have, as a clause; nothing if there is none.
func (s *Snapshot) Awaited(handler string, gh hook.GroupHook) string {
	if u, ok := s.UndiscoveredOf(handler); ok {
		return u.clause()
	}
	_, extensionConfig, qualified := splitName(handler)
	if of := s.memberOf[extensionConfig]; of != nil && of.Name == extensionConfig {
		for _, member := range []string{of.Stable, of.Candidate} {
			if member != "" && !s.Knows(member) {
				return fmt.Sprintf("ExtensionConfig %q of %s has not been discovered", member, of)
			}
		}
	}
	if qualified && s.offering(extensionConfig) != nil {
		return ""
	}
	for _, u := range s.undiscovered {
		if u.Unreadable != "" || !qualified && s.mayOffer(u, gh) {
			return u.clause()
		}
	}
	return ""
}

// AwaitedConfig is Awaited for the handlers of an ExtensionConfig.
func (s *Snapshot) AwaitedConfig(name string) string {
	return s.Awaited("."+name, hook.GroupHook{})
}

// mayOffer reports whether handlers of an ExtensionConfig for a hook will be offered under their own names.
func (s *Snapshot) mayOffer(u *Undiscovered, gh hook.GroupHook) bool {
	p := s.policies[u.Name].All
	return p != nil && p.OfferAs == policy.Original && p.Allows(gh.Hook)
}

// clause says that the handlers are not known, and why.
func (u *Undiscovered) clause() string {
	switch {
	case u.Unreadable != "":
		return fmt.Sprintf("the handlers of %s are not known yet", u)
	case u.Cause == "":
		return u.String() + " has not been discovered yet"
	}
	return u.String() + " has not been discovered: " + u.Cause
}

// Knows reports whether an ExtensionConfig is registered, or known not to be discovered yet.
func (s *Snapshot) Knows(extensionConfig string) bool {
	return s.awaits(extensionConfig) != nil || s.byConfig[extensionConfig] != nil
}

// Policies returns the policies for the handlers of an ExtensionConfig, registered or not.
func (s *Snapshot) Policies(extensionConfig string) Policies { return s.policies[extensionConfig] }

// awaits returns the ExtensionConfig of a name whose handlers are not known and may come, or nil.
func (s *Snapshot) awaits(extensionConfig string) *Undiscovered {
	if i, found := s.findUndiscovered(extensionConfig); found && !s.undiscovered[i].Aside {
		return s.undiscovered[i]
	}
	return nil
}

func (s *Snapshot) findUndiscovered(key string) (int, bool) {
	return slices.BinarySearchFunc(s.undiscovered, key, func(u *Undiscovered, key string) int {
		return cmp.Compare(u.key(), key)
	})
}

// SetUndiscovered adds or replaces ExtensionConfigs whose handlers are not known. One that is registered is left alone.
// They go when they are registered, or removed with RemoveAll, by their Name or Unreadable. All changes are visible at
// once.
func (r *Registry) SetUndiscovered(all []Undiscovered) {
	r.mu.Lock()
	defer r.mu.Unlock()
	next := *r.current.Load()
	changed := map[string]*Undiscovered{}
	for _, u := range all {
		i, found := next.findUndiscovered(u.key())
		c, registered := next.byConfig[u.Name]
		registered = registered && c.registration.InProcess == nil || next.shadowed[u.Name] != nil
		if !registered && (!found || !next.undiscovered[i].equal(&u)) {
			changed[u.key()] = &u
		}
	}
	if len(changed) == 0 {
		return
	}
	next.undiscovered = slices.DeleteFunc(slices.Clone(next.undiscovered), func(u *Undiscovered) bool {
		return changed[u.key()] != nil
	})
	for _, u := range changed {
		next.undiscovered = append(next.undiscovered, u)
	}
	slices.SortFunc(next.undiscovered, func(a, b *Undiscovered) int { return cmp.Compare(a.key(), b.key()) })
	next.setStanding()
	r.current.Store(&next)
}

// discover removes an ExtensionConfig from those whose handlers are not known, and reports whether it was among them.
func (s *Snapshot) discover(key string) bool {
	i, found := s.findUndiscovered(key)
	if found {
		s.undiscovered = slices.Delete(slices.Clone(s.undiscovered), i, i+1)
	}
	return found
}
