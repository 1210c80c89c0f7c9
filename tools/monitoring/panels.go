// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

// row is a row of panels. A row is 24 columns wide.
type row struct {
	title  string
	panels []panel
}

// panel shows queries over time, or the value of one now.
type panel struct {
	title, description string
	unit               string
	width              uint32
	queries            []query

	stat       bool
	red, green float64 // values from which a stat is red, or green; 0 for none
	steps      bool    // of a state, which has no values in between
}

// query is a query in PromQL, and the name of its series.
type query struct{ expr, legend string }

// up is the state of extensions as the replica that leads has it, or as a gateway that reads a directory does.
const up = `max by (extension) (hookgate_extension_up{job=~"$job"} unless on (job, instance) (hookgate_leading == 0))`

//nolint:lll // queries
var rows = []row{
	{"At a glance", []panel{
		{
			title: "Extensions down", description: "Their server is gone, or its circuit is open.",
			width: 5, stat: true, red: 1, queries: []query{{`count(` + up + ` == 0) or vector(0)`, ""}},
		},
		{
			title: "Extensions failing", description: "Their server is there, and calls to some of their handlers fail, or their discovery.",
			width: 5, stat: true, red: 1, queries: []query{{`count(` + up + ` > 0 < 1) or vector(0)`, ""}},
		},
		{
			title: "Clusters held", description: "`hookgate get holds` names them.",
			width: 5, stat: true, queries: []query{{`sum(max by (hook, handler) (hookgate_held_clusters{job=~"$job"})) or vector(0)`, ""}},
		},
		{
			title: "Held longest", description: "Since when the Cluster that has waited longest does so.",
			width: 5, stat: true, unit: "s", red: 3600,
			queries: []query{{`time() - min(hookgate_held_clusters_since_timestamp_seconds{job=~"$job"}) or vector(0)`, ""}},
		},
		{
			title: "First certificate to expire", width: 4, stat: true, unit: "s", green: 7 * 24 * 3600,
			queries: []query{{`min(hookgate_certificate_expiry_timestamp_seconds{job=~"$job"}) - time()`, ""}},
		},
	}},
	{"Extensions", []panel{
		{
			title: "State", description: "1 is up, be it slow, 0 is down, and 0.5 is failing.", width: 8, steps: true,
			queries: []query{{up, "{{extension}}"}},
		},
		{
			title: "Time since the last answer", width: 8, unit: "s",
			queries: []query{{`time() - max by (extension) (hookgate_extension_last_success_timestamp_seconds{job=~"$job"})`, "{{extension}}"}},
		},
		{
			title: "Circuit", description: "0 is closed, 1 is half-open, 2 is open.", width: 8, steps: true,
			queries: []query{{`max by (extension) (hookgate_circuit_state{job=~"$job"})`, "{{extension}}"}},
		},
		{
			title: "Calls in flight and waiting", description: "They wait because the extension has as many in flight as its limits allow.", width: 12,
			queries: []query{
				{`sum by (extension) (hookgate_extension_calls_in_flight{job=~"$job"})`, "{{extension}} in flight"},
				{`sum by (extension) (hookgate_extension_calls_waiting{job=~"$job"})`, "{{extension}} waiting"},
			},
		},
		{
			title: "Discoveries", width: 12, unit: "ops",
			queries: []query{{`sum by (extension, outcome) (rate(hookgate_discoveries_total{job=~"$job"}[$__rate_interval]))`, "{{extension}} {{outcome}}"}},
		},
	}},
	{"Handlers", []panel{
		{
			title: "Calls", width: 8, unit: "reqps",
			queries: []query{{`sum by (handler, outcome) (rate(hookgate_handler_calls_total{job=~"$job"}[$__rate_interval]))`, "{{handler}} {{outcome}}"}},
		},
		{
			title: "Failures", description: "By kind, and whether the failure policy Ignore hid them.", width: 8, unit: "reqps",
			queries: []query{{
				`sum by (handler, outcome, kind) (rate(hookgate_handler_calls_total{job=~"$job",outcome!="success"}[$__rate_interval]))`,
				"{{handler}} {{outcome}} {{kind}}",
			}},
		},
		{
			title: "Duration", description: "The 50th and the 99th percentile.", width: 8, unit: "s",
			queries: []query{
				{`histogram_quantile(0.5, sum by (handler, le) (rate(hookgate_handler_call_duration_seconds_bucket{job=~"$job"}[$__rate_interval])))`, "{{handler}} p50"},
				{`histogram_quantile(0.99, sum by (handler, le) (rate(hookgate_handler_call_duration_seconds_bucket{job=~"$job"}[$__rate_interval])))`, "{{handler}} p99"},
			},
		},
		{
			title: "p99 over timeout", description: "Near 1, calls fail soon.", width: 8, unit: "percentunit",
			queries: []query{{
				`histogram_quantile(0.99, sum by (handler, le) (rate(hookgate_handler_call_duration_seconds_bucket{job=~"$job"}[$__rate_interval])))` +
					` / on (handler) max by (handler) (hookgate_handler_timeout_seconds{job=~"$job"})`, "{{handler}}",
			}},
		},
		{
			title: "Calls near their timeout", description: "They take eight tenths of it or more.", width: 8, unit: "percentunit",
			queries: []query{{
				`sum by (handler) (rate(hookgate_handler_calls_near_timeout_total{job=~"$job"}[$__rate_interval]))` +
					` / on (handler) (sum by (handler) (rate(hookgate_handler_calls_total{job=~"$job"}[$__rate_interval])) > 0)`, "{{handler}}",
			}},
		},
		{
			title: "Members lost in conversions", width: 8, unit: "short",
			queries: []query{{`sum by (handler) (hookgate_conversion_lost_members_total{job=~"$job"})`, "{{handler}}"}},
		},
	}},
	{"Clusters that wait", []panel{
		{
			title: "Clusters held", width: 12, steps: true,
			queries: []query{{`max by (hook, handler) (hookgate_held_clusters{job=~"$job"})`, "{{handler}}: {{hook}}"}},
		},
		{
			title: "Held longest", width: 12, unit: "s",
			queries: []query{{
				`time() - min by (hook, handler) (hookgate_held_clusters_since_timestamp_seconds{job=~"$job"})`, "{{handler}}: {{hook}}",
			}},
		},
	}},
	{"Infrastructure", []panel{
		{
			title: "Objects that are not ready", description: "`hookgate get machines --failing` and its like say what they wait for.",
			width: 8, steps: true,
			queries: []query{{`max by (kind, infrastructure_class) (hookgate_infrastructure_objects{state="NotReady"})`, "{{infrastructure_class}} {{kind}}"}},
		},
		{
			title: "Instances", description: "Those of the backend, as the extension says, and the objects that stand for them.",
			width: 8, steps: true,
			queries: []query{{`max by (infrastructure_class, source) (hookgate_infrastructure_instances)`, "{{infrastructure_class}} {{source}}"}},
		},
		{
			title: "Objects whose last call failed", width: 8, steps: true,
			queries: []query{{`max by (infrastructure_class, hook) (hookgate_infrastructure_failing_objects)`, "{{infrastructure_class}} {{hook}}"}},
		},
	}},
	{"Callers", []panel{
		{
			title: "Calls", width: 8, unit: "reqps",
			queries: []query{{`sum by (protocol, hook, kind) (rate(hookgate_requests_total{job=~"$job"}[$__rate_interval]))`, "{{hook}} {{protocol}} {{kind}}"}},
		},
		{
			title: "Duration", description: "The 99th percentile.", width: 8, unit: "s",
			queries: []query{{
				`histogram_quantile(0.99, sum by (hook, le) (rate(hookgate_request_duration_seconds_bucket{job=~"$job"}[$__rate_interval])))`, "{{hook}}",
			}},
		},
		{
			title: "Authentications", width: 8, unit: "reqps",
			queries: []query{{`sum by (method, result) (rate(hookgate_authentications_total{job=~"$job"}[$__rate_interval]))`, "{{method}} {{result}}"}},
		},
	}},
	{"Process", []panel{
		{
			title: "CPU", width: 8, unit: "short",
			queries: []query{{`rate(process_cpu_seconds_total{job=~"$job"}[$__rate_interval])`, "{{instance}}"}},
		},
		{
			title: "Memory", width: 8, unit: "bytes",
			queries: []query{
				{`process_resident_memory_bytes{job=~"$job"}`, "{{instance}} resident"},
				{`hookgate_memory_reserved_bytes{job=~"$job"}`, "{{instance}} reserved for calls"},
			},
		},
		{
			title: "Builds", width: 8, steps: true,
			queries: []query{{`count by (version) (hookgate_build_info{job=~"$job"})`, "{{version}}"}},
		},
	}},
}
