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
	States       []stateCount
	Extensions   []status.Extension
	More         int // extensions beyond the limit
	Summary      summary
	Waiting      waitingTable
	Locals       []localTable
	Chains       []status.Chain
	MoreChains   int
	Policies     []status.Policy
	MorePolicies int
	Rollouts     []status.Rollout
	MoreRollouts int
}

// localTable is the handlers without servers of one kind.
type localTable struct {
	Heading, Word string // what one is called
	Rows          []status.InProcess
	More          int
}

// stateCount is how many extensions have a state. Its link lists them.
type stateCount struct {
	State  status.State
	Count  int
	Link   string
	Chosen bool
}

func (h *Handler) overview(r *http.Request) (*view, int) {
	m := h.now()
	g := m.Gateway
	q := r.URL.Query()
	o := overview{
		Query: text.Cut(q.Get("q"), limits.QuotedBytes), State: q.Get("state"),
		Summary: summarize(m), Waiting: shown(m.waiting),
	}
	counts := map[status.State]int{}
	for i := range g.Extensions {
		x := &g.Extensions[i]
		if !strings.Contains(x.Name, strings.ToLower(o.Query)) {
			continue
		}
		counts[x.State]++
		switch {
		case o.State != "" && string(x.State) != o.State:
		case len(o.Extensions) == maxRows:
			o.More++
		default:
			o.Extensions = append(o.Extensions, *x)
		}
	}
	for _, s := range []status.State{status.Down, status.Failing, status.Slow, status.Up, status.Unknown} {
		c := stateCount{State: s, Count: counts[s], Chosen: o.State == string(s)}
		values := url.Values{}
		if !c.Chosen {
			values.Set("state", string(s))
		}
		if o.Query != "" {
			values.Set("q", o.Query)
		}
		if c.Link = "/?" + values.Encode(); c.Count > 0 || c.Chosen {
			o.States = append(o.States, c)
		}
	}
	o.Rollouts, o.MoreRollouts = g.Rollouts, g.MissedRollouts
	o.list("Rule", g.Rules, g.MissedRules)
	o.list("Job", g.Jobs, g.MissedJobs)
	n := min(len(g.Chains), maxRows)
	o.Chains, o.MoreChains = g.Chains[:n], len(g.Chains)-n+g.MissedChains
	n = min(len(g.Policies), maxRows)
	o.Policies, o.MorePolicies = g.Policies[:n], len(g.Policies)-n+g.MissedPolicies
	return &view{Title: "Extensions", Section: "overview.html", Gateway: g, Data: &o}, http.StatusOK
}

// list adds a table of handlers without servers, if there are any.
func (o *overview) list(heading string, all []status.InProcess, missed int) {
	if n := min(len(all), maxRows); n > 0 {
		o.Locals = append(o.Locals, localTable{heading, strings.ToLower(heading), all[:n], len(all) - n + missed})
	}
}

// summary says how a gateway is, in a line.
type summary struct {
	States   []stateCount // without links
	Clusters int          // that wait
	Since    time.Time    // when the first of them began to
}

func summarize(m moment) summary {
	s := summary{Clusters: len(m.waiting)}
	counts := map[status.State]int{}
	for i := range m.Extensions {
		counts[m.Extensions[i].State]++
	}
	for _, state := range []status.State{status.Up, status.Slow, status.Failing, status.Down, status.Unknown} {
		if counts[state] > 0 {
			s.States = append(s.States, stateCount{State: state, Count: counts[state]})
		}
	}
	for i := range m.waiting {
		if since := m.waiting[i].Since; s.Since.IsZero() || since.Before(s.Since) {
			s.Since = since
		}
	}
	return s
}
