// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/calls/extension"
	"github.com/hookgate/hookgate/internal/contract/convert"
	"github.com/hookgate/hookgate/registry"
)

// seriesOf returns how many series have the label handler with a value that begins with prefix.
func seriesOf(t *testing.T, r *prometheus.Registry, prefix string) int {
	t.Helper()
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, f := range families {
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				if l.GetName() == "handler" && strings.HasPrefix(l.GetValue(), prefix) {
					n++
				}
			}
		}
	}
	return n
}

// apply registers an extension with handlers of BeforeClusterCreate.
func apply(t testing.TB, r *registry.Registry, name string, handlers ...string) {
	t.Helper()
	reg := registry.Registration{Name: name, ClientConfig: registry.ClientConfig{URL: "https://" + name + ".example"}}
	for _, h := range handlers {
		reg.Handlers = append(reg.Handlers, registry.Handler{
			Name: h, Hook: hook.GroupVersionHook{Group: hook.Group, Version: hook.Version, Hook: "BeforeClusterCreate"},
			Timeout: time.Second, FailurePolicy: hook.Ignore,
		})
	}
	if err := r.Apply(reg); err != nil {
		t.Fatal(err)
	}
}

// A handler that is not registered any more has no series, except while a call to it is in flight. An extension that
// names its handlers differently at every discovery makes no series that stay, even if nothing scrapes them.
func TestSeriesGoWithTheirHandlers(t *testing.T) {
	reg := registry.New()
	reg.SetReady()
	metrics := prometheus.NewRegistry()
	hooks := catalog.New()
	m := NewMetrics(metrics, reg, hooks, "test")
	observer := NewObserver(m, noop.NewTracerProvider(), slog.New(slog.DiscardHandler), convert.NewLosses(nil))
	arrived, finish := make(chan struct{}), make(chan struct{})
	handlers := observer.Handlers()(func(_ context.Context, c extension.Call) (extension.Result, error) {
		if c.Handler.Name == "slow.acme" {
			close(arrived)
			<-finish
		}
		return extension.Result{}, hook.Errorf(hook.Unreachable, "no")
	})
	h, _ := hooks.ByName("BeforeClusterCreate")
	register := func(name string) {
		t.Helper()
		apply(t, reg, "acme", name)
	}
	call := func() {
		for _, e := range reg.Snapshot().All() {
			_, _ = handlers(context.Background(), extension.Call{Hook: h, Handler: e})
		}
	}
	register("slow")
	done := make(chan struct{})
	go func() { call(); close(done) }()
	<-arrived
	register("v")
	call()
	if seriesOf(t, metrics, "slow.acme") == 0 {
		t.Error("a handler with a call in flight has no series")
	}
	close(finish)
	<-done
	_ = seriesOf(t, metrics, "") // the scrape that removes
	if n := seriesOf(t, metrics, "slow.acme"); n != 0 {
		t.Errorf("a handler that is gone has %d series", n)
	}
	if seriesOf(t, metrics, "v.acme") == 0 {
		t.Error("a registered handler has no series")
	}
	for i := range 10 * limits.GoneHandlers {
		register(fmt.Sprintf("v%d", i))
		call()
	}
	if known := m.series.known.Load(); known > limits.GoneHandlers+2 {
		t.Errorf("between two scrapes, %d handlers have series, want at most %d", known, limits.GoneHandlers+2)
	}
	_ = seriesOf(t, metrics, "")
	if n, last := seriesOf(t, metrics, ""), seriesOf(t, metrics, fmt.Sprintf("v%d.acme", 10*limits.GoneHandlers-1)); n != last {
		t.Errorf("there are %d series, %d of them of the registered handler", n, last)
	}
}
