// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/convert"
	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/hookversion"
	"github.com/hookgate/hookgate/policy"
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

func TestPolicyFailuresAreObserved(t *testing.T) {
	r := filled(t, registrationOf("a", handlerOf("v", "BeforeClusterCreate", hook.Fail)))
	r.SetPolicies("a", forHandler("v", policy.Policy{FailurePolicy: hook.Ignore, Conditions: conditions(t, `request.nothing`)}))
	o := newObserved()
	hooks := catalog.New()
	_, err := NewDispatcher(Config{
		Catalog: hooks, Versions: hookversion.New(hooks), Codec: mandated, Registry: r, Namespaces: fixedNamespaces{}, Transport: transportOf(answers{}), Observer: o.Observer,
	}).dispatch(t.Context(), hookOf(t, "BeforeClusterCreate"), "", &hooksv1alpha1.BeforeClusterCreateRequest{Cluster: clusterIn("n")})
	if err != nil {
		t.Fatal(err)
	}
	wantCount(t, o.metrics.ignoredFailures, 1, "BeforeClusterCreate", "v.a", "Policy")
	if !strings.Contains(o.log.String(), "failure ignored") {
		t.Errorf("the log lacks the ignored failure:\n%s", o.log)
	}
}
