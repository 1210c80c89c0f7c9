// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"bytes"
	"log/slog"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/convert"
	"github.com/hookgate/hookgate/registry"
)

// observed is an Observer and what it recorded.
type observed struct {
	*Observer
	log *bytes.Buffer
}

func newObserved() observed {
	log := &bytes.Buffer{}
	metrics := NewMetrics(prometheus.NewRegistry(), registry.New(), catalog.New(), "test")
	return observed{NewObserver(metrics, noop.NewTracerProvider(), slog.New(slog.NewTextHandler(log, nil)), convert.NewLosses(nil)), log}
}

// wantCount checks a counter.
func wantCount(t *testing.T, c *prometheus.CounterVec, want float64, labels ...string) {
	t.Helper()
	if got := testutil.ToFloat64(c.WithLabelValues(labels...)); got != want {
		t.Errorf("the counter of %q is %v, want %v", labels, got, want)
	}
}
