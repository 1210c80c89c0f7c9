// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/internal/contract/convert"
	"github.com/hookgate/hookgate/registry"
)

// BenchmarkScrape is a scrape of the metrics of 2,000 extensions with 10 handlers each, all of which have been called.
func BenchmarkScrape(b *testing.B) {
	const extensions, each = 2000, 10
	hooks := catalog.New()
	r := registry.New()
	for i := range extensions {
		var names []string
		for j := range each {
			names = append(names, fmt.Sprintf("handler-%d", j))
		}
		apply(b, r, fmt.Sprintf("extension-%d", i), names...)
	}
	r.SetReady()
	gatherer := prometheus.NewRegistry()
	metrics := NewMetrics(gatherer, r, hooks, "bench")
	observer := NewObserver(metrics, noop.NewTracerProvider(), slog.New(slog.DiscardHandler), convert.NewLosses(nil))
	metrics.Report(&Reporter{
		Started: time.Now(), Catalog: hooks, Registry: r, Observer: observer,
	})
	for _, e := range r.Snapshot().All() {
		metrics.handlerCalls.WithLabelValues(e.Handler.Hook.Hook, e.Name, "success", "").Inc()
		metrics.handlerDuration.WithLabelValues(e.Handler.Hook.Hook, e.Name).Observe(.01)
		metrics.handlerInFlight.WithLabelValues(e.Handler.Hook.Hook, e.Name).Set(0)
		metrics.handlerSentBytes.WithLabelValues(e.Handler.Hook.Hook, e.Name).Add(1)
		metrics.handlerReceivedBytes.WithLabelValues(e.Handler.Hook.Hook, e.Name).Add(1)
	}
	handler := Scrapes(gatherer)
	size := 0
	b.ReportAllocs()
	for b.Loop() {
		w := &measured{header: http.Header{}}
		handler.ServeHTTP(w, httptest.NewRequestWithContext(b.Context(), http.MethodGet, "/metrics", nil))
		size = w.size
	}
	b.ReportMetric(float64(size)/(1<<20), "MiB/scrape")
}

// measured is a response whose body is counted and not kept.
type measured struct {
	header http.Header
	size   int
}

func (m *measured) Header() http.Header { return m.header }
func (*measured) WriteHeader(int)       {}
func (m *measured) Write(b []byte) (int, error) {
	m.size += len(b)
	return len(b), nil
}
