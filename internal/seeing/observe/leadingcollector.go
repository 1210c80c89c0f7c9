// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
)

// leadingCollector collects whether this replica leads. It has nothing before Metrics.Leading.
type leadingCollector struct {
	leads   atomic.Pointer[func() bool]
	leading *prometheus.Desc
}

var _ prometheus.Collector = (*leadingCollector)(nil)

// newLeadingCollector returns a collector that is registered with d.
func newLeadingCollector(d *definer) *leadingCollector {
	c := &leadingCollector{leading: d.described("gauge", "hookgate_leading",
		"Whether this replica (1) or another replica (0) discovers the extensions of a cluster and writes their status. A "+
			"gateway that reads a directory, or runs with --read-only, has no series.")}
	d.registerer.MustRegister(c)
	return c
}

// Leading makes the metrics say whether this replica leads. leads must be safe for concurrent use.
func (m *Metrics) Leading(leads func() bool) { m.leading.leads.Store(&leads) }

// Describe implements prometheus.Collector.
func (c *leadingCollector) Describe(descs chan<- *prometheus.Desc) { descs <- c.leading }

// Collect implements prometheus.Collector.
func (c *leadingCollector) Collect(metrics chan<- prometheus.Metric) {
	leads := c.leads.Load()
	if leads == nil {
		return
	}
	value := 0.0
	if (*leads)() {
		value = 1
	}
	metrics <- prometheus.MustNewConstMetric(c.leading, prometheus.GaugeValue, value)
}
