// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/limits"
)

// addedGroup is a group of hooks besides those of Cluster API and of infrastructure. The package knows nothing of what
// its hooks mean, so that it calls only those for which it was given a request.
type addedGroup struct {
	discovery *catalog.Hook
	first     *exchange
	// absent reports whether the extension does not have the discovery of the group: it refuses it, or fails as it does
	// for any hook that does not exist.
	absent bool
}

// answers reports whether the extension lists handlers of the group.
func (g *addedGroup) answers() bool { return g.first.status() == success }

// discoverAdded asks for the handlers of added groups, and makes those known for which there is a request.
func (s *session) discoverAdded(ctx context.Context) {
	taken := map[string]bool{}
	for _, h := range s.handlers {
		taken[h.name] = true
	}
	for _, versions := range s.catalog.Discoveries() {
		d := versions[0]
		if d.Group == s.discovery.Group || d.Group == hook.InfrastructureGroup {
			continue
		}
		g := &addedGroup{discovery: d, first: s.askAdded(ctx, d)}
		s.added = append(s.added, g)
		if !g.answers() {
			g.absent = g.first.outcome == refused || s.answersAnyHook(ctx, g.first)
			continue
		}
		for _, a := range g.first.parsed.Handlers {
			gvh, err := hook.Parse(a.RequestHook.APIVersion, a.RequestHook.Hook)
			h, ok := s.catalog.Lookup(gvh)
			if err != nil || !ok || h.Group != d.Group || h.Singleton() || taken[a.Name] ||
				len(validation.IsDNS1123Label(a.Name)) > 0 {
				continue // groups.discovery says it
			}
			if s.requests[h.Hook] == nil {
				s.uncalled = append(s.uncalled, h.Hook)
				continue
			}
			taken[a.Name] = true
			s.handlers = append(s.handlers, &handler{
				name: a.Name, hook: h, timeout: timeoutOf(a), understands: s.understoodBy(a),
			})
		}
	}
}

// answersAnyHook reports whether x is what an extension, which has hooks of Cluster API, answers to hooks that do not
// exist.
func (s *session) answersAnyHook(ctx context.Context, x *exchange) bool {
	if s.first.status() != success {
		return false
	}
	other := s.askNowhere(ctx, "")
	return x.outcome == other.outcome && x.code == other.code && x.status() == other.status()
}

func (s *session) askAdded(ctx context.Context, discovery *catalog.Hook) *exchange {
	ctx, cancel := context.WithTimeout(ctx, limits.DiscoveryTimeout)
	defer cancel()
	return s.transport.call(ctx, discovery, "", discovery.Request.New().Interface())
}

// servesAdded reports whether the extension lists handlers of an added group.
func (s *session) servesAdded() bool {
	for _, g := range s.added {
		if g.answers() {
			return true
		}
	}
	return false
}

var groupChecks = []Check{
	{
		ID: "groups.discovery", Level: Must,
		Rule: "The discovery of an additional group of hooks answers with status Success. The answer lists at most " +
			"512 handlers. The handlers belong to the group, have timeouts from 0 to 30, and have names that no other " +
			"handler has.",
		Source: contract + "discovery.proto",
		run: eachAdded(func(_ context.Context, s *session, v *verdict, g *addedGroup) {
			if !g.answers() {
				v.failf(g.first, "%s: there is no answer with status Success", g.discovery.Hook)
				return
			}
			if n := len(g.first.parsed.Handlers); n > limits.Handlers {
				v.failf(g.first, "%s: there are %d handlers, which is more than %d", g.discovery.Hook, n, limits.Handlers)
			}
			seen := map[string]bool{}
			for _, a := range s.announced {
				seen[a.Name] = true
			}
			for i, a := range g.first.parsed.Handlers {
				problem := s.wrongHandler(a, g.discovery.GroupVersionHook, seen)
				if problem == "" {
					problem = s.wrongPolicy(a)
				}
				if problem != "" {
					v.failf(g.first, "%s: handlers[%d]: %s", g.discovery.Hook, i, problem)
				}
				seen[a.Name] = true
			}
		}),
	},
	{
		ID: "groups.content", Level: Must,
		Rule:   "For each additional group of hooks, every answer of the group's discovery announces the same handlers.",
		Source: guidelines + "Deterministic result",
		run: eachAdded(func(ctx context.Context, s *session, v *verdict, g *addedGroup) {
			if !g.answers() {
				return // groups.discovery says it
			}
			for range 10 {
				x := s.askAdded(ctx, g.discovery)
				if x.status() != success {
					v.failf(x, "%s answered before, but does not now", g.discovery.Hook)
					return
				}
				if problem := otherHandlers(g.first.parsed.Handlers, x.parsed.Handlers); problem != "" {
					v.failf(x, "%s: %s", g.discovery.Hook, problem)
					return
				}
			}
		}),
	},
}

// eachAdded returns a run that checks each added group that the extension has.
func eachAdded(check func(context.Context, *session, *verdict, *addedGroup)) runFunc {
	return func(ctx context.Context, s *session, v *verdict) {
		applies := false
		for _, g := range s.added {
			if g.absent {
				continue
			}
			applies = true
			check(ctx, s, v, g)
		}
		if !applies {
			v.skipf("the extension has no hooks besides those of Cluster API and of infrastructure")
		}
	}
}

// wrongPolicy returns what is wrong with the failure policy of a handler.
func (s *session) wrongPolicy(a announced) string {
	if a.FailurePolicy == nil || *a.FailurePolicy == string(hook.Fail) {
		return ""
	}
	if *a.FailurePolicy != string(hook.Ignore) {
		return fmt.Sprintf("failurePolicy is %q, which is neither Fail nor Ignore", *a.FailurePolicy)
	}
	if gvh, err := hook.Parse(a.RequestHook.APIVersion, a.RequestHook.Hook); err == nil {
		if h, ok := s.catalog.Lookup(gvh); ok && h.FailOnly {
			return "failurePolicy is \"Ignore\", but errors of this hook are never ignored"
		}
	}
	return ""
}
