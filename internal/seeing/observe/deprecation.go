// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/registry"
)

const (
	deprecatedHandlersName = "hookgate_registered_deprecated_handlers"
	deprecatedHandlersHelp = "Always 1, for each registered handler that implements a deprecated version of a hook, " +
		"even if nothing calls the handler. Other handlers have no series."
)

var deprecatedHandlersLabels = [...]string{"group", "version", "hook", "handler"}

// deprecatedHandlers collects a metric for each registered handler that implements a deprecated version of a hook.
type deprecatedHandlers struct {
	desc      *prometheus.Desc
	snapshots registry.Snapshots
	hooks     *catalog.Catalog
	any       bool // a version is deprecated
}

var _ prometheus.Collector = (*deprecatedHandlers)(nil)

func newDeprecatedHandlers(s registry.Snapshots, c *catalog.Catalog) *deprecatedHandlers {
	deprecated := func(v *catalog.Version) bool { return v.Lifetime.Deprecated != "" && !v.Removed() }
	return &deprecatedHandlers{
		desc:      prometheus.NewDesc(deprecatedHandlersName, deprecatedHandlersHelp, deprecatedHandlersLabels[:], nil),
		snapshots: s, hooks: c, any: slices.ContainsFunc(c.Versions(), deprecated),
	}
}

// Describe implements prometheus.Collector.
func (d *deprecatedHandlers) Describe(descs chan<- *prometheus.Desc) { descs <- d.desc }

// Collect implements prometheus.Collector.
func (d *deprecatedHandlers) Collect(metrics chan<- prometheus.Metric) {
	if !d.any {
		return
	}
	for _, e := range d.snapshots.Snapshot().All() {
		h, ok := d.hooks.Lookup(e.Handler.Hook)
		if !ok {
			continue
		}
		if _, _, ok := h.Deprecated(); ok {
			labels := []string{h.Group, h.Version, h.Hook, e.Name}
			metrics <- prometheus.MustNewConstMetric(d.desc, prometheus.GaugeValue, 1, labels...)
		}
	}
}
