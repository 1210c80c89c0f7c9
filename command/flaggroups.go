// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package command

// serveGroups has each flag of hookgate serve once.
var serveGroups = []flagGroup{
	{title: "Where registrations come from", flags: []string{"extension-configs", "state-dir", "kubeconfig", "sidecar", "resync"}},
	{title: "Development", flags: []string{"dev", "extension"}},
	{title: "Addresses and certificates", flags: []string{
		"http-address", "grpc-address", "cert-dir", "tls-min-version", "tls-cipher-suites", "openapi",
	}},
	{title: "Who may call", flags: []string{
		"callers", "allowed-client-names", "allow-anonymous-callers", "kubernetes-tokens", "kubernetes-token-audiences",
		"max-calls-per-second", "max-calls-in-flight",
	}},
	{title: "Calls to extensions", flags: []string{
		"allowed-extension-hosts", "runtime-extension-client-cert-file", "runtime-extension-client-key-file",
		"connection-max-age", "prefer-http2", "gateway-id", "gateway-address",
	}},
	{title: "ExtensionConfigs of a cluster", flags: []string{
		"extension-config-group", "namespace", "watch-filter", "read-only", "extensionconfig-concurrency",
		"kube-api-qps", "kube-api-burst",
	}},
	{title: "Jobs of HookJobs", flags: []string{"hook-jobs-namespace", "hook-jobs-service-account", "hook-jobs-pod-security"}},
	{title: "Hooks of Machines", flags: []string{
		"machines", "machines-namespace", "machines-max-hold", "machine-concurrency",
	}},
	{title: "Replicas", flags: []string{
		"leader-elect", "leader-elect-lease-duration", "leader-elect-renew-deadline", "leader-elect-retry-period",
	}},
	{title: "Admission webhooks", flags: []string{"webhook-port", "webhook-cert-dir", "webhook-cert-name", "webhook-key-name"}},
	{title: "Health, metrics and traces", flags: []string{
		"diagnostics-address", "insecure-diagnostics", "health-addr", "ui", "profiler-address", "otlp-endpoint",
		"otlp-insecure", "trace-ratio",
	}},
	{title: "Recording of calls", flags: []string{"record", "record-max-bytes", "record-redact"}},
	{title: "The process", flags: []string{"log-format", "log-level", "memory-budget", "shutdown-delay", "shutdown-timeout", "help"}},
}
