// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace/noop"
	"google.golang.org/protobuf/proto"

	"github.com/hookgate/hookgate/catalog"
	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/hookversion"
	"github.com/hookgate/hookgate/internal/convert"
	"github.com/hookgate/hookgate/internal/extension"
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

// A handler that is not registered any more has no series, except while a call to it is in flight. An extension that
// names its handlers differently at every discovery makes no series that stay, even if nothing scrapes them.
func TestSeriesGoWithTheirHandlers(t *testing.T) {
	reg := filled(t)
	metrics := prometheus.NewRegistry()
	cat := catalog.New()
	m := NewMetrics(metrics, reg, cat, "test")
	observer := NewObserver(m, noop.NewTracerProvider(), slog.New(slog.DiscardHandler), convert.NewLosses(nil))
	arrived, finish := make(chan struct{}), make(chan struct{})
	d := NewDispatcher(Config{
		Catalog: cat, Versions: hookversion.New(cat), Codec: mandated, Registry: reg, Namespaces: fixedNamespaces{},
		Observer: observer,
		Transport: transportOf(callerFunc(func(_ context.Context, c extension.Call) (proto.Message, error) {
			if c.Handler.Name == "slow.acme" {
				close(arrived)
				<-finish
			}
			return nil, hook.Errorf(hook.Unreachable, "no")
		})),
	})
	register := func(name string) {
		t.Helper()
		if err := reg.Apply(registrationOf("acme", handlerOf(name, "BeforeClusterCreate", hook.Ignore))); err != nil {
			t.Fatal(err)
		}
	}
	call := func() {
		_, err := d.dispatch(context.Background(), hookOf(t, "BeforeClusterCreate"), "",
			&hooksv1alpha1.BeforeClusterCreateRequest{Cluster: clusterIn("n")})
		if err != nil {
			t.Error(err)
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
	for i := range 10 * maxGoneHandlers {
		register(fmt.Sprintf("v%d", i))
		call()
	}
	if known := m.series.known.Load(); known > maxGoneHandlers+2 {
		t.Errorf("between two scrapes, %d handlers have series, want at most %d", known, maxGoneHandlers+2)
	}
	_ = seriesOf(t, metrics, "")
	if n, last := seriesOf(t, metrics, ""), seriesOf(t, metrics, fmt.Sprintf("v%d.acme", 10*maxGoneHandlers-1)); n != last {
		t.Errorf("there are %d series, %d of them of the registered handler", n, last)
	}
}
