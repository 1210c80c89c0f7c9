// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/kinds/rollout"
	"github.com/hookgate/hookgate/registry"
)

// rolloutCollector collects what is known of ExtensionRollouts. It has only comparisons before Metrics.Report.
type rolloutCollector struct {
	status    *statusCollector
	snapshots registry.Snapshots

	clusters, ready, aborted *prometheus.Desc
	comparisons              *prometheus.CounterVec

	mu       sync.Mutex
	compared map[string]bool // the rollouts with series of comparisons
}

var _ prometheus.Collector = (*rolloutCollector)(nil)

// newRolloutCollector returns a collector that is registered with d.
func newRolloutCollector(d *definer, status *statusCollector, snapshots registry.Snapshots) *rolloutCollector {
	c := &rolloutCollector{status: status, snapshots: snapshots, compared: map[string]bool{}}
	c.clusters = d.described("gauge", "hookgate_rollout_clusters",
		"Number of Clusters of an "+rollout.Kind+`. The label state is "equal" (the answers of both versions were equal, `+
			`and the stable version answers for the Cluster), "different" (the answers differed, and the stable version `+
			`answers) or "moved" (the candidate answers). A Cluster also counts as "failing" if this process's last call to `+
			`the candidate about the Cluster failed.`,
		"rollout", "state")
	c.ready = d.described("gauge", "hookgate_rollout_ready",
		"Whether an "+rollout.Kind+" is in effect (1) or not (0).", "rollout")
	c.aborted = d.described("gauge", "hookgate_rollout_aborted",
		"1 if an "+rollout.Kind+" has stopped moving Clusters because too many calls to the candidate failed, "+
			"otherwise 0.", "rollout")
	d.registerer.MustRegister(c)
	c.comparisons = d.counter("hookgate_rollout_comparisons_total",
		"Total number of calls for which an "+rollout.Kind+" was to compare the answers of both versions. The label "+
			`result is "equal" (the answers were equal), "different" (the answers differed), "failed" (the candidate did not `+
			`answer) or "dropped" (there was no room to compare).`, "rollout", "result")
	return c
}

// Compared counts a comparison of an ExtensionRollout. The series are removed when it is no longer registered.
func (m *Metrics) Compared(of, result string) {
	c := m.rollouts
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.compared[of] {
		c.removeGone(of)
		if len(c.compared) >= limits.StatusRollouts {
			return
		}
		c.compared[of] = true
		for _, r := range rollout.Results() { // so that all begin at 0
			c.comparisons.WithLabelValues(of, r)
		}
	}
	c.comparisons.WithLabelValues(of, result).Inc()
}

// removeGone removes the series of the rollouts that are not registered, but for one that is about to be added. The
// mutex is held.
func (c *rolloutCollector) removeGone(but string) {
	snapshot := c.snapshots.Snapshot()
	for name := range c.compared {
		if _, ok := snapshot.Rollout(name); !ok && name != but {
			c.comparisons.DeletePartialMatch(prometheus.Labels{"rollout": name})
			delete(c.compared, name)
		}
	}
}

// Describe implements prometheus.Collector.
func (c *rolloutCollector) Describe(descs chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{c.clusters, c.ready, c.aborted} {
		descs <- d
	}
}

// Collect implements prometheus.Collector.
func (c *rolloutCollector) Collect(metrics chan<- prometheus.Metric) {
	c.mu.Lock()
	c.removeGone("")
	c.mu.Unlock()
	r := c.status.Load()
	if r == nil {
		return
	}
	gauge := func(d *prometheus.Desc, value float64, labels ...string) {
		metrics <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	}
	all := r.listed().Rollouts
	for i := range all[:min(len(all), limits.StatusRollouts)] {
		of := &all[i]
		gauge(c.ready, one(of.Ready), of.Name)
		gauge(c.aborted, one(of.Aborted != ""), of.Name)
		for state, n := range map[string]int{
			"equal": of.Equal, "different": of.Different, "moved": of.Moved, "failing": of.Failing,
		} {
			gauge(c.clusters, float64(n), of.Name, state)
		}
	}
}
