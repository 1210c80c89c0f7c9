// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"fmt"
	"io"
	"maps"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/registry"
)

// Metrics holds the gateway's Prometheus metrics. docs/metrics.md is generated from the same definitions.
type Metrics struct {
	requests             *prometheus.CounterVec
	requestDuration      *prometheus.HistogramVec
	requestsInFlight     *prometheus.GaugeVec
	requestReceivedBytes *prometheus.CounterVec
	requestSentBytes     *prometheus.CounterVec
	authentications      *prometheus.CounterVec

	handlerCalls         *prometheus.CounterVec
	handlerDuration      *prometheus.HistogramVec
	handlerInFlight      *prometheus.GaugeVec
	handlerSentBytes     *prometheus.CounterVec
	handlerReceivedBytes *prometheus.CounterVec
	ignoredFailures      *prometheus.CounterVec
	lostMembers          *prometheus.CounterVec
	deprecatedCalls      *prometheus.CounterVec
	nearTimeout          *prometheus.CounterVec
	waits                *prometheus.CounterVec
	cacheAnswers         *prometheus.CounterVec
	audited              *prometheus.CounterVec
	changedAnswers       *prometheus.CounterVec
	changedMessages      *prometheus.CounterVec
	notCompared          prometheus.Counter
	recorded             prometheus.Counter
	notRecorded          *prometheus.CounterVec

	certificates      *certificateExpiry
	discoveries       *prometheus.CounterVec
	discoveryDuration *prometheus.HistogramVec
	manifestErrors    prometheus.Gauge

	extensions *extensionCollector
	status     *statusCollector
	rollouts   *rolloutCollector
	leading    *leadingCollector
	series     *handlerSeries
	memory     *memoryCollector

	definitions []definition
}

// definition describes a metric in the documentation.
type definition struct {
	name, kind, help string
	labels           []string
}

// definer registers metrics and collects their definitions.
type definer struct {
	registerer  prometheus.Registerer
	definitions []definition
}

func (d *definer) add(kind, name, help string, labels []string, c prometheus.Collector) {
	d.definitions = append(d.definitions, definition{name: name, kind: kind, help: help, labels: labels})
	d.registerer.MustRegister(c)
}

func (d *definer) counter(name, help string, labels ...string) *prometheus.CounterVec {
	c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	d.add("counter", name, help, labels, c)
	return c
}

func (d *definer) gauge(name, help string, labels ...string) *prometheus.GaugeVec {
	g := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels)
	d.add("gauge", name, help, labels, g)
	return g
}

func (d *definer) histogram(name, help string, labels ...string) *prometheus.HistogramVec {
	h := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: name, Help: help, Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30},
	}, labels)
	d.add("histogram", name, help, labels, h)
	return h
}

// gaugeFunc adds a gauge with the value of f and constant labels.
func (d *definer) gaugeFunc(name, help string, labels prometheus.Labels, f func() int) {
	d.add("gauge", name, help, slices.Sorted(maps.Keys(labels)), prometheus.NewGaugeFunc(
		prometheus.GaugeOpts{Name: name, Help: help, ConstLabels: labels}, func() float64 { return float64(f()) }))
}

// NewMetrics registers and returns the metrics of a build of the given version, which serves the given hooks. It panics
// if the registerer has metrics of these names already.
func NewMetrics(
	r prometheus.Registerer, snapshots registry.Snapshots, hooks *catalog.Catalog, version string,
) *Metrics {
	d := &definer{registerer: r}
	m := &Metrics{
		requests: d.counter("hookgate_requests_total",
			"Total number of calls from callers. The label kind is empty if the caller got an answer of the hook "+
				"(Success or Failure), and is otherwise the kind of the error.", "protocol", "hook", "kind"),
		requestDuration: d.histogram("hookgate_request_duration_seconds",
			"Time in seconds from a caller's request to its answer.", "protocol", "hook"),
		requestsInFlight: d.gauge("hookgate_requests_in_flight",
			"Number of calls from callers that the gateway has not answered yet.", "protocol"),
		requestReceivedBytes: d.counter("hookgate_request_received_bytes_total",
			"Total number of bytes in the bodies of callers' requests, decompressed.", "protocol", "hook"),
		requestSentBytes: d.counter("hookgate_request_sent_bytes_total",
			"Total number of bytes in the bodies of answers to callers.", "protocol", "hook"),
		authentications: d.counter("hookgate_authentications_total",
			`Total number of decisions on whether a caller may call. The label method is "none" (the caller shows no `+
				`credentials, or needs none), "certificate" (a client certificate), "token" (a token from the file of `+
				`callers, or an unknown token) or "kubernetes" (a token that Kubernetes reviews). The label result is `+
				`"admitted" (the caller may call), "Unauthenticated" (the credentials are missing or not valid), "Forbidden" `+
				`(the caller is not allowed to make the call), "Overloaded" (the caller makes too many calls) or "error" (no `+
				`decision was possible, so the call was refused).`, "method", "result"),

		handlerCalls: d.counter("hookgate_handler_calls_total",
			"Total number of calls to handlers. A call to a "+registry.ChainKind+" counts in addition to the calls to "+
				`its steps. The label outcome is "success" (the handler answered Success), "failure" (the handler answered `+
				`Failure), "error" (there is no usable answer) or "ignored" (there is no usable answer, but the failure `+
				`policy Ignore hid the error). The label kind is the kind of the error; it is empty without an error.`,
			"hook", "handler", "outcome", "kind"),
		handlerDuration: d.histogram("hookgate_handler_call_duration_seconds",
			"Time in seconds that calls to handlers took.", "hook", "handler"),
		handlerInFlight: d.gauge("hookgate_handler_calls_in_flight",
			"Number of calls that handlers have not answered yet.", "hook", "handler"),
		handlerSentBytes: d.counter("hookgate_handler_sent_bytes_total",
			"Total number of bytes in the bodies of requests to handlers.", "hook", "handler"),
		handlerReceivedBytes: d.counter("hookgate_handler_received_bytes_total",
			"Total number of bytes in the bodies of handlers' answers.", "hook", "handler"),
		ignoredFailures: d.counter("hookgate_handler_ignored_failures_total",
			"Total number of handler errors that the gateway ignored because the failure policy is Ignore.",
			"hook", "handler", "kind"),
		lostMembers: d.counter("hookgate_conversion_lost_members_total",
			"Total number of members that were lost when a request was converted for a handler, or when the handler's answer "+
				"was converted for the caller. Each path of a lost member counts once for each call. The log lists these paths.",
			"hook", "handler"),
		deprecatedCalls: d.counter("hookgate_deprecated_calls_total",
			`Total number of calls that use a deprecated version of a hook. The label side is "caller" (the caller uses `+
				`the deprecated version; the label handler is empty) or "handler" (the handler implements the deprecated version).`,
			"group", "version", "hook", "handler", "side"),
		nearTimeout: d.counter("hookgate_handler_calls_near_timeout_total",
			"Total number of calls to handlers, answered or not, that took at least 80 % of the handler's timeout.",
			"hook", "handler"),
		waits: d.counter("hookgate_handler_restart_waits_total",
			"Total number of calls that waited because the handler's extension accepted no connections, for example "+
				`during a restart. The label result is "served" (the call was sent) or "failed" (the extension did not come `+
				`back in time).`, "hook", "handler", "result"),
		cacheAnswers: d.counter("hookgate_handler_cache_answers_total",
			`Total number of calls to handlers whose policy has a cache. The label result is "hit" (the caller got a `+
				`cached answer), "shared" (the caller got the answer to an identical call in flight) or "miss" (the handler `+
				`was called). The metrics of calls to handlers count only misses.`, "hook", "handler", "result"),
		audited: d.counter("hookgate_rule_audits_total",
			`Total number of calls whose answer a HookRule would have changed if its action were not Audit. The label `+
				`outcome is "hold" (the rule would have answered with a hold), "failure" (with Failure), "patches" (with `+
				`patches) or "error" (an expression could not be evaluated).`, "hook", "handler", "outcome"),
		changedAnswers: d.counter("hookgate_handler_changed_answers_total",
			"Total number of answers that differ from an earlier answer to an equal request, for hooks whose answers "+
				"depend only on the request. Patches are compared by the objects that they produce.", "hook", "handler"),
		notCompared: d.counter("hookgate_answers_not_compared_total",
			"Total number of answers that were not compared with earlier answers to equal requests, because the answers were "+
				"too large or too many.").WithLabelValues(),
		changedMessages: d.counter("hookgate_handler_changed_messages_total",
			"Total number of holds and Failures whose message is the only difference from the previous answer about "+
				`the same Cluster. Messages that differ only in progress, such as "3 of 10", do not count. If the handler's `+
				"ExtensionPolicy sets spec.messages to Steady, the texts that callers get are compared.", "hook", "handler"),
		recorded: d.counter("hookgate_recording_calls_total",
			"Total number of calls to handlers that --record has written to a file.").WithLabelValues(),
		notRecorded: d.counter("hookgate_recording_dropped_total",
			"Total number of calls to handlers that --record or \"hookgate record\" could not record. The label reason "+
				`is "queue" (calls come faster than they are written), "memory" (the memory budget is used up), "too_large" `+
				`(the line is too long), "write" (the file cannot be written), "form" (the call cannot be written as JSON, `+
				`or its secrets cannot be removed) or "reader" ("hookgate record" reads too slowly).`, "reason"),

		discoveries: d.counter("hookgate_discoveries_total",
			`Total number of calls of the Discovery hook of extensions. The label outcome is "Success" (the handlers `+
				`are registered), "Refused" (the registry did not accept the answer) or the kind of the error.`,
			"extension", "outcome"),
		discoveryDuration: d.histogram("hookgate_discovery_duration_seconds",
			"Time in seconds that calls of the Discovery hook took.", "extension"),
		manifestErrors: d.gauge("hookgate_manifest_errors",
			"Number of errors in the manifests of the directory that the gateway reads.").WithLabelValues(),
	}
	m.extensions = newExtensionCollector(d, snapshots)
	m.status = newStatusCollector(d)
	m.rollouts = newRolloutCollector(d, m.status, snapshots)
	m.series = &handlerSeries{snapshots: snapshots}
	m.series.vectors = append(m.series.vectors, m.handlerCalls, m.handlerDuration, m.handlerInFlight, m.handlerSentBytes,
		m.handlerReceivedBytes, m.ignoredFailures, m.lostMembers, m.deprecatedCalls, m.nearTimeout, m.cacheAnswers,
		m.audited, m.changedAnswers, m.changedMessages, m.waits)
	r.MustRegister(m.series)
	m.memory = newMemoryCollector(d)
	d.registered(snapshots)
	m.leading = newLeadingCollector(d)
	m.certificates = newCertificateExpiry(d)
	d.add("gauge", deprecatedHandlersName, deprecatedHandlersHelp, deprecatedHandlersLabels[:],
		newDeprecatedHandlers(snapshots, hooks))
	d.gaugeFunc("hookgate_build_info", "Always 1. The labels name the versions of Hookgate and of Go.",
		prometheus.Labels{"version": version, "goversion": runtime.Version()}, func() int { return 1 })
	m.definitions = d.definitions
	return m
}

// registered adds the gauges that count what is in the registry.
func (d *definer) registered(snapshots registry.Snapshots) {
	d.gaugeFunc("hookgate_registered_extensions", "Number of ExtensionConfigs in the registry.", nil,
		func() int { return extensionsIn(snapshots.Snapshot()) })
	d.gaugeFunc("hookgate_registered_handlers", "Number of handlers in the registry.", nil,
		func() int { return len(snapshots.Snapshot().All()) })
}

// Discovery counts one call of an extension's Discovery hook.
func (m *Metrics) Discovery(extension, outcome string, took time.Duration) {
	m.discoveries.WithLabelValues(extension, outcome).Inc()
	m.discoveryDuration.WithLabelValues(extension).Observe(took.Seconds())
}

// Recorded counts a call that was recorded.
func (m *Metrics) Recorded() { m.recorded.Inc() }

// RecordingDropped counts a call that was not.
func (m *Metrics) RecordingDropped(reason string) { m.notRecorded.WithLabelValues(reason).Inc() }

// Forget removes the series of an ExtensionConfig that is not there any more. It names them, because looking for them
// takes as long as there are ExtensionConfigs, and thousands may be deleted together.
func (m *Metrics) Forget(extension string) {
	m.discoveries.DeleteLabelValues(extension, "Success")
	m.discoveries.DeleteLabelValues(extension, "Refused")
	for _, kind := range hook.Kinds() {
		m.discoveries.DeleteLabelValues(extension, kind.String())
	}
	m.discoveryDuration.DeleteLabelValues(extension)
}

// ManifestErrors sets how many manifests cannot be used now.
func (m *Metrics) ManifestErrors(n int) { m.manifestErrors.Set(float64(n)) }

// metricsPage is the page about metrics up to the rows of its table.
const metricsPage = "# Metrics\n\nThe diagnostics address serves these metrics under `/metrics` in the Prometheus " +
	"text format, with the metrics\nof Go's runtime and of the process (`go_*`, `process_*`). This page is generated by " +
	"`make generate`.\n\n`handler` is the registered name, `<handler>.<ExtensionConfig>`; `protocol` is `REST`, " +
	"`gRPC`,\n`explain` for [an explanation](explain.md) of a call, or `in-process` for calls from the controllers " +
	"of\n[Machines](machines.md) that run in the gateway; `kind` is\none of the kinds of [errors](errors.md). The " +
	"series of a handler are removed when the handler is no\nlonger registered, and begin at 0 if it is registered " +
	"again.\n\n| metric " +
	"| type | labels | meaning |\n|---|---|---|---|\n"

// Document writes the page about metrics, in Markdown.
func (m *Metrics) Document(w io.Writer) error {
	var b strings.Builder
	b.WriteString(metricsPage)
	for _, d := range m.definitions {
		labels := "none"
		if len(d.labels) > 0 {
			labels = "`" + strings.Join(d.labels, "`, `") + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", d.name, d.kind, labels, d.help)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// extensionsIn returns the number of registrations that have a server.
func extensionsIn(s *registry.Snapshot) (n int) {
	for _, r := range s.Registrations() {
		if r.InProcess == nil {
			n++
		}
	}
	return n
}
