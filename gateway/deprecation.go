// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/hookgate/hookgate/catalog"
)

const (
	// WarningHeader carries the warnings of a call in its answer: over REST a header for each, over gRPC a trailer. Each has the
	// form of RFC 7234: 299 - "<text>".
	WarningHeader = "Warning"
	// maxWarnings is how many warnings an answer has at most, besides the one that says how many are left out.
	maxWarnings = 10
)

// warnings are what the caller of one call is told about versions that will go. They are safe for concurrent use.
type warnings struct {
	mu    sync.Mutex
	texts []string
}

func (w *warnings) add(text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !slices.Contains(w.texts, text) {
		w.texts = append(w.texts, text)
	}
}

// values returns the values of WarningHeader: in order, each once, and not too many. It is nil if there are none.
func (w *warnings) values() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.texts) == 0 {
		return nil
	}
	texts := slices.Sorted(slices.Values(w.texts))
	if n := len(texts) - maxWarnings; n > 0 {
		texts = append(texts[:maxWarnings], fmt.Sprintf("and %d more handlers implement deprecated hooks", n))
	}
	for i, text := range texts {
		texts[i] = "299 - " + strconv.Quote(text)
	}
	return texts
}

// warn puts the warnings of the call into the header of its answer.
func (in *inbound) warn(header http.Header) {
	if values := in.warnings.values(); values != nil {
		header[WarningHeader] = values
	}
}

// noteDeprecated tells the caller, and counts, that a call uses a deprecated version of a hook: the caller itself if handler is
// empty, otherwise the handler of that name.
func noteDeprecated(ctx context.Context, h *catalog.Hook, handler string) {
	since, instead, ok := h.Deprecated()
	if !ok {
		return
	}
	in := inboundFrom(ctx)
	if in == nil {
		return
	}
	side, text := "caller", fmt.Sprintf("%s is deprecated since %s of the gateway: call %s", h, since, instead)
	if handler != "" {
		side, text = "handler", fmt.Sprintf("handler %q implements %s, which is deprecated since %s of the gateway: it should implement %s", handler, h, since, instead)
	}
	in.warnings.add(text)
	in.o.metrics.deprecatedCalls.WithLabelValues(h.Group, h.Version, h.Hook, handler, side).Inc()
}

const (
	deprecatedHandlersName = "hookgate_registered_deprecated_handlers"
	deprecatedHandlersHelp = "Always 1, for each registered handler that implements a deprecated version of a hook, called or not."
)

var deprecatedHandlersLabels = [...]string{"group", "version", "hook", "handler"}

// deprecatedHandlers collects the registered handlers that implement a deprecated version of a hook.
type deprecatedHandlers struct {
	desc      *prometheus.Desc
	snapshots Snapshots
	hooks     *catalog.Catalog
	any       bool // a version is deprecated
}

var _ prometheus.Collector = (*deprecatedHandlers)(nil)

func newDeprecatedHandlers(s Snapshots, c *catalog.Catalog) *deprecatedHandlers {
	return &deprecatedHandlers{
		desc:      prometheus.NewDesc(deprecatedHandlersName, deprecatedHandlersHelp, deprecatedHandlersLabels[:], nil),
		snapshots: s, hooks: c,
		any: slices.ContainsFunc(c.Versions(), func(v *catalog.Version) bool { return v.Lifetime.Deprecated != "" && !v.Removed() }),
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
			metrics <- prometheus.MustNewConstMetric(d.desc, prometheus.GaugeValue, 1, h.Group, h.Version, h.Hook, e.Name)
		}
	}
}
