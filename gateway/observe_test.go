// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"bytes"
	"context"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/hookgate/hookgate/catalog"
	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/hookversion"
	"github.com/hookgate/hookgate/internal/calls/extension"
	"github.com/hookgate/hookgate/internal/calls/policy"
	"github.com/hookgate/hookgate/internal/contract/convert"
	"github.com/hookgate/hookgate/internal/contract/printers"
	"github.com/hookgate/hookgate/internal/seeing/observe"
	"github.com/hookgate/hookgate/internal/serving/shared"
	"github.com/hookgate/hookgate/registry"
)

// observed is an Observer and what it recorded.
type observed struct {
	*observe.Observer
	log     *bytes.Buffer
	metrics *observe.Metrics
	losses  *convert.Losses
	series  *prometheus.Registry
}

func newObserved(r registry.Snapshots) observed {
	o := observed{log: &bytes.Buffer{}, losses: convert.NewLosses(nil), series: prometheus.NewRegistry()}
	o.metrics = observe.NewMetrics(o.series, r, catalog.New(), "test")
	o.Observer = observe.NewObserver(o.metrics, noop.NewTracerProvider(), slog.New(slog.NewTextHandler(o.log, nil)), o.losses)
	return o
}

// newObservedDispatcher is newDispatcher with an Observer.
func newObservedDispatcher(o observed, r registry.Snapshots, c caller) *Dispatcher {
	return NewDispatcher(Config{
		Catalog: allHooks, Versions: allVersions, Registry: r, Namespaces: fixedNamespaces{},
		Parts: shared.Parts{Codec: mandated, Transport: transportOf(c), Observer: o.Observer},
	})
}

// wantCount checks the value of a counter with these values of its labels, in any order. One that is not there is 0.
func wantCount(t *testing.T, g prometheus.Gatherer, name string, want float64, labels ...string) {
	t.Helper()
	if got := valueOf(t, g, name, labels...); got != want {
		t.Errorf("%s of %q is %v, want %v", name, labels, got, want)
	}
}

func valueOf(t *testing.T, g prometheus.Gatherer, name string, labels ...string) (value float64) {
	t.Helper()
	families, err := g.Gather()
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(labels)
	for _, f := range families {
		for _, m := range f.GetMetric() {
			var of []string
			for _, l := range m.GetLabel() {
				of = append(of, l.GetValue())
			}
			slices.Sort(of)
			if f.GetName() == name && slices.Equal(of, labels) {
				value += m.GetCounter().GetValue() + m.GetGauge().GetValue()
			}
		}
	}
	return value
}

// count returns how many series metrics have.
func count(t *testing.T, g prometheus.Gatherer, names ...string) int {
	t.Helper()
	n, err := testutil.GatherAndCount(g, names...)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// seriesOfExtensions are the metrics of an extension that was called.
var seriesOfExtensions = []string{
	"hookgate_circuit_state", "hookgate_circuit_transitions_total", "hookgate_extension_calls_in_flight",
	"hookgate_extension_calls_waiting", "hookgate_extension_calls_refused_total",
}

func TestPolicyFailuresAreObserved(t *testing.T) {
	r := filled(t, registrationOf("a", handlerOf("v", "BeforeClusterCreate", hook.Fail)))
	r.SetPolicies("a", forHandler("v", policy.Policy{FailurePolicy: hook.Ignore, Conditions: conditions(t, `request.nothing`)}))
	o := newObserved(r)
	hooks := catalog.New()
	_, err := NewDispatcher(Config{
		Catalog: hooks, Versions: hookversion.New(hooks), Registry: r, Namespaces: fixedNamespaces{},
		Parts: shared.Parts{Codec: mandated, Transport: transportOf(answers{}), Observer: o.Observer},
	}).dispatch(t.Context(), hookOf(t, "BeforeClusterCreate"), "", &hooksv1alpha1.BeforeClusterCreateRequest{Cluster: clusterIn("n")})
	if err != nil {
		t.Fatal(err)
	}
	wantCount(t, o.series, "hookgate_handler_ignored_failures_total", 1, "BeforeClusterCreate", "v.a", "Policy")
	if !strings.Contains(o.log.String(), "failure ignored") {
		t.Errorf("the log lacks the ignored failure:\n%s", o.log)
	}
}

// TestMisspeltMembersAreSaidOnce holds that a misspelt member of answers is logged once for each handler, and stays in
// the status.
func TestMisspeltMembersAreSaidOnce(t *testing.T) {
	r := filled(t, registrationOf("acme", handlerOf("a", "BeforeClusterCreate", hook.Fail), handlerOf("b", "BeforeClusterCreate", hook.Fail)))
	o, hooks := newObserved(r), catalog.New()
	const text = "BeforeClusterCreateResponse has no member retry_after_seconds: did you mean retryAfterSeconds?"
	d := NewDispatcher(Config{
		Catalog: hooks, Versions: hookversion.New(hooks), Registry: r, Namespaces: fixedNamespaces{},
		Parts: shared.Parts{Codec: mandated, Observer: o.Observer, Transport: func(context.Context, extension.Call) (extension.Result, error) {
			return extension.Result{Response: &hooksv1alpha1.BeforeClusterCreateResponse{Status: success}, Misspelt: []string{text}}, nil
		}},
	})
	for range 3 {
		_, err := d.dispatch(t.Context(), hookOf(t, "BeforeClusterCreate"), "", &hooksv1alpha1.BeforeClusterCreateRequest{Cluster: clusterIn("n")})
		if err != nil {
			t.Fatal(err)
		}
		o.Misspelt("acme", []string{"ExtensionHandler has no member timeout_seconds"})
	}
	for want, n := range map[string]int{"handler=a.acme": 1, "handler=b.acme": 1, "timeout_seconds": 1, text: 2} {
		if got := strings.Count(o.log.String(), want); got != n {
			t.Errorf("the log has %s %d times, want %d:\n%s", want, got, n, o.log)
		}
	}
	described := func() string {
		p := observe.Reporter{Catalog: hooks, Registry: r, Observer: o.Observer, Namespaces: fixedNamespaces{}}
		g, _ := p.Extension("acme")
		var b strings.Builder
		if err := printers.Extension(&b, g); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	if got := described(); strings.Count(got, "its answer: "+text) != 2 || strings.Count(got, "(discovery)") != 1 {
		t.Errorf("described:\n%s", got)
	}
	o.Forget("acme")
	if got := described(); strings.Contains(got, "its answer") {
		t.Errorf("described after it was forgotten:\n%s", got)
	}
}
