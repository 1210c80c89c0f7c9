// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"fmt"
	"time"

	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/base/status"
	"github.com/hookgate/hookgate/internal/base/text"
	"github.com/hookgate/hookgate/internal/calls/activity"
	"github.com/hookgate/hookgate/internal/calls/circuit"
	"github.com/hookgate/hookgate/registry"
)

// unregistered is unregistered with the certificates of the extensions.
func (r *Reporter) unregistered(
	now time.Time, s *registry.Snapshot, discoveries map[string]activity.Discovery,
) []status.Extension {
	all := unregistered(s, discoveries)
	clients := map[string]registry.ClientConfig{}
	for _, u := range s.Undiscovered() {
		clients[u.Name] = u.ClientConfig
	}
	for i := range all {
		r.certify(&all[i], clients[all[i].Name], now)
	}
	return all
}

// unregistered describes the extensions that are not registered: those whose handlers are not known, and those that are
// only known by their discoveries.
func unregistered(s *registry.Snapshot, discoveries map[string]activity.Discovery) []status.Extension {
	var all []status.Extension
	listed := map[string]bool{}
	for _, u := range s.Undiscovered() {
		if u.Name == "" {
			continue
		}
		listed[u.Name] = true
		x := undiscovered(u.Name, discoveries[u.Name])
		if !u.Aside {
			x.Undiscovered = string(u.Effect(s.Policies(u.Name).All))
		}
		all = append(all, x)
	}
	for i := range all {
		all[i].Rollout = memberOf(s, all[i].Name)
	}
	for _, name := range s.Shadowed() {
		listed[name] = true
		x := undiscovered(name, discoveries[name])
		x.State, x.Error = status.Down, "it is not called: its name is also "+s.TakenByLocal(name)
		all = append(all, x)
	}
	for name, d := range discoveries {
		if _, registered := s.Registration(name); !registered && !listed[name] {
			all = append(all, undiscovered(name, d))
		}
	}
	return all
}

// undiscovered describes an extension whose discovery has never succeeded, or has not been tried by this process.
func undiscovered(name string, d activity.Discovery) status.Extension {
	x := status.Extension{
		Name: name, URL: d.URL, State: status.Down, Since: timeOf(d.Since), Error: d.Message, Discovery: discoveryOf(d),
		Circuit: status.Circuit{State: circuit.Closed.String()}, Handlers: []status.Handler{},
	}
	if d.At.IsZero() {
		x.State = status.Unknown
	}
	return x
}

// withheld lists the handlers of an extension that its policy does not allow.
func withheld(s *registry.Snapshot, name string) []status.Withheld {
	var all []status.Withheld
	for _, h := range s.Withheld(name) {
		all = append(all, status.Withheld{Handler: h.Name, Hook: h.Hook.Hook, Policy: s.Policies(name).All.Name})
	}
	return all
}

// Closed returns what operators should know about objects that close calls because they have mistakes, and about
// ExtensionConfigs that are not called because other objects have their names. Its Text is empty if there are none.
func Closed(s *registry.Snapshot) status.Notice {
	texts := make([]string, 0, len(s.Closures()))
	for _, c := range s.Closures() {
		texts = append(texts, fmt.Sprintf("the gateway refuses every call that %s may apply to: %s", c, c.Mistake))
	}
	for _, u := range s.Undiscovered() {
		if u.Mistake != "" {
			texts = append(texts, fmt.Sprintf("%s cannot be discovered: %s", u, u.Mistake))
		}
	}
	for _, name := range s.Shadowed() {
		texts = append(texts, fmt.Sprintf("the gateway does not call ExtensionConfig %q: its name is also %s",
			name, s.TakenByLocal(name)))
	}
	return status.Notice{Name: "objects", Text: text.Join(texts, "; ", limits.Problems)}
}

// unreadableManifests returns a notice about each manifest that cannot be read, for which calls wait.
func unreadableManifests(s *registry.Snapshot) []status.Notice {
	var all []status.Notice
	for _, u := range s.Undiscovered() {
		if u.Name == "" && u.Default == hook.Fail {
			all = append(all, status.Notice{
				Name: "handlers", Text: fmt.Sprintf("calls to all handlers of a hook fail because of %s; the log says why", u),
			})
		}
	}
	return all
}
