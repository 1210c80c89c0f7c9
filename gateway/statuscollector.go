// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/hookgate/hookgate/internal/activity"
	"github.com/hookgate/hookgate/internal/limits"
	"github.com/hookgate/hookgate/internal/status"
	"github.com/hookgate/hookgate/registry"
)

// statusCollector collects what a Reporter reports, for alerts: the states of extensions, and the Clusters that wait
// for the handlers that are registered now. It has nothing before Metrics.Report.
type statusCollector struct {
	atomic.Pointer[Reporter]

	up, since, lastSuccess, timeout, held, heldSince *prometheus.Desc
}

var _ prometheus.Collector = (*statusCollector)(nil)

// newStatusCollector returns a collector that is registered with d.
func newStatusCollector(d *definer) *statusCollector {
	c := &statusCollector{}
	c.up = d.described("gauge", "hookgate_extension_up",
		"1 if an extension answered when this process called it last, 0 if it did not or its circuit is open, and 0.5 if "+
			"it is degraded: some of its handlers do not answer, or its discovery. There is no series for an extension "+
			"that this process has not called.", "extension")
	c.since = d.described("gauge", "hookgate_extension_up_since_timestamp_seconds",
		"When hookgate_extension_up took its value, in seconds since the epoch.", "extension")
	c.lastSuccess = d.described("gauge", "hookgate_extension_last_success_timestamp_seconds",
		"When an extension answered last, be it Failure, in seconds since the epoch.", "extension")
	c.timeout = d.described("gauge", "hookgate_handler_timeout_seconds",
		"The timeout that is in effect for a registered handler, in seconds.", "hook", "handler")
	c.held = d.described("gauge", "hookgate_held_clusters",
		"Clusters that wait for a handler: it has asked their caller to come back, has answered Failure, or has not "+
			"answered. There is no series for a handler without. `hookgate get holds` names the Clusters.",
		"hook", "handler")
	c.heldSince = d.described("gauge", "hookgate_held_clusters_since_timestamp_seconds",
		"When the Cluster that has waited longest for a handler began to, in seconds since the epoch.", "hook", "handler")
	d.registerer.MustRegister(c)
	return c
}

// Report makes the metrics about the state of extensions and the Clusters that wait those of r.
func (m *Metrics) Report(r *Reporter) { m.status.Store(r) }

// Describe implements prometheus.Collector.
func (c *statusCollector) Describe(descs chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{c.up, c.since, c.lastSuccess, c.timeout, c.held, c.heldSince} {
		descs <- d
	}
}

// Collect implements prometheus.Collector.
func (c *statusCollector) Collect(metrics chan<- prometheus.Metric) {
	r := c.Load()
	if r == nil {
		return
	}
	now, snapshot, discoveries := time.Now(), r.Registry.Snapshot(), r.Observer.discoveries.Last()
	for _, registration := range snapshot.Registrations() {
		c.extension(metrics, r.stateOf(snapshot, registration.Name, discoveries[registration.Name]))
		delete(discoveries, registration.Name)
	}
	for name, d := range discoveries {
		c.extension(metrics, unregistered(name, d))
	}
	for _, e := range snapshot.All() {
		metrics <- prometheus.MustNewConstMetric(c.timeout, prometheus.GaugeValue,
			min(e.Handler.Timeout, limits.Timeout).Seconds(), e.Handler.Hook.Hook, e.Name)
	}
	for by, held := range r.Observer.holds.Held(now) {
		if _, ok := snapshot.Handler(by.Handler); !ok {
			continue // its handler is gone
		}
		metrics <- prometheus.MustNewConstMetric(c.held, prometheus.GaugeValue, float64(held.Clusters), by.Hook, by.Handler)
		c.timestamp(metrics, c.heldSince, &held.Since, by.Hook, by.Handler)
	}
}

func (c *statusCollector) extension(metrics chan<- prometheus.Metric, x status.Extension) {
	up := map[status.State]float64{status.Up: 1, status.Degraded: .5, status.Down: 0}
	if value, ok := up[x.State]; ok {
		metrics <- prometheus.MustNewConstMetric(c.up, prometheus.GaugeValue, value, x.Name)
		c.timestamp(metrics, c.since, x.Since, x.Name)
	}
	c.timestamp(metrics, c.lastSuccess, x.LastSuccess, x.Name)
}

// timestamp collects a time, unless it is nil.
func (*statusCollector) timestamp(
	metrics chan<- prometheus.Metric, d *prometheus.Desc, t *time.Time, labels ...string,
) {
	if t != nil {
		metrics <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(t.UnixMilli())/1000, labels...)
	}
}

// stateOf returns the state of an extension without its handlers and its calls, at the cost of a scrape.
func (r *Reporter) stateOf(snapshot *registry.Snapshot, name string, d activity.Discovery) status.Extension {
	x := status.Extension{Name: name}
	seen := evidenceOf(d)
	for _, e := range snapshot.HandlersOf(name) {
		seen = append(seen, shownBy(r.Observer.handlers.Seen(e.Name)))
	}
	r.judge(&x, d, seen)
	return x
}
