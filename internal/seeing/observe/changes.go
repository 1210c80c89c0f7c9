// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hookgate/hookgate/internal/base/status"
	"github.com/hookgate/hookgate/internal/base/text"
	"github.com/hookgate/hookgate/internal/calls/activity"
	"github.com/hookgate/hookgate/registry"
)

// fewChanges is the number of changes of one sort that are noted one by one if they come at once.
const fewChanges = 5

// changes finds what has changed, by comparing what is in effect with what was. Its zero value knows nothing.
type changes struct {
	activity.Changes

	mu       sync.Mutex
	seen     *registry.Snapshot
	rollouts map[string]status.Rollout
}

// Run looks for changes every second, and collects the calls of the history, until ctx is done.
func (r *Reporter) Run(ctx context.Context) error {
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	var collected int64
	for {
		select {
		case <-ctx.Done():
			return nil
		case now := <-ticker.C:
			r.Observer.changes.look(now, r.Registry.Snapshot())
			if slot := now.UnixNano() / int64(activity.Slot); slot != collected {
				collected = slot
				r.Observer.history.Collect(now)
				r.Observer.changes.lookAtRollouts(now, r.listed().Rollouts)
			}
		}
	}
}

// look notes what differs between a snapshot and the one before. What is there at the start is no change.
func (c *changes) look(now time.Time, s *registry.Snapshot) {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.seen
	if !s.Ready() || s == before {
		return
	}
	if c.seen = s; before == nil {
		return
	}
	found := map[string][]activity.Change{} // by what has happened
	add := func(what, name string, of ...string) {
		found[what] = append(found[what], activity.Change{At: now, Text: name, Of: of})
	}
	registrations(before, s, add)
	policies(before, s, add)
	for _, what := range slices.Sorted(maps.Keys(found)) {
		c.note(what, found[what])
	}
}

// note adds changes of one sort, whose texts are names: one by one, or as one if they are many.
func (c *changes) note(what string, found []activity.Change) {
	slices.SortFunc(found, func(a, b activity.Change) int { return strings.Compare(a.Text, b.Text) })
	if len(found) <= fewChanges {
		for _, change := range found {
			change.Text += " " + what
			c.Add(change)
		}
		return
	}
	names, of := make([]string, 0, fewChanges), []string{}
	for i := range found {
		if i < fewChanges {
			names = append(names, found[i].Text)
		}
		of = append(of, found[i].Of...)
	}
	c.Add(activity.Change{
		At: found[0].At, Of: of,
		Text: fmt.Sprintf("%s and %d more %s", strings.Join(names, ", "), len(found)-fewChanges, what),
	})
}

// registrations finds the registrations that have come, gone or changed.
func registrations(before, s *registry.Snapshot, add func(what, name string, of ...string)) {
	was := map[string]*registry.Registration{}
	for _, r := range before.Registrations() {
		was[r.Describe()] = r
	}
	for _, r := range s.Registrations() {
		old, known := was[r.Describe()]
		delete(was, r.Describe())
		switch {
		case !known:
			add("registered", naming(r), r.Name)
		case old == r:
		case old.InProcess != r.InProcess:
			add("changed", naming(r), r.Name)
		case old.ClientConfig.URL != r.ClientConfig.URL:
			add("got another URL", naming(r), r.Name)
		case !slices.EqualFunc(old.Handlers, r.Handlers, func(a, b registry.Handler) bool {
			return a.Name == b.Name && a.Hook == b.Hook
		}):
			add("got other handlers", naming(r), r.Name)
		}
	}
	for _, r := range was {
		add("removed", naming(r), r.Name)
	}
}

// naming names a registration, of an extension without its kind.
func naming(r *registry.Registration) string {
	if r.InProcess == nil {
		return r.Name
	}
	return r.InProcess.Kind() + " " + r.Name
}

// policies finds the ExtensionPolicies that have come, gone or changed.
func policies(before, s *registry.Snapshot, add func(what, name string, of ...string)) {
	was, is := policiesOf(before), policiesOf(s)
	for name, p := range is {
		old, known := was[name]
		switch {
		case !known:
			add("added", "policy "+name, p.of)
		case old != p:
			add("changed", "policy "+name, p.of, old.of)
		}
	}
	for name, p := range was {
		if _, known := is[name]; !known {
			add("removed", "policy "+name, p.of)
		}
	}
}

// placed is a policy, and the ExtensionConfig that it is in effect for.
type placed struct {
	*registry.Policy
	of string
}

// policiesOf returns the policies of a snapshot by their names.
func policiesOf(s *registry.Snapshot) map[string]placed {
	all := map[string]placed{}
	for extension, p := range s.AllPolicies() {
		if p.All != nil {
			all[p.All.Name] = placed{p.All, extension}
		}
		for _, of := range p.Handlers {
			all[of.Name] = placed{of, extension}
		}
	}
	return all
}

// lookAtRollouts notes Clusters that have moved, and rollouts whose members have changed.
func (c *changes) lookAtRollouts(now time.Time, all []status.Rollout) {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.rollouts
	first := before == nil
	c.rollouts = make(map[string]status.Rollout, len(all))
	for i := range all {
		is := status.Rollout{
			Name: all[i].Name, Stable: all[i].Stable, Candidate: all[i].Candidate, Moved: all[i].Moved,
		}
		c.rollouts[is.Name] = is
		was := before[is.Name]
		if said := moved(was, is); said != "" && !first {
			c.Add(activity.Change{
				At: now, Text: "rollout " + is.Name + ": " + said, Of: []string{is.Stable, is.Candidate, was.Stable},
			})
		}
	}
}

// moved says what has happened to a rollout; empty if nothing has.
func moved(was, is status.Rollout) string {
	switch {
	case was.Stable != is.Stable || was.Candidate != is.Candidate:
		if is.Candidate == "" {
			return "all Clusters to " + is.Stable
		}
		return is.Candidate + " beside " + is.Stable
	case is.Moved > was.Moved:
		return fmt.Sprintf("%s moved to %s, %d in all", text.Plural(is.Moved-was.Moved, "Cluster"), is.Candidate, is.Moved)
	case is.Moved < was.Moved:
		return fmt.Sprintf("Clusters that have moved to %s: %d fewer, %d in all", is.Candidate, was.Moved-is.Moved, is.Moved)
	}
	return ""
}
