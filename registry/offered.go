// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"fmt"
	"strings"

	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/calls/policy"
)

// Offered returns the name under which a handler is offered to callers that name it: its label or, if the policy for
// its extension offers the names as they are, its own. If its own name could mean something else, too, it keeps the
// label, and collision says what.
func (s *Snapshot) Offered(e *Entry) (name, collision string) {
	if s.byOwnName[e.Handler.Name] == e {
		return e.Handler.Name, ""
	}
	return e.Label, s.collisions[e]
}

// setOffered finds the handlers that are offered under their own names, and the chains that stand for others. The
// answer depends on what is registered alone, not on what came first: of handlers with the same name, none gets it.
func (s *Snapshot) setOffered() {
	s.byOwnName, s.collisions = nil, nil
	s.setStanding()
	if s.sidecar {
		return
	}
	claims := map[string][]*Entry{}
	for _, c := range s.offerings() {
		for _, e := range c.entries {
			if p := e.OfExtension; p == nil || p.OfferAs != policy.Original || e.isLocal() {
				break // it is the policy of the others, too
			}
			if _, merged := s.merged[strings.ToLower(e.Handler.Hook.Hook)]; !merged {
				claims[e.Handler.Name] = append(claims[e.Handler.Name], e)
			}
		}
	}
	if len(claims) == 0 {
		return
	}
	s.byOwnName, s.collisions = make(map[string]*Entry, len(claims)), map[*Entry]string{}
	for name, entries := range claims {
		for i, e := range entries {
			if other := s.otherMeaning(name, entries, i); other != "" {
				s.collisions[e] = fmt.Sprintf("handler %q is offered as %q, because %q is also %s", e.Name, e.Label, name, other)
			} else {
				s.byOwnName[name] = e
			}
		}
	}
}

// offerings returns what callers see.
func (s *Snapshot) offerings() []*config {
	all := make([]*config, 0, len(s.registrations)+len(s.offers))
	for _, r := range s.registrations {
		if s.memberOf[r.Name] == nil {
			all = append(all, s.byConfig[r.Name])
		}
	}
	for _, of := range s.rollouts { // their order decides nothing
		if c := s.offers[of.Name]; c != nil {
			all = append(all, c)
		}
	}
	return all
}

// isLocal reports whether the handler has no server.
func (e *Entry) isLocal() bool { return e.Registration.InProcess != nil && e.Variants == nil }

// otherMeaning says what else the own name of claims[i] means, for a message; nothing if it means that alone.
func (s *Snapshot) otherMeaning(name string, claims []*Entry, i int) string {
	if merged, ok := s.merged[name]; ok {
		return "the name of the gateway's own handler of " + merged.Hook
	}
	if e, ok := s.byLabel(name); ok {
		return fmt.Sprintf("the label of handler %q", e.Name)
	}
	if c, ok := s.Chain(name); ok {
		return "the name of " + c.String()
	}
	switch {
	case len(claims) == 1:
		return ""
	case i > 0:
		return fmt.Sprintf("the name of handler %q", claims[0].Name)
	default:
		return fmt.Sprintf("the name of handler %q", claims[1].Name)
	}
}

// Collisions returns why handlers of an ExtensionConfig are not offered under their own names though its policy says
// so, ordered by their names.
func (s *Snapshot) Collisions(extensionConfig string) []string {
	var all []string
	of := s.offering(extensionConfig)
	if of == nil {
		return nil
	}
	for _, e := range of.entries {
		if _, collision := s.Offered(e); collision != "" {
			all = append(all, collision)
		}
	}
	return all
}

// mergedByName returns hooks by their names in lower case.
func mergedByName(merged []hook.GroupHook) map[string]hook.GroupHook {
	names := make(map[string]hook.GroupHook, len(merged))
	for _, gh := range merged {
		names[strings.ToLower(gh.Hook)] = gh
	}
	return names
}
