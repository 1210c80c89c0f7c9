// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/hookgate/hookgate/extension"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/registry"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// extensions is a Discoverer whose extensions are functions by URL.
type extensions struct {
	mu       sync.Mutex
	byURL    map[string]func(context.Context) (extension.Discovered, error)
	calls    map[string][]time.Time
	retained [][]string
}

func newExtensions() *extensions {
	return &extensions{byURL: map[string]func(context.Context) (extension.Discovered, error){}, calls: map[string][]time.Time{}}
}

func (e *extensions) Discover(ctx context.Context, c registry.ClientConfig) (extension.Discovered, error) {
	e.mu.Lock()
	e.calls[c.URL] = append(e.calls[c.URL], time.Now())
	discover := e.byURL[c.URL]
	e.mu.Unlock()
	if discover == nil {
		return extension.Discovered{}, hook.Errorf(hook.Unreachable, "call %s: connection refused", c.URL)
	}
	return discover(ctx)
}

func (e *extensions) Retain(clients []registry.ClientConfig) {
	var urls []string
	for _, c := range clients {
		urls = append(urls, c.URL)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.retained = append(e.retained, urls)
}

func (e *extensions) set(url string, discover func(context.Context) (extension.Discovered, error)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.byURL[url] = discover
}

// serve makes the extension at that URL answer with handlers of BeforeClusterCreate.
func (e *extensions) serve(url string, names ...string) {
	e.set(url, func(context.Context) (extension.Discovered, error) {
		return extension.Discovered{Handlers: handlers(names...)}, nil
	})
}

// hang makes the extension at that URL never answer.
func (e *extensions) hang(url string) {
	e.set(url, func(ctx context.Context) (extension.Discovered, error) {
		<-ctx.Done()
		return extension.Discovered{}, hook.Errorf(hook.Timeout, "call %s: no answer in time", url).WithCause(ctx.Err())
	})
}

func (e *extensions) down(url string) { e.set(url, nil) }

func (e *extensions) callsOf(url string) []time.Time {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.calls[url])
}

func (e *extensions) lastRetained() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.retained) == 0 {
		return nil
	}
	return e.retained[len(e.retained)-1]
}

func handlers(names ...string) []registry.Handler {
	var list []registry.Handler
	for _, name := range names {
		list = append(list, registry.Handler{
			Name: name, Hook: hook.GroupVersionHook{Group: hook.Group, Version: hook.Version, Hook: "BeforeClusterCreate"},
			Timeout: 10 * time.Second, FailurePolicy: hook.Fail,
		})
	}
	return list
}

// logs is what a logger has written.
type logs struct {
	mu     sync.Mutex
	buffer bytes.Buffer
}

func (l *logs) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buffer.Write(p)
}

// lines returns the lines that have all parts.
func (l *logs) lines(parts ...string) []string {
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

// logger returns a logger without times that writes to l.
func (l *logs) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}))
}

// observations is an Observer that remembers.
type observations struct {
	mu             sync.Mutex
	outcomes       []string
	manifestErrors int
}

func (o *observations) Discovery(name, outcome string, _ time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.outcomes = append(o.outcomes, name+" "+outcome)
}

func (o *observations) ManifestErrors(n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.manifestErrors = n
}

func (o *observations) errors() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.manifestErrors
}

func (o *observations) has(outcome string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Contains(o.outcomes, outcome)
}

// served returns the registered handlers as name, settings and URL.
func served(r *registry.Registry) []string {
	var list []string
	for _, e := range r.Snapshot().All() {
		list = append(list, e.Name+" "+e.Registration.ClientConfig.URL)
	}
	return list
}

// eventually waits until check holds.
func eventually(t *testing.T, what string, check func() bool) {
	t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for !check() {
		if time.Now().After(deadline) {
			t.Fatalf("not seen within 10 s: %s", what)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func writeFile(t *testing.T, dir, name, content string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// config returns a manifest of an ExtensionConfig; more is appended to its clientConfig's URL, line by line.
func config(name, url string, more ...string) string {
	return strings.Join(append([]string{
		"apiVersion: runtime.cluster.x-k8s.io/v1beta2", "kind: ExtensionConfig", "metadata:", "  name: " + name,
		"spec:", "  clientConfig:", "    url: " + url,
	}, more...), "\n") + "\n"
}

func readingWords(t testing.TB) *vocabulary {
	t.Helper()
	words, err := newVocabulary()
	if err != nil {
		t.Fatal(err)
	}
	return words
}
