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

// metrics are the metrics of the controllers. Their series are bounded by the hooks. They are safe for concurrent use.
type metrics struct {
	held               *prometheus.GaugeVec
	overruled, unknown *prometheus.CounterVec

	mu    sync.Mutex
	holds map[types.NamespacedName]string // the hooks that hold Machines
}

// documented is what the documentation says about the metrics.
var documented = [...]struct{ name, kind, help string }{
	{"hookgate_machines_held", "gauge", "Machines that handlers hold, on the replica that works."},
	{"hookgate_machines_overruled_total", "counter", "Machines that were let go after --machines-max-hold, though " +
		"handlers held them."},
	{"hookgate_machines_unknown_total", "counter", "Looks at a Machine that did not find out which handlers it has, " +
		"because the gateway did not know, or a condition of a policy failed. Its annotations stayed as they were."},
}

// DocumentMetrics writes the documentation of the metrics.
func DocumentMetrics(w io.Writer) error {
	_, err := io.WriteString(w, "\n## The controllers of Machine hooks\n\n`hookgate serve --machines` and `hookgate "+
		"machines` serve these, too.\n\n| metric | type | labels | meaning |\n|---|---|---|---|\n")
	for _, m := range documented {
		_, more := fmt.Fprintf(w, "| `%s` | %s | `hook` | %s |\n", m.name, m.kind, m.help)
		err = errors.Join(err, more)
	}
	return err
}

func newMetrics(r prometheus.Registerer) (*metrics, error) {
	labels := []string{"hook"}
	m := &metrics{
		held: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: documented[0].name, Help: documented[0].help}, labels),
		overruled: prometheus.NewCounterVec(
			prometheus.CounterOpts{Name: documented[1].name, Help: documented[1].help}, labels),
		unknown: prometheus.NewCounterVec(
			prometheus.CounterOpts{Name: documented[2].name, Help: documented[2].help}, labels),
		holds: map[types.NamespacedName]string{},
	}
	return m, errors.Join(r.Register(m.held), r.Register(m.overruled), r.Register(m.unknown))
}

// hold counts a Machine that a hook holds, once.
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
