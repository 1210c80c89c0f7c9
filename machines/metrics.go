// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package machines

import (
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
)

// metrics are the metrics of the controllers of Machines, or of those of Clusters. Their series are bounded. They are
// safe for concurrent use.
type metrics struct {
	held           *prometheus.GaugeVec
	ended, unknown *prometheus.CounterVec

	mu    sync.Mutex
	holds map[types.NamespacedName]string // the hooks that hold Machines, or the states of Clusters
}

// documentation is what the documentation says about a metric.
type documentation struct{ name, kind, label, help string }

// documented are held, ended and unknown.
var (
	documented = [...]documentation{
		{"hookgate_machines_held", "gauge", "hook", "Number of Machines that handlers hold. Only the active " +
			"replica counts them."},
		{"hookgate_machines_overruled_total", "counter", "hook", "Total number of Machines that were " +
			"released after --machines-max-hold although handlers held them."},
		{"hookgate_machines_unknown_total", "counter", "hook", "Total number of checks that could not " +
			"determine the handlers of a Machine, because the gateway did not know the handlers or a policy's condition " +
			"failed. The annotations of the Machine stayed unchanged."},
	}
	documentedClusters = [...]documentation{
		{"hookgate_cluster_records", "gauge", "state", "Number of Clusters that are recorded for " +
			`AfterClusterDelete. The label state is "living" (the Cluster exists) or "gone" (the Cluster no longer exists, ` +
			`but some handlers have not yet answered Success). Only the active replica counts them.`},
		{"hookgate_clusters_gone_total", "counter", "result", "Total number of Clusters that are gone and no " +
			`longer recorded. The label result is "told" (all handlers answered Success), "moved" (clusterctl moved the ` +
			`Cluster) or "forgotten" (no handler matched, or the record came from a backup).`},
		{"hookgate_clusters_unrecorded_total", "counter", "reason", "Total number of checks that did not " +
			`record a Cluster. The label reason is "limit" (no more Clusters may be recorded) or "unknown" (the gateway does ` +
			`not know whether a handler matches).`},
	}
)

// DocumentMetrics writes the documentation of the metrics.
func DocumentMetrics(w io.Writer) error {
	_, err := io.WriteString(w, "\n## The controllers of Machine hooks\n\n`hookgate serve --machines` and `hookgate "+
		"machines` also serve the metrics about Machines. `hookgate serve --clusters` also serves the metrics about "+
		"Clusters.\n\n"+
		"| metric | type | labels | meaning |\n|---|---|---|---|\n")
	for _, m := range append(documented[:], documentedClusters[:]...) {
		_, more := fmt.Fprintf(w, "| `%s` | %s | `%s` | %s |\n", m.name, m.kind, m.label, m.help)
		err = errors.Join(err, more)
	}
	return err
}

func newMetrics(r prometheus.Registerer, of [3]documentation) (*metrics, error) {
	counter := func(d documentation) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: d.name, Help: d.help}, []string{d.label})
	}
	m := &metrics{
		held:  prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: of[0].name, Help: of[0].help}, []string{of[0].label}),
		ended: counter(of[1]), unknown: counter(of[2]),
		holds: map[types.NamespacedName]string{},
	}
	return m, errors.Join(r.Register(m.held), r.Register(m.ended), r.Register(m.unknown))
}

// count returns the number of objects that are counted.
func (m *metrics) count() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.holds)
}

// hold counts a Machine that a hook holds, once, or a Cluster in a state.
func (m *metrics) hold(machine types.NamespacedName, hook string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if old, ok := m.holds[machine]; ok {
		if old == hook {
			return
		}
		m.held.WithLabelValues(old).Dec()
	}
	m.holds[machine] = hook
	m.held.WithLabelValues(hook).Inc()
}

// gone forgets a Machine that is not held.
func (m *metrics) gone(machine types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if hook, ok := m.holds[machine]; ok {
		delete(m.holds, machine)
		m.held.WithLabelValues(hook).Dec()
	}
}

// reset forgets all Machines: another replica may work now.
func (m *metrics) reset() {
	m.mu.Lock()
	defer m.mu.Unlock()
	clear(m.holds)
	m.held.Reset()
}
