// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/hookgate/hookgate/internal/network/budget"
)

// memoryCollector collects the metrics of the memory for calls, and of turns with heavy work. Until ObserveMemory, and
// without a budget, it has zeros.
type memoryCollector struct {
	atomic.Pointer[budget.Budget]

	limit, used, waiting, refused, turns, turnsTime *prometheus.Desc
}

var _ prometheus.Collector = (*memoryCollector)(nil)

// newMemoryCollector returns a collector that is registered with d.
func newMemoryCollector(d *definer) *memoryCollector {
	c := &memoryCollector{}
	c.limit = d.described("gauge", "hookgate_memory_budget_bytes", "Memory budget in bytes for all calls together.")
	c.used = d.described("gauge", "hookgate_memory_reserved_bytes", "Number of bytes of the memory budget that calls "+
		"have reserved.")
	c.waiting = d.described("gauge", "hookgate_memory_waiting_calls", "Number of calls that wait for memory.")
	c.refused = d.described("counter", "hookgate_memory_refused_total",
		`Total number of reservations of memory that were refused. The label reason is "total" (the memory budget is used `+
			`up), "caller" (the caller's share is used up), "extension" (the extension's share is used up) or "waiting" (too `+
			`many calls wait for memory).`, "reason")
	c.turns = d.described("counter", "hookgate_heavy_work_waits_total",
		"Total number of times that work on a large body waited for processors that were busy with other large bodies.")
	c.turnsTime = d.described("counter", "hookgate_heavy_work_wait_seconds_total",
		"Total time in seconds that work on large bodies waited for processors that were busy with other large bodies.")
	d.registerer.MustRegister(c)
	return c
}

// ObserveMemory makes the metrics about memory those of b.
func (m *Metrics) ObserveMemory(b *budget.Budget) { m.memory.Store(b) }

// Describe implements prometheus.Collector.
func (c *memoryCollector) Describe(descs chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{c.limit, c.used, c.waiting, c.refused, c.turns, c.turnsTime} {
		descs <- d
	}
}

// Collect implements prometheus.Collector.
func (c *memoryCollector) Collect(metrics chan<- prometheus.Metric) {
	u := c.Load().Usage()
	metrics <- prometheus.MustNewConstMetric(c.limit, prometheus.GaugeValue, float64(u.Limit))
	metrics <- prometheus.MustNewConstMetric(c.used, prometheus.GaugeValue, float64(u.Used))
	metrics <- prometheus.MustNewConstMetric(c.waiting, prometheus.GaugeValue, float64(u.Waiting))
	metrics <- prometheus.MustNewConstMetric(c.turns, prometheus.CounterValue, float64(u.Waited))
	metrics <- prometheus.MustNewConstMetric(c.turnsTime, prometheus.CounterValue, u.WaitedFor.Seconds())
	for reason, n := range u.Refused {
		metrics <- prometheus.MustNewConstMetric(c.refused, prometheus.CounterValue, float64(n), reason)
	}
}
