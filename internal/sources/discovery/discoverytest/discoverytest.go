// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package discoverytest has extensions, a log and an observer for tests of package discovery and of sources.
package discoverytest

import (
	"bytes"
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/calls/extension"
	"github.com/hookgate/hookgate/internal/contract/convert"
	"github.com/hookgate/hookgate/internal/kinds/extensionconfig"
	"github.com/hookgate/hookgate/internal/sources/discovery"
	"github.com/hookgate/hookgate/registry"
)

// Extensions is a Discoverer whose extensions are functions by URL.
type Extensions struct {
	mu       sync.Mutex
	byURL    map[string]func(context.Context) (extension.Discovered, error)
	calls    map[string][]time.Time
	retained [][]string
}

// NewExtensions returns extensions that all refuse connections.
func NewExtensions() *Extensions {
	return &Extensions{
		byURL: map[string]func(context.Context) (extension.Discovered, error){}, calls: map[string][]time.Time{},
	}
}

// Discover implements discovery.Discoverer.
func (e *Extensions) Discover(ctx context.Context, c registry.ClientConfig) (extension.Discovered, error) {
	e.mu.Lock()
	e.calls[c.URL] = append(e.calls[c.URL], time.Now())
	discover := e.byURL[c.URL]
	e.mu.Unlock()
	if discover == nil {
		return extension.Discovered{}, hook.Errorf(hook.Unreachable, "call %s: connection refused", c.URL)
	}
	return discover(ctx)
}

// Retain implements discovery.Discoverer.
func (e *Extensions) Retain(clients []registry.ClientConfig) {
	var urls []string
	for _, c := range clients {
		urls = append(urls, c.URL)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.retained = append(e.retained, urls)
}

// Set makes the extension at that URL answer as discover does, or refuse connections if that is nil.
func (e *Extensions) Set(url string, discover func(context.Context) (extension.Discovered, error)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.byURL[url] = discover
}

// Serve makes the extension at that URL answer with handlers of BeforeClusterCreate.
func (e *Extensions) Serve(url string, names ...string) {
	e.Set(url, func(context.Context) (extension.Discovered, error) {
		return extension.Discovered{Handlers: Handlers(names...)}, nil
	})
}

// Hang makes the extension at that URL never answer.
func (e *Extensions) Hang(url string) {
	e.Set(url, func(ctx context.Context) (extension.Discovered, error) {
		<-ctx.Done()
		return extension.Discovered{}, hook.Errorf(hook.Timeout, "call %s: no answer in time", url).WithCause(ctx.Err())
	})
}

// Down makes the extension at that URL refuse connections.
func (e *Extensions) Down(url string) { e.Set(url, nil) }

// Calls returns when the extension at that URL was called.
func (e *Extensions) Calls(url string) []time.Time {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.calls[url])
}

// Retentions returns how often Retain was called.
func (e *Extensions) Retentions() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.retained)
}

// Retained returns the URLs of the last call of Retain, or nil before the first.
func (e *Extensions) Retained() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.retained) == 0 {
		return nil
	}
	return e.retained[len(e.retained)-1]
}

// Handlers returns handlers of BeforeClusterCreate with these names.
func Handlers(names ...string) []registry.Handler {
	var list []registry.Handler
	for _, name := range names {
		list = append(list, registry.Handler{
			Name: name, Hook: hook.GroupVersionHook{
				Group: hook.Group, Version: hook.Version, Hook: "BeforeClusterCreate",
			},
			Timeout: 10 * time.Second, FailurePolicy: hook.Fail,
		})
	}
	return list
}

// Logs collects the records of a logger.
type Logs struct {
	mu     sync.Mutex
	buffer bytes.Buffer
}

// Write implements io.Writer.
func (l *Logs) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buffer.Write(p)
}

// Lines returns the lines that have all parts.
func (l *Logs) Lines(parts ...string) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var found []string
	for line := range strings.Lines(l.buffer.String()) {
		if !slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(line, part) }) {
			found = append(found, line)
		}
	}
	return found
}

// Logger returns a logger without times that writes to l.
func (l *Logs) Logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}))
}

// Observations is an Observer that remembers.
type Observations struct {
	mu             sync.Mutex
	outcomes       []string
	manifestErrors int
}

// Discovery implements discovery.Observer.
func (o *Observations) Discovery(a discovery.Attempt) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.outcomes = append(o.outcomes, a.ExtensionConfig+" "+a.Outcome)
}

// ManifestErrors implements the Observer of a directory.
func (o *Observations) ManifestErrors(n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.manifestErrors = n
}

// Errors returns the number of errors that the manifests have.
func (o *Observations) Errors() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.manifestErrors
}

// Outcomes returns the observed discoveries, each as "name outcome".
func (o *Observations) Outcomes() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.outcomes)
}

// Has reports whether an outcome was observed, as "name outcome".
func (o *Observations) Has(outcome string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Contains(o.outcomes, outcome)
}

// Registered returns the registered handlers as name and URL.
func Registered(r *registry.Registry) []string {
	var list []string
	for _, e := range r.Snapshot().All() {
		list = append(list, e.Name+" "+e.Registration.ClientConfig.URL)
	}
	return list
}

// Fixture is a Reconciler with all that is around it.
type Fixture struct {
	Registry   *registry.Registry
	Extensions *Extensions
	Logs       *Logs
	Observer   *Observations
	Losses     *convert.Losses
	Reconciler *discovery.Reconciler
}

// New returns a Fixture without extensions.
func New(t testing.TB) *Fixture {
	t.Helper()
	b := &Fixture{
		Registry: registry.New(), Extensions: NewExtensions(), Logs: &Logs{}, Observer: &Observations{},
		Losses: convert.NewLosses(nil),
	}
	var err error
	b.Reconciler, err = discovery.NewReconciler(discovery.ReconcilerConfig{
		Registry: b.Registry, Discoverer: b.Extensions, Logger: b.Logs.Logger(), Observer: b.Observer, Losses: b.Losses,
	})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Serves fails the test unless exactly these handlers are registered, each with its URL.
func (b *Fixture) Serves(t testing.TB, reason string, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, Registered(b.Registry)); diff != "" {
		t.Errorf("%s\nserved -want +got\n%s", reason, diff)
	}
}

// Extension returns an Extension with last known handlers.
func Extension(name, url string, lastKnown ...string) extensionconfig.Extension {
	return extensionconfig.Extension{
		Registration: registry.Registration{Name: name, ClientConfig: registry.ClientConfig{URL: url}},
		LastKnown:    Handlers(lastKnown...),
	}
}
