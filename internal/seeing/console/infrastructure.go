// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package console

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/base/status"
	"github.com/hookgate/hookgate/internal/base/text"
)

// Infrastructure reads the objects of the infrastructure provider in the cluster of the gateway. It is safe for
// concurrent use.
type Infrastructure func(ctx context.Context) (*status.Infrastructure, error)

// objects are the objects of the infrastructure provider, which all pages share for a while: to read them takes a list
// of all machines.
type objects struct {
	read Infrastructure // nil without a cluster

	mu     sync.Mutex // held while they are read
	latest *status.Infrastructure
	err    error
	asked  time.Time
}

func (o *objects) now(ctx context.Context) (*status.Infrastructure, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if time.Since(o.asked) >= limits.InfrastructurePageAge {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), limits.InfrastructurePageTimeout)
		defer cancel()
		o.latest, o.err = o.read(ctx)
		o.asked = time.Now()
	}
	return o.latest, o.err
}

// infrastructureView is the data of the page of the infrastructure provider.
type infrastructureView struct {
	Query  string
	Error  string
	Tables []infrastructureTable
}

// infrastructureTable is the objects of one kind, those with which something is wrong first.
type infrastructureTable struct {
	Heading, Word, Kind string
	Rows                []status.InfrastructureObject
	Total, Wrong, More  int // More counts those beyond the limit
	Now                 time.Time
}

func (h *Handler) infrastructure(r *http.Request) (*view, int) {
	v := &infrastructureView{Query: text.Cut(r.URL.Query().Get("q"), limits.QuotedBytes)}
	page := &view{Title: "Infrastructure", Section: "infrastructure.html", Gateway: h.now().Gateway, Data: v}
	if h.objects.read == nil {
		v.Error = "this gateway has no cluster"
		return page, http.StatusNotFound
	}
	s, err := h.objects.now(r.Context())
	if err != nil {
		v.Error = err.Error()
		return page, http.StatusOK
	}
	for _, t := range []infrastructureTable{
		{Heading: "Clusters", Word: "clusters", Kind: "HookgateCluster", Rows: s.Clusters},
		{Heading: "Pools", Word: "pools", Kind: "HookgateMachinePool", Rows: s.Pools},
		{Heading: "Machines", Word: "machines", Kind: "HookgateMachine", Rows: s.Machines},
	} {
		t.Now = s.Now
		t.choose(v.Query)
		v.Tables = append(v.Tables, t)
	}
	return page, http.StatusOK
}

// choose keeps the rows whose name has a part, those with which something is wrong first, up to the limit.
func (t *infrastructureTable) choose(part string) {
	var wrong, well []status.InfrastructureObject
	for i := range t.Rows {
		o := &t.Rows[i]
		switch {
		case !strings.Contains(o.Namespace+"/"+o.Name, part) && o.Cluster != part:
		case o.Well():
			well = append(well, *o)
		default:
			wrong = append(wrong, *o)
		}
	}
	t.Wrong, t.Total = len(wrong), len(wrong)+len(well)
	t.Rows = slices.Concat(wrong, well)
	t.More = max(len(t.Rows)-maxRows, 0)
	t.Rows = t.Rows[:len(t.Rows)-t.More]
}

// provides reports whether an extension of a gateway makes infrastructure.
func provides(g *status.Gateway) bool {
	return slices.ContainsFunc(g.Extensions, func(x status.Extension) bool {
		return slices.ContainsFunc(x.Handlers, func(h status.Handler) bool { return h.Hook == "ReconcileMachine" })
	})
}
