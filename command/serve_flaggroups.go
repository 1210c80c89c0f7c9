// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"github.com/hookgate/hookgate/internal/cli/cmdline"
)

// The groups that hookgate serve and hookgate machines have alike.
var (
	extensionFlags = cmdline.FlagGroup{Title: "Calls to extensions", Flags: []string{
		"allowed-extension-hosts", "runtime-extension-client-cert-file", "runtime-extension-client-key-file",
		"connection-max-age", "prefer-http2", "gateway-id", "gateway-address",
	}}
	configFlags = cmdline.FlagGroup{Title: "ExtensionConfigs of a cluster", Flags: []string{
		"extension-config-group", "namespace", "watch-filter", "read-only", "extensionconfig-concurrency",
		"kube-api-qps", "kube-api-burst",
	}}
	jobFlags = cmdline.FlagGroup{Title: "Jobs of HookJobs", Flags: []string{
		"hook-jobs-namespace", "hook-jobs-service-account", "hook-jobs-pod-security",
	}}
	replicaFlags = cmdline.FlagGroup{Title: "Replicas", Flags: []string{
		"leader-elect", "leader-elect-lease-duration", "leader-elect-renew-deadline", "leader-elect-retry-period",
	}}
)

// serveGroups has each flag of hookgate serve once.
var serveGroups = []cmdline.FlagGroup{
	{Title: "Where registrations come from", Flags: []string{
		"extension-configs", "state-dir", "kubeconfig", "sidecar", "resync",
	}},
	{Title: "Development", Flags: []string{"dev", "extension"}},
	{Title: "Addresses and certificates", Flags: []string{
		"http-address", "grpc-address", "cert-dir", "self-certificates", "tls-min-version", "tls-cipher-suites", "openapi",
	}},
	{Title: "Who may call", Flags: []string{
		"callers", "allowed-client-names", "allow-anonymous-callers", "kubernetes-tokens", "kubernetes-token-audiences",
		"max-calls-per-second", "max-calls-in-flight", "caller-connection-max-age",
	}},
	extensionFlags,
	configFlags,
	jobFlags,
	{Title: "Hooks of Machines and Clusters", Flags: []string{
		"machines", "clusters", "machines-namespace", "machines-max-hold", "machine-concurrency",
	}},
	replicaFlags,
	{Title: "Admission webhooks", Flags: []string{
		"webhook-port", "webhook-cert-dir", "webhook-cert-name", "webhook-key-name",
	}},
	{Title: "Health, metrics and traces", Flags: []string{
		"diagnostics-address", "insecure-diagnostics", "health-addr", "ui", "ui-dashboard", "profiler-address",
		"otlp-endpoint", "otlp-insecure", "trace-ratio",
	}},
	{Title: "Recording of calls", Flags: []string{"record", "record-max-bytes", "record-redact"}},
	{Title: "The process", Flags: []string{
		"log-format", "log-level", "memory-budget", "shutdown-delay", "shutdown-timeout", "help",
	}},
}
