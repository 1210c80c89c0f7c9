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
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/base/status"
	"github.com/hookgate/hookgate/internal/base/text"
	"github.com/hookgate/hookgate/internal/calls/activity"
	"github.com/hookgate/hookgate/internal/contract/openapi"
)

// Source is what the page shows. It is safe for concurrent use.
type Source interface {
	Gateway() *status.Gateway
	// Extension returns the status with one extension, and false if there is none of that name.
	Extension(name string) (*status.Gateway, bool)
	// Cluster returns what is known of a Cluster, and false if that is what any other one of its namespace would have.
	Cluster(namespace, name string) (*status.Cluster, bool)
	// Clusters returns the Clusters whose namespace/name has a part, at most so many, and counts the others.
	Clusters(part string, most int) (found []status.SeenCluster, more int)
	// History returns the calls to a handler, to an extension, or to all if both are empty, and what has changed.
	History(extension, handler string, of activity.Range) *status.History
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
	"base-uri 'none'; frame-ancestors 'none'; form-action 'self'"

//go:embed page
var page embed.FS

// Handler serves the page.
type Handler struct {
	// Dashboard is the address of a dashboard of the metrics, to which the page links; empty for none. It must not be
	// changed once the page is served.
	Dashboard string

	source    Source
	hooks     func() net.Addr
	templates *template.Template
	streams   chan struct{} // has a place for each live page
	pages     chan struct{} // has a place for each other page
	mux       *http.ServeMux
	objects   objects

	mu     sync.Mutex // held while a source is asked
	latest moment
	asked  time.Time
}

// moment is what a source knew at one time. Nothing of it may be changed.
type moment struct {
	*status.Gateway
	waiting []waiting
	history map[activity.Range]*status.History // of the calls to all extensions
}

// New returns a Handler for the paths below /. hooks returns the address at which the hooks are served with their own
// page, and nil if there is none. read is nil without a cluster.
func New(source Source, hooks func() net.Addr, read Infrastructure) *Handler {
	h := &Handler{
		source: source, hooks: hooks, streams: make(chan struct{}, maxStreams), pages: make(chan struct{}, maxPages),
		mux: http.NewServeMux(), objects: objects{read: read},
	}
	h.templates = template.Must(template.New("").Funcs(functions).ParseFS(page, "page/*.html"))
	h.mux.HandleFunc("GET /{$}", h.serve(h.overview))
	h.mux.HandleFunc("GET /extensions/{name}", h.serve(h.extension))
	h.mux.HandleFunc("GET /clusters/{$}", h.serve(h.clusters))
	h.mux.HandleFunc("GET /infrastructure/{$}", h.serve(h.infrastructure))
	h.mux.HandleFunc("GET /clusters/{namespace}/{name}", h.serve(h.cluster))
	for name, contentType := range map[string]string{
		"console.css": "text/css; charset=utf-8", "charts.css": "text/css; charset=utf-8",
		"console.js": "text/javascript; charset=utf-8", "icon.svg": "image/svg+xml",
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
	header.Set("Content-Security-Policy", policy+actOf(r).formAction())
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
	Hooks   string // the address of the page of the hooks; empty if it is not known
	Act     act    // where to do what commands do
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
		v.Hooks, v.Act = h.pageOfHooks(r), actOf(r)
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

// now returns what the source knew a moment ago.
func (h *Handler) now() moment {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.latest.Gateway == nil || time.Since(h.asked) >= freshness {
		g := h.source.Gateway()
		h.latest, h.asked = moment{g, byCluster(g.Holds), map[activity.Range]*status.History{}}, time.Now()
	}
	return h.latest
}

// pageOfHooks returns the address of the page that describes the hooks and calls them. It is at another port than this
// page. If it is served on all addresses, its host is the one of the request. It links back to this page.
func (h *Handler) pageOfHooks(r *http.Request) string {
	address := h.hooks()
	if address == nil {
		return ""
	}
	host, port, err := net.SplitHostPort(address.String())
	if err != nil {
		return "" // it is no address of TCP
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		host = (&url.URL{Host: r.Host}).Hostname()
	}
	from := url.URL{Scheme: "http", Host: r.Host}
	if r.TLS != nil {
		from.Scheme = "https"
	}
	return (&url.URL{
		Scheme: "https", Host: net.JoinHostPort(host, port), Path: openapi.Prefix,
		RawQuery: url.Values{"status": {from.String()}}.Encode(),
	}).String()
}

// extensionView is the data of the page of an extension.
type extensionView struct {
	*status.Extension
	Sorted []*status.Handler // the worst first
	Held   waitingTable      // Waiting counts its calls
	Charts *charts
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
	x := &g.Extensions[0]
	x.Failures = together(x.Failures)
	for i := range x.Handlers { // what is said of the extension is not said again
		if of := &x.Handlers[i]; of.Error != "" && strings.Contains(x.Error, of.Error) {
			of.Error = ""
		}
	}
	chosen := r.URL.Query().Get("handler")
	if !slices.ContainsFunc(x.Handlers, func(of status.Handler) bool { return of.Name == chosen }) {
		chosen = ""
	}
	handlers := list("handler", "handlers", x.Handlers, 0, stateOfHandler, func(all, _ int) int { return all }).Rows
	return &view{
		Title: name, Section: "extension.html", Gateway: g,
		Data: &extensionView{x, handlers, shown(byCluster(g.Holds)), h.charts(r, name, chosen)},
	}, http.StatusOK
}

// together returns failures with those that differ only in when they happened as one, which counts them all.
func together(failures []status.Failure) []status.Failure {
	type alike struct{ hook, handler, outcome, kind, message string }
	var all []status.Failure
	at := map[alike]int{}
	for _, f := range failures { // newest first
		key := alike{f.Hook, f.Handler, f.Outcome, f.Kind, f.Message}
		if i, ok := at[key]; ok {
			all[i].Times += f.Times
			continue
		}
		at[key] = len(all)
		all = append(all, f)
	}
	return all
}
