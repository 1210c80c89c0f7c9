// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package console

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/base/status"
	"github.com/hookgate/hookgate/internal/base/text"
)

const (
	// maxWaiting is the number of Clusters that wait in a list of them, before all else on a page. The page of Clusters
	// has the others first.
	maxWaiting = 10
	// maxHolds is the number of handlers that are listed of those for which a Cluster waits.
	maxHolds = 20
)

// waiting is a Cluster that waits, and the handlers for which it does.
type waiting struct {
	Namespace, Cluster string
	Since              time.Time // when it began to wait for the first of them
	Holds              []status.Hold
	More               int // holds beyond the limit
	Failing            int // holds because a handler fails, or answers Failure
}

// Handlers is the number of holds, each of one handler.
func (w *waiting) Handlers() int { return len(w.Holds) + w.More }

// waitingTable is a list of Clusters that wait.
type waitingTable struct {
	Rows []waiting
	More int  // Clusters beyond the limit
	Open bool // the handlers of each are listed, also if there are several
}

// waitingView is a waitingTable at a time.
type waitingView struct {
	Now time.Time
	Act act
	waitingTable
}

// hold is a hold at a time.
type hold struct {
	Now  time.Time
	Act  act
	Hold status.Hold
}

// byCluster returns one row for each Cluster. Those come first for which a handler fails, and then those that wait
// longest; the handlers of each in the same order.
func byCluster(holds []status.Hold) []waiting {
	type key struct{ namespace, name string }
	var rows []waiting
	at := map[key]int{}
	holds = slices.Clone(holds)
	slices.SortStableFunc(holds, func(a, b status.Hold) int { return cmp.Compare(failing(&b), failing(&a)) })
	for i := range holds {
		h := &holds[i]
		k := key{h.Namespace, h.Cluster}
		n, ok := at[k]
		if !ok {
			n = len(rows)
			at[k], rows = n, append(rows, waiting{Namespace: h.Namespace, Cluster: h.Cluster, Since: h.Since})
		}
		row := &rows[n]
		if h.Since.Before(row.Since) {
			row.Since = h.Since
		}
		row.Failing += failing(h)
		if len(row.Holds) == maxHolds {
			row.More++
			continue
		}
		row.Holds = append(row.Holds, *h)
	}
	return rows
}

// failing returns 1 for a hold because a handler fails, or answers Failure, and otherwise 0.
func failing(h *status.Hold) int {
	if h.Kind != "" {
		return 1
	}
	return 0
}

// shown returns as many rows as a list has.
func shown(rows []waiting) waitingTable {
	n := min(len(rows), maxWaiting)
	return waitingTable{Rows: rows[:n], More: len(rows) - n}
}

// clusterView is the data of the page of a Cluster.
type clusterView struct {
	*status.Cluster
	Known   bool
	Waiting []waiting // at most one
	Routes  []route
}

// route is a hook with the turns of its handlers, or with those of which a call names one.
type route struct {
	Name  string
	All   bool // handlers are called
	Turns []turn
	More  int // handlers beyond the limit
}

// turn has the handlers, or the steps of a chain, that are called at the same time.
type turn []status.HookedHandler

// turnsOf returns handlers by their turns, of which they are in order.
func turnsOf(handlers []status.HookedHandler) (turns []turn) {
	for i := range handlers {
		if i == 0 || handlers[i].Turn != handlers[i-1].Turn {
			turns = append(turns, nil)
		}
		turns[len(turns)-1] = append(turns[len(turns)-1], handlers[i])
	}
	return turns
}

func (h *Handler) cluster(r *http.Request) (*view, int) {
	namespace := text.Cut(r.PathValue("namespace"), limits.QuotedBytes)
	name := text.Cut(r.PathValue("name"), limits.QuotedBytes)
	c, known := h.source.Cluster(namespace, name)
	v := clusterView{Cluster: c, Known: known, Waiting: byCluster(c.Holds)}
	for _, of := range c.Hooks {
		n := min(len(of.Handlers), maxRows)
		v.Routes = append(v.Routes, route{
			Name: of.Name, All: of.Called == status.CalledAll, Turns: turnsOf(of.Handlers[:n]), More: len(of.Handlers) - n,
		})
	}
	code := http.StatusOK
	if !known {
		code = http.StatusNotFound
	}
	return &view{Title: namespace + "/" + name, Section: "cluster.html", Gateway: h.now().Gateway, Data: &v}, code
}

// clusterList is the data of the page that finds Clusters.
type clusterList struct {
	Query string
	Rows  []status.SeenCluster
	More  int
	// Link is the page of the Cluster that the query names in full, if it does.
	Link string
}

func (h *Handler) clusters(r *http.Request) (*view, int) {
	l := clusterList{Query: text.Cut(strings.TrimSpace(r.URL.Query().Get("q")), limits.QuotedBytes)}
	l.Rows, l.More = h.source.Clusters(strings.ToLower(l.Query), maxRows)
	namespace, name, ok := strings.Cut(l.Query, "/")
	if ok && namespace != "" && name != "" && !strings.Contains(name, "/") {
		l.Link = (&url.URL{Path: "/clusters/" + l.Query}).String()
	}
	return &view{Title: "Clusters", Section: "clusters.html", Gateway: h.now().Gateway, Data: &l}, http.StatusOK
}
