// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package infrastructure

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/hookgate/hookgate/infrastructure/overview"
	infrav1 "github.com/hookgate/hookgate/infrastructure/v1alpha1"
)

// scrapeTimeout is how long a scrape waits for the cache. Prometheus waits for 10 seconds by default.
const scrapeTimeout = 5 * time.Second

// Metrics are the metrics of the controllers. controller-runtime has those of reconciliations, queues and requests to
// the API server. Series are bounded by the hooks, the kinds of errors, the
// kinds of objects, and limits.InfrastructureClasses.
type Metrics struct {
	calls     *prometheus.CounterVec
	durations *prometheus.HistogramVec
	abandoned *prometheus.CounterVec

	registerer prometheus.Registerer
}

// documented is what the documentation says about the metrics.
var documented = [...]struct {
	name, kind, help string
	labels           []string
}{
	{"hookgate_infrastructure_calls_total", "counter", "Total number of calls of the controllers to extensions. " +
		`The label outcome is "Success", "Failure" (the extension answered Failure), a reason of the condition Synced ` +
		`(such as "BadAnswer"), a kind of error of the gateway, or "Other" (any other error).`, []string{"hook", "outcome"}},
	{"hookgate_infrastructure_call_duration_seconds", "histogram",
		"Time in seconds that calls of the controllers to extensions took.", []string{"hook"}},
	{"hookgate_infrastructure_abandoned_total", "counter", "Total number of objects that were removed because " +
		"of the annotation " + infrav1.AbandonAnnotation + ", although no answer confirmed that their infrastructure is " +
		"gone.", []string{"kind"}},
}

// DocumentMetrics writes the documentation of the metrics.
func DocumentMetrics(w io.Writer) error {
	_, err := io.WriteString(w, "\n## The controllers of infrastructure\n\n`hookgate infrastructure` serves these "+
		"metrics, with the metrics of controller-runtime\n(`controller_runtime_*`, `workqueue_*`, `rest_client_*`).\n\n"+
		"| metric | type | labels | meaning |\n|---|---|---|---|\n")
	for _, m := range documented {
		_, more := fmt.Fprintf(w, "| `%s` | %s | `%s` | %s |\n", m.name, m.kind, strings.Join(m.labels, "`, `"), m.help)
		err = errors.Join(err, more)
	}
	for _, d := range overview.Descriptions {
		_, more := fmt.Fprintf(w, "| `%s` | gauge | `%s` | %s |\n", d.Name, strings.Join(d.Labels, "`, `"), d.Help)
		err = errors.Join(err, more)
	}
	return err
}

// observe adds the metrics about the objects that a reader has, which may not have started.
func (m *Metrics) observe(reader client.Reader, options ...client.ListOption) {
	options = append(options, client.UnsafeDisableDeepCopy)
	registered[prometheus.Collector](m.registerer, overview.NewCollector(func() (*overview.Objects, error) {
		ctx, cancel := context.WithTimeout(context.Background(), scrapeTimeout)
		defer cancel()
		objects, err := overview.Read(ctx, reader, options...)
		if _, ok := errors.AsType[*cache.ErrCacheNotStarted](err); ok {
			return &overview.Objects{}, nil
		}
		return objects, err
	}, time.Now))
}

// NewMetrics registers the metrics.
func NewMetrics(r prometheus.Registerer) *Metrics {
	m := &Metrics{
		calls: prometheus.NewCounterVec(
			prometheus.CounterOpts{Name: documented[0].name, Help: documented[0].help}, documented[0].labels),
		durations: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: documented[1].name, Help: documented[1].help, Buckets: []float64{.01, .05, .1, .25, .5, 1, 2.5, 5, 10, 20, 30},
		}, documented[1].labels),
		abandoned: prometheus.NewCounterVec(
			prometheus.CounterOpts{Name: documented[2].name, Help: documented[2].help}, documented[2].labels),
	}
	m.registerer = r
	m.calls, m.durations, m.abandoned = registered(r, m.calls), registered(r, m.durations), registered(r, m.abandoned)
	return m
}

// registered registers a collector, and returns it or the same one that was registered before: controller-runtime has
// one registry for the process.
func registered[C prometheus.Collector](r prometheus.Registerer, c C) C {
	err := r.Register(c)
	if known, ok := errors.AsType[prometheus.AlreadyRegisteredError](err); ok {
		if same, ok := known.ExistingCollector.(C); ok {
			return same
		}
	}
	if err != nil {
		panic(err) // a mistake in the names, which every test sees
	}
	return c
}

// Call implements calls.Observer.
func (m *Metrics) Call(hook, outcome string, took time.Duration) {
	m.calls.WithLabelValues(hook, outcome).Inc()
	m.durations.WithLabelValues(hook).Observe(took.Seconds())
}

// kindOf returns the kind of an object, which the cache does not set.
func kindOf(o client.Object) string {
	switch o.(type) {
	case *infrav1.HookgateCluster:
		return infrav1.HookgateClusterKind
	case *infrav1.HookgateMachine:
		return infrav1.HookgateMachineKind
	case *infrav1.HookgateMachinePool:
		return infrav1.HookgateMachinePoolKind
	case *infrav1.HookgateClusterIdentity:
		return infrav1.HookgateClusterIdentityKind
	default:
		return infrav1.InfrastructureClassKind
	}
}
