// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/hookgate/hookgate/internal/calls/circuit"
	"github.com/hookgate/hookgate/internal/calls/extensionstate"
	"github.com/hookgate/hookgate/registry"
)

// extensionCollector collects the metrics of the extensions that are registered now, so that their series are gone as
// soon as the extensions are. It has none before NewObserver.
type extensionCollector struct {
	atomic.Pointer[extensionstate.States]

	snapshots registry.Snapshots

	state, transitions, own    *prometheus.Desc
	refusedClusters            *prometheus.Desc
	inFlight, waiting, refused *prometheus.Desc
}

var _ prometheus.Collector = (*extensionCollector)(nil)

// newExtensionCollector returns a collector that is registered with d.
func newExtensionCollector(d *definer, s registry.Snapshots) *extensionCollector {
	c := &extensionCollector{snapshots: s}
	c.state = d.described("gauge", "hookgate_circuit_state",
		"State of the circuit of an extension's server. The value is 0 (closed: calls are sent), 1 (half-open: the next "+
			"call is a probe, or a probe is under way) or 2 (open: calls are refused). An extension that this process has "+
			"never called has no series.", "extension")
	c.transitions = d.described("counter", "hookgate_circuit_transitions_total",
		`Total number of times that the circuit of an extension's server has changed to the state in the label state: `+
			`"open" (calls are refused), "half_open" (the next call is a probe, or a probe is under way) or "closed" (calls `+
			`are sent).`,
		"extension", "state")
	c.own = d.described("gauge", "hookgate_handler_circuit_state",
		"State of the circuit of a handler. The value is 0 (closed: calls are sent), 1 (half-open: the next call is a "+
			"probe, or a probe is under way) or 2 (open: calls are refused). A handler whose circuit has never opened has no "+
			"series.",
		"hook", "handler")
	c.refusedClusters = d.described("gauge", "hookgate_handler_refused_clusters",
		"Number of Clusters about which calls to a handler are refused, except for probes: calls about these Clusters "+
			"fail, but calls about other Clusters succeed. A handler without such Clusters has no series.", "hook", "handler")
	c.inFlight = d.described("gauge", "hookgate_extension_calls_in_flight",
		"Number of calls that an extension has not answered yet.", "extension")
	c.waiting = d.described("gauge", "hookgate_extension_calls_waiting",
		"Number of calls that wait because an extension already has as many calls in flight as its limits allow.",
		"extension")
	c.refused = d.described("counter", "hookgate_extension_calls_refused_total",
		"Total number of calls that failed because an extension already had as many calls in flight and waiting as its "+
			"limits allow.",
		"extension")
	d.registerer.MustRegister(c)
	return c
}

// described adds a metric that a collector of its own has.
func (d *definer) described(kind, name, help string, labels ...string) *prometheus.Desc {
	d.definitions = append(d.definitions, definition{name: name, kind: kind, help: help, labels: labels})
	return prometheus.NewDesc(name, help, labels, nil)
}

// Describe implements prometheus.Collector.
func (c *extensionCollector) Describe(descs chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		c.state, c.transitions, c.own, c.refusedClusters, c.inFlight, c.waiting, c.refused,
	} {
		descs <- d
	}
}

// Collect implements prometheus.Collector.
func (c *extensionCollector) Collect(metrics chan<- prometheus.Metric) {
	extensions := c.Load()
	if extensions == nil {
		return
	}
	snapshot := c.snapshots.Snapshot()
	for _, r := range snapshot.Registrations() {
		s := extensions.Known(r.Name)
		if s == nil || r.InProcess != nil {
			continue
		}
		status := s.Circuit.Status()
		metrics <- prometheus.MustNewConstMetric(c.state, prometheus.GaugeValue, float64(status.State), r.Name)
		for _, state := range []circuit.State{circuit.Open, circuit.HalfOpen, circuit.Closed} {
			metrics <- prometheus.MustNewConstMetric(c.transitions, prometheus.CounterValue,
				float64(status.Entered[state]), r.Name, state.String())
		}
		for _, e := range snapshot.HandlersOf(r.Name) {
			if own := s.HandlerCircuit(e.Name); own.Entered[circuit.Open] > 0 {
				metrics <- prometheus.MustNewConstMetric(c.own, prometheus.GaugeValue, float64(own.State),
					e.Handler.Hook.Hook, e.Name)
			}
			if n := len(s.RefusedClusters(e.Name)); n > 0 {
				metrics <- prometheus.MustNewConstMetric(c.refusedClusters, prometheus.GaugeValue, float64(n),
					e.Handler.Hook.Hook, e.Name)
			}
		}
		calls := s.Gate.Status()
		for _, m := range []struct {
			desc  *prometheus.Desc
			kind  prometheus.ValueType
			value float64
		}{
			{c.inFlight, prometheus.GaugeValue, float64(calls.InFlight)},
			{c.waiting, prometheus.GaugeValue, float64(calls.Waiting)},
			{c.refused, prometheus.CounterValue, float64(calls.Refused)},
		} {
			metrics <- prometheus.MustNewConstMetric(m.desc, m.kind, m.value, r.Name)
		}
	}
}
