// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/base/status"
	"github.com/hookgate/hookgate/internal/base/text"
	"github.com/hookgate/hookgate/internal/kinds"
	"github.com/hookgate/hookgate/registry"
)

// seeSteps adds to a chain all that is known of its steps.
func (r *Reporter) seeSteps(now time.Time, snapshot *registry.Snapshot, shown *status.Chain) {
	c, ok := snapshot.Chain(shown.Name)
	if !ok {
		return
	}
	shown.Steps = nil
	for i := range c.Steps {
		shown.Steps = append(shown.Steps, r.chainStep(now, snapshot, c, i))
	}
}

// chainStep describes a step of a chain.
func (r *Reporter) chainStep(now time.Time, snapshot *registry.Snapshot, c *registry.Chain, i int) status.ChainStep {
	step := &c.Steps[i]
	e, registered := snapshot.Handler(step.Handler)
	shown := status.ChainStep{
		Handler: step.Handler, Registered: registered, Optional: step.Optional, OnHold: step.OnHold,
		Settings: slices.Sorted(maps.Keys(step.Settings)), Allow: step.Allow,
	}
	if _, err := snapshot.Step(c, i); err != nil {
		shown.Problem = err.Error()
	}
	if registered {
		of := r.hooked(now, e)
		shown.Kind = of.Kind
		of.OfferedAs, of.Collision = r.offeredAs(snapshot, e)
		shown.Details = &of
	}
	return shown
}

// chains returns chains with their calls and the names under which they are offered.
func (r *Reporter) chains(now time.Time, snapshot *registry.Snapshot, listed []status.Chain) []status.Chain {
	chains := slices.Clone(listed)
	for i := range chains {
		of := r.Observer.handlers.Of(chains[i].Name, now)
		chains[i].Calls = callsOf(&of.Calls)
		if c, ok := snapshot.Chain(chains[i].Name); ok && snapshot.Taken(c) == "" {
			chains[i].OfferedAs = r.merged(snapshot, c.Hook, c.Name)
		}
	}
	return chains
}

// merged returns the name under which the gateway offers what answers a hook under a name: one name for all of a
// lifecycle hook.
func (r *Reporter) merged(s *registry.Snapshot, gh hook.GroupHook, name string) string {
	if !s.IsSidecar() && slices.Contains(r.Catalog.Merged(), gh) {
		return strings.ToLower(gh.Hook)
	}
	return name
}

// chainsOf returns the names of the chains of which each handler is a step, among those that a status lists.
func chainsOf(s *registry.Snapshot) map[string][]string {
	of := map[string][]string{}
	chains := s.Chains()
	for _, c := range chains[:min(len(chains), limits.StatusChains)] {
		for i := range c.Steps {
			of[c.Steps[i].Handler] = append(of[c.Steps[i].Handler], c.Name)
		}
	}
	return of
}

// hasStep reports whether a step of a chain has a handler that is meant.
func hasStep(c *status.Chain, meant func(handler string) bool) bool {
	return slices.ContainsFunc(c.Steps, func(s status.ChainStep) bool { return meant(s.Handler) })
}

// hasSteps returns the chains that have a handler of an ExtensionConfig as a step.
func hasSteps(chains []status.Chain, extensionConfig string) []status.Chain {
	return slices.DeleteFunc(chains, func(c status.Chain) bool {
		return !hasStep(&c, func(handler string) bool { return strings.HasSuffix(handler, "."+extensionConfig) })
	})
}

// severalOffered says of which hooks the gateway offers more handlers than Cluster API takes. What a gateway for one
// extension offers may be chained by another one.
func (r *Reporter) severalOffered(s *registry.Snapshot) []status.Notice {
	if s.IsSidecar() {
		return nil
	}
	var notices []status.Notice
	for _, h := range r.Catalog.Hubs() {
		if message := kinds.SeveralOffered(s, h); message != "" {
			notices = append(notices, status.Notice{Name: h.Hook, Text: message})
		}
	}
	return notices
}

// noSuch says that nothing of a kind has a name, and which name is nearly the same.
func noSuch(kind, name string, names []string) string {
	name = text.Cut(name, limits.QuotedBytes)
	if meant := text.Nearest(name, names); meant != "" {
		return fmt.Sprintf("there is no %s %q: did you mean %q?", kind, name, meant)
	}
	return fmt.Sprintf("there is no %s %q", kind, name)
}
