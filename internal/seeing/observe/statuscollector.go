// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/base/status"
	"github.com/hookgate/hookgate/internal/calls/activity"
	"github.com/hookgate/hookgate/internal/kinds"
	"github.com/hookgate/hookgate/internal/kinds/allkinds"
	"github.com/hookgate/hookgate/internal/kinds/extensionconfig"
	"github.com/hookgate/hookgate/registry"
)

// statusCollector collects what a Reporter reports, for alerts: the states of extensions, and the Clusters that wait
// for the handlers that are registered now. It has nothing before Metrics.Report.
type statusCollector struct {
	atomic.Pointer[Reporter]

	up, state, since, lastSuccess, undiscovered, withheld, timeout, held, heldSince, closed *prometheus.Desc
	certificate                                                                             *prometheus.Desc

	ready []ready
}

// ready is the metric that says which objects of a kind are ready.
type ready struct {
	in   kinds.Listing
	desc *prometheus.Desc
}

var _ prometheus.Collector = (*statusCollector)(nil)

// newStatusCollector returns a collector that is registered with d.
func newStatusCollector(d *definer) *statusCollector {
	c := &statusCollector{}
	c.up = d.described("gauge", "hookgate_extension_up",
		"Whether an extension is up. The value is 1 (its handlers answer, even slowly), 0.5 (its discovery or calls to "+
			"some of its handlers fail) or 0 (its server is gone, or the server's circuit is open). An extension about which "+
			"this process knows nothing has no series.", "extension")
	c.state = d.described("gauge", "hookgate_extension_state",
		`Always 1, for the current state of an extension. The label state is "Up" (its calls succeed), "Slow" (calls come `+
			`near the timeout), "Failing" (its discovery or calls to some of its handlers fail) or "Down" (its server is gone, `+
			`or the server's circuit is open). An extension about which this process knows nothing has no series.`,
		"extension", "state")
	c.since = d.described("gauge", "hookgate_extension_up_since_timestamp_seconds",
		"Time, in seconds since the epoch, at which the current state of an extension began.", "extension")
	c.lastSuccess = d.described("gauge", "hookgate_extension_last_success_timestamp_seconds",
		"Time, in seconds since the epoch, at which an extension last answered, even with Failure.", "extension")
	c.undiscovered = d.described("gauge", "hookgate_extension_undiscovered",
		`Always 1, for an extension whose handlers are not known. The label effect is "Fail" (calls that name no handler `+
			`fail meanwhile) or "Ignore" (these calls are answered without the extension). An extension whose handlers are `+
			`known has no series.`, "extension", "effect")
	c.withheld = d.described("gauge", "hookgate_extension_withheld_handlers",
		"Number of handlers of an extension that are not served because spec.hooks of the extension's policy does not "+
			"list their hooks. An extension without such handlers has no series.",
		"extension")
	c.certificate = d.described("gauge", "hookgate_extension_certificate_expiry_timestamp_seconds",
		"Time, in seconds since the epoch, at which a certificate for calls to an extension expires. "+
			`The label certificate is "leaf" (the server's certificate), "chain" (the certificate that expires first `+
			`among those that vouch for the leaf) or "caBundle" (the certificate in the bundle that expires last). `+
			`"leaf" and "chain" have no series until this process has connected to the extension.`,
		"extension", "certificate")
	c.timeout = d.described("gauge", "hookgate_handler_timeout_seconds",
		"Timeout in seconds that is in effect for a registered handler.", "hook", "handler")
	c.held = d.described("gauge", "hookgate_held_clusters",
		"Number of Clusters that wait because a handler holds them, has answered Failure, or has not answered. A handler "+
			"without such Clusters has no series. `hookgate get holds` names the Clusters.",
		"hook", "handler")
	c.heldSince = d.described("gauge", "hookgate_held_clusters_since_timestamp_seconds",
		"Time, in seconds since the epoch, at which the Cluster that has waited longest for a handler began to wait. A "+
			"handler for which no Cluster waits has no series.",
		"hook", "handler")
	for _, k := range allkinds.Own() {
		if of := &k.Shown.Ready; of.Name != "" {
			c.ready = append(c.ready, ready{k.Shown.In, d.described("gauge", of.Name, of.Help, "hook", of.Label)})
		}
	}
	c.closed = d.described("gauge", "hookgate_closed_objects",
		"Number of objects of a kind that have a mistake and no earlier valid version. The gateway refuses every "+
			`call that such an object may apply to. The label kind is "unknown" for all kinds that the gateway does not know.`,
		"kind")
	d.registerer.MustRegister(c)
	return c
}

// Report makes the metrics about the state of extensions and the Clusters that wait those of r.
func (m *Metrics) Report(r *Reporter) { m.status.Store(r) }

// Describe implements prometheus.Collector.
func (c *statusCollector) Describe(descs chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		c.up, c.state, c.since, c.lastSuccess, c.undiscovered, c.withheld, c.timeout, c.held, c.heldSince, c.closed,
		c.certificate,
	} {
		descs <- d
	}
	for _, of := range c.ready {
		descs <- of.desc
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
		if registration.InProcess != nil {
			continue // its handler is what there is to see
		}
		x := r.stateOf(now, snapshot, registration.Name, discoveries[registration.Name])
		r.certify(&x, registration.ClientConfig, now)
		c.extension(metrics, x)
		if n := len(snapshot.Withheld(registration.Name)); n > 0 {
			metrics <- prometheus.MustNewConstMetric(c.withheld, prometheus.GaugeValue, float64(n), registration.Name)
		}
	}
	for _, x := range r.unregistered(now, snapshot, discoveries) {
		c.extension(metrics, x)
		if x.Undiscovered != "" {
			metrics <- prometheus.MustNewConstMetric(c.undiscovered, prometheus.GaugeValue, 1, x.Name, x.Undiscovered)
		}
	}
	for _, e := range snapshot.All() {
		metrics <- prometheus.MustNewConstMetric(c.timeout, prometheus.GaugeValue,
			min(e.Handler.Timeout, limits.Timeout).Seconds(), e.Handler.Hook.Hook, e.Name)
	}
	for by, held := range r.Observer.holds.Held(now) {
		if _, ok := snapshot.Registered(by.Handler); !ok {
			continue // its handler is gone
		}
		metrics <- prometheus.MustNewConstMetric(c.held, prometheus.GaugeValue, float64(held.Clusters), by.Hook, by.Handler)
		c.timestamp(metrics, c.heldSince, &held.Since, by.Hook, by.Handler)
	}
	c.closures(metrics, snapshot)
	all := r.listed()
	for _, of := range c.ready {
		for _, row := range of.in.Rows(all) {
			metrics <- prometheus.MustNewConstMetric(of.desc, prometheus.GaugeValue, one(row.Ready), row.Hook, row.Name)
		}
	}
}

// closures counts the objects that have mistakes, by kind.
func (c *statusCollector) closures(metrics chan<- prometheus.Metric, snapshot *registry.Snapshot) {
	byKind := map[string]int{}
	for _, of := range snapshot.Closures() {
		byKind[of.Kind]++
	}
	for _, u := range snapshot.Undiscovered() {
		if u.Mistake != "" {
			byKind[extensionconfig.Kind]++
		}
	}
	for _, k := range allkinds.Table() { // an unknown kind is no label: there may be any number of them
		metrics <- prometheus.MustNewConstMetric(c.closed, prometheus.GaugeValue, float64(byKind[k.Name]), k.Name)
		delete(byKind, k.Name)
	}
	unknown := 0
	for _, n := range byKind {
		unknown += n
	}
	metrics <- prometheus.MustNewConstMetric(c.closed, prometheus.GaugeValue, float64(unknown), "unknown")
}

// one returns 1 for true, and 0 for false.
func one(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

func (c *statusCollector) extension(metrics chan<- prometheus.Metric, x status.Extension) {
	up := map[status.State]float64{status.Up: 1, status.Slow: 1, status.Failing: .5, status.Down: 0}
	if value, ok := up[x.State]; ok {
		metrics <- prometheus.MustNewConstMetric(c.state, prometheus.GaugeValue, 1, x.Name, string(x.State))
		metrics <- prometheus.MustNewConstMetric(c.up, prometheus.GaugeValue, value, x.Name)
		c.timestamp(metrics, c.since, x.Since, x.Name)
	}
	c.timestamp(metrics, c.lastSuccess, x.LastSuccess, x.Name)
	for i := range x.Certificates {
		of := &x.Certificates[i]
		c.timestamp(metrics, c.certificate, &of.NotAfter, x.Name, certificateLabels[of.Of])
	}
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
func (r *Reporter) stateOf(
	now time.Time, snapshot *registry.Snapshot, name string, d activity.Discovery,
) status.Extension {
	x, e := status.Extension{Name: name}, r.evidence(name, d)
	for _, entry := range snapshot.HandlersOf(name) {
		e.handlers = append(e.handlers, r.handlerEvidence(entry, r.Observer.handlers.Seen(entry.Name, now)))
	}
	r.judge(&x, &e)
	return x
}
