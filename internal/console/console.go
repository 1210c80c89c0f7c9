// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package console serves a page about a gateway for people: which extensions are up and which are down, what each has
// answered lately, and which Clusters wait for them. It only reads. The page needs nothing of other hosts, and works
// without scripts; with them, it follows what happens.
package console

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/hookgate/hookgate/internal/limits"
	"github.com/hookgate/hookgate/internal/status"
	"github.com/hookgate/hookgate/internal/text"
)

// Source is what the page shows. It is safe for concurrent use.
type Source interface {
	Gateway() *status.Gateway
	// Extension returns the status with one extension, and false if there is none of that name.
	Extension(name string) (*status.Gateway, bool)
	Cluster(namespace, name string) *status.Cluster
}

const (
	// maxPages is the number of pages that are made and sent at the same time, besides those that follow what happens.
	// Each takes up to some MiB, for an extension with 512 handlers.
	maxPages = limits.Pages
	// freshness is how old the list of extensions may be. It takes 50 ms of a processor with 2,000 of them, so that all
	// pages that follow what happens share it.
	freshness = limits.PageAge
)

// maxRows is the number of extensions, of rules, of Jobs, of chains, of policies, and of Clusters in a list. A search
// finds the others.
const maxRows = 200

// policy lets the page load its own files, and nothing else.
const policy = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

//go:embed page
var page embed.FS

// Handler serves the page.
type Handler struct {
	source    Source
	templates *template.Template
	streams   chan struct{} // has a place for each live page
	pages     chan struct{} // has a place for each other page
	mux       *http.ServeMux

	mu     sync.Mutex // held while a source is asked
	latest *status.Gateway
	asked  time.Time
}

// New returns a Handler for the paths below /.
func New(source Source) *Handler {
	h := &Handler{
		source: source, streams: make(chan struct{}, maxStreams), pages: make(chan struct{}, maxPages),
		mux: http.NewServeMux(),
	}
	h.templates = template.Must(template.New("").Funcs(functions).ParseFS(page, "page/*.html"))
	h.mux.HandleFunc("GET /{$}", h.serve(h.overview))
	h.mux.HandleFunc("GET /extensions/{name}", h.serve(h.extension))
	h.mux.HandleFunc("GET /clusters/{namespace}/{name}", h.serve(h.cluster))
	for name, contentType := range map[string]string{
		"console.css": "text/css; charset=utf-8", "console.js": "text/javascript; charset=utf-8", "icon.svg": "image/svg+xml",
	} {
		h.mux.HandleFunc("GET /assets/"+name, func(w http.ResponseWriter, _ *http.Request) {
			content, _ := page.ReadFile("page/" + name) // it is embedded
			w.Header().Set("Content-Type", contentType)
			w.Header().Set("Cache-Control", "no-cache")
			_, _ = w.Write(content)
		})
	}
	return h
}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header.Set("Content-Security-Policy", policy)
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.mux.ServeHTTP(w, r)
}

// view is what a template shows.
type view struct {
	Title   string
	Section string // the template of the main part
	Gateway *status.Gateway
	Data    any
}

// serve serves what show returns for a request, as a page, or with a header of console.js as a stream of its main part.
func (h *Handler) serve(show func(r *http.Request) (*view, int)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Accept") == "text/event-stream" {
			h.stream(w, r, show)
			return
		}
		select {
		case h.pages <- struct{}{}:
			defer func() { <-h.pages }()
		default:
			w.Header().Set("Retry-After", "1")
			http.Error(w, fmt.Sprintf("%d pages are being sent already", maxPages), http.StatusServiceUnavailable)
			return
		}
		v, code := show(r)
		body, err := h.render("page.html", v)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Cache-Control", "no-store")
		// A writer without deadlines, as in tests, has a reader that does not stall either.
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(patience))
		w.WriteHeader(code)
		_, _ = w.Write(body) // the browser has left
	}
}

func (h *Handler) render(name string, v *view) ([]byte, error) {
	var b bytes.Buffer
	if err := h.templates.ExecuteTemplate(&b, name, v); err != nil {
		return nil, fmt.Errorf("render the page: %w", err)
	}
	return b.Bytes(), nil
}

// gateway returns what the source knew a moment ago. Nothing of it may be changed.
func (h *Handler) gateway() *status.Gateway {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.latest == nil || time.Since(h.asked) >= freshness {
		h.latest = h.source.Gateway()
		h.asked = time.Now()
	}
	return h.latest
}

// overview is the data of the first page.
type overview struct {
	Query, State string
	States       []stateCount
	Extensions   []status.Extension
	More         int // extensions beyond the limit
	Holds        []status.Hold
	MoreHolds    int
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
	Rows          []status.Local
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
	g := h.gateway()
	q := r.URL.Query()
	o := overview{Query: text.Cut(q.Get("q"), limits.QuotedBytes), State: q.Get("state")}
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
	o.Holds = g.Holds
	if o.MoreHolds = len(g.Holds) - maxRows; o.MoreHolds > 0 {
		o.Holds = g.Holds[:maxRows]
	}
	o.Rollouts, o.MoreRollouts = g.Rollouts, g.MissedRollouts
	o.list("Rule", g.Rules, g.MissedRules)
	o.list("Job", g.Jobs, g.MissedJobs)
	shown := min(len(g.Chains), maxRows)
	o.Chains, o.MoreChains = g.Chains[:shown], len(g.Chains)-shown+g.MissedChains
	shown = min(len(g.Policies), maxRows)
	o.Policies, o.MorePolicies = g.Policies[:shown], len(g.Policies)-shown+g.MissedPolicies
	return &view{Title: "Extensions", Section: "overview.html", Gateway: g, Data: &o}, http.StatusOK
}

// list adds a table of handlers without servers, if there are any.
func (o *overview) list(heading string, all []status.Local, missed int) {
	if shown := min(len(all), maxRows); shown > 0 {
		o.Locals = append(o.Locals, localTable{heading, strings.ToLower(heading), all[:shown], len(all) - shown + missed})
	}
}

func (h *Handler) extension(r *http.Request) (*view, int) {
	name := r.PathValue("name")
	h.mu.Lock()
	g, ok := h.source.Extension(name)
	h.mu.Unlock()
	if !ok {
		return &view{
			Title: "No such extension", Section: "none.html", Gateway: g, Data: text.Cut(name, limits.QuotedBytes),
		}, http.StatusNotFound
	}
	return &view{Title: name, Section: "extension.html", Gateway: g, Data: &g.Extensions[0]}, http.StatusOK
}

func (h *Handler) cluster(r *http.Request) (*view, int) {
	namespace := text.Cut(r.PathValue("namespace"), limits.QuotedBytes)
	name := text.Cut(r.PathValue("name"), limits.QuotedBytes)
	return &view{
		Title: namespace + "/" + name, Section: "cluster.html", Gateway: h.gateway(),
		Data: h.source.Cluster(namespace, name),
	}, http.StatusOK
}
