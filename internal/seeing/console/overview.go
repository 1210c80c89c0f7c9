// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package console

import (
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/base/status"
	"github.com/hookgate/hookgate/internal/base/text"
)

// overview is the data of the first page.
type overview struct {
	Query, State string
	Show         string // the only list of the page, by its word; empty for all lists
	Summary      summary
	Charts       *charts // unless the page has only one list
	Extensions   listed[status.Extension]
	Waiting      waitingTable
	Rollouts     listed[status.Rollout]
	Locals       []listed[status.InProcess]
	Chains       listed[status.Chain]
	Policies     listed[status.Policy]
}

// tile is a number of things that are alike. Its link lists them alone, or everything again if it is chosen.
type tile struct {
	Count  int
	State  status.State // which has the colour
	Text   string
	Link   string
	Chosen bool
}

// extensionsOnly is what Show is for the list of extensions.
const extensionsOnly = "extensions"

func (h *Handler) overview(r *http.Request) (*view, int) {
	m := h.now()
	g := m.Gateway
	q := r.URL.Query()
	o := overview{Query: text.Cut(q.Get("q"), limits.QuotedBytes), State: q.Get("state"), Show: q.Get("show")}
	if o.Query != "" || o.State != "" {
		o.Show = extensionsOnly
	}
	var found []status.Extension
	counts := map[status.State]int{}
	for i := range g.Extensions {
		x := &g.Extensions[i]
		if !strings.Contains(x.Name, strings.ToLower(o.Query)) {
			continue
		}
		counts[x.State]++
		if o.State == "" || string(x.State) == o.State {
			found = append(found, *x)
		}
	}
	o.Extensions = list("extension", extensionsOnly, found, 0, stateOfExtension, o.room(extensionsOnly, roomOfExtensions))
	o.Rollouts = list(
		"rollout", "rollouts", g.Rollouts, g.MissedRollouts, stateOfVerdict, o.room("rollouts", roomOfOthers))
	o.Locals = []listed[status.InProcess]{
		list("rule", "rules", g.Rules, g.MissedRules, stateOfVerdict, o.room("rules", roomOfOthers)),
		list("job", "jobs", g.Jobs, g.MissedJobs, stateOfVerdict, o.room("jobs", roomOfOthers)),
	}
	o.Chains = list("chain", "chains", g.Chains, g.MissedChains, stateOfVerdict, o.room("chains", roomOfOthers))
	o.Policies = list("policy", "policies", g.Policies, g.MissedPolicies, stateOfVerdict, o.room("policies", roomOfOthers))
	o.Waiting = shown(m.waiting)
	o.summarize(m, counts)
	if o.Show == "" {
		o.Charts = h.charts(r, "", "")
	}
	return &view{Title: "Extensions", Section: "overview.html", Gateway: g, Data: &o}, http.StatusOK
}

// room returns the room of a list, which may be the only one of the page.
func (o *overview) room(words string, among func(all, wrong int) int) func(all, wrong int) int {
	if o.Show == words {
		return roomOfOne
	}
	return among
}

// Has reports whether the page has a list.
func (o *overview) Has(words string) bool { return o.Show == "" || o.Show == words }

// ClustersFirst reports whether the Clusters that wait, and the charts, come before the extensions, none of which needs
// attention.
func (o *overview) ClustersFirst() bool { return o.Show == "" && o.Summary.Wrong == 0 }

// Rolling returns the Clusters of a rollout that the page has, and Unseen counts the others.
func (o *overview) Rolling(r *status.Rollout) []status.RolloutCluster {
	if o.Show == "" {
		return r.Clusters[:min(len(r.Clusters), wellRows)]
	}
	return r.Clusters
}

// Unseen counts the Clusters of a rollout that the page does not have.
func (o *overview) Unseen(r *status.Rollout) int {
	return len(r.Clusters) - len(o.Rolling(r)) + r.MissedClusters
}

// summary says how a gateway is, at a glance.
type summary struct {
	Total, Wrong int // extensions
	States       []tile
	Others       []tile
	Clusters     int       // that wait
	Failing      int       // those of them for which a handler fails
	Since        time.Time // when the first of them began to
}

// summarize counts the extensions, all of them and by state those that are searched for, and what else needs attention.
func (o *overview) summarize(m moment, counts map[status.State]int) {
	s := &o.Summary
	s.Total, s.Clusters = len(m.Extensions), len(m.waiting)
	for i := range m.Extensions {
		if needsAttention(m.Extensions[i].State) {
			s.Wrong++
		}
	}
	for _, state := range []status.State{status.Down, status.Failing, status.Slow, status.Unknown, status.Up} {
		t := tile{Count: counts[state], State: state, Text: stated(state).Text, Chosen: o.State == string(state)}
		values := url.Values{}
		if !t.Chosen {
			values.Set("state", string(state))
		}
		if o.Query != "" {
			values.Set("q", o.Query)
		}
		if t.Link = "/?" + values.Encode(); t.Count > 0 || t.Chosen {
			s.States = append(s.States, t)
		}
	}
	addTile(o, &o.Rollouts)
	for i := range o.Locals {
		addTile(o, &o.Locals[i])
	}
	addTile(o, &o.Chains)
	addTile(o, &o.Policies)
	for i := range m.waiting {
		if m.waiting[i].Failing > 0 {
			s.Failing++
		}
		if since := m.waiting[i].Since; s.Since.IsZero() || since.Before(s.Since) {
			s.Since = since
		}
	}
}

// addTile adds how much of a list needs attention, if anything does.
func addTile[T any](o *overview, l *listed[T]) {
	if l.Wrong == 0 {
		return
	}
	t := tile{
		Count: l.Wrong, State: l.Worst, Text: l.Words, Link: "/?show=" + l.Words, Chosen: o.Show == l.Words,
	}
	if t.Count == 1 {
		t.Text = l.Word
	}
	if t.Chosen {
		t.Link = "/"
	}
	o.Summary.Others = append(o.Summary.Others, t)
}
