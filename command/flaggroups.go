// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import "github.com/spf13/cobra"

// flagGroup is flags about one topic, in the order in which help shows them.
type flagGroup struct {
	title string
	flags []string
}

// serveGroups has each flag of hookgate serve once.
var serveGroups = []flagGroup{
	{"Where registrations come from", []string{"extension-configs", "state-dir", "kubeconfig", "sidecar", "resync"}},
	{"Development", []string{"dev", "extension"}},
	{"Addresses and certificates", []string{
		"http-address", "grpc-address", "cert-dir", "tls-min-version", "tls-cipher-suites", "openapi",
	}},
	{"Who may call", []string{
		"callers", "allowed-client-names", "allow-anonymous-callers", "kubernetes-tokens", "kubernetes-token-audiences",
		"max-calls-per-second", "max-calls-in-flight",
	}},
	{"Calls to extensions", []string{
		"allowed-extension-hosts", "runtime-extension-client-cert-file", "runtime-extension-client-key-file",
		"connection-max-age", "prefer-http2", "gateway-id", "gateway-address",
	}},
	{"ExtensionConfigs of a cluster", []string{
		"extension-config-group", "namespace", "watch-filter", "read-only", "extensionconfig-concurrency",
		"kube-api-qps", "kube-api-burst",
	}},
	{"Jobs of HookJobs", []string{"hook-jobs-namespace", "hook-jobs-service-account", "hook-jobs-pod-security"}},
	{"Hooks of Machines", []string{
		"machines", "machines-namespace", "machines-max-hold", "machine-concurrency",
	}},
	{"Replicas", []string{
		"leader-elect", "leader-elect-lease-duration", "leader-elect-renew-deadline", "leader-elect-retry-period",
	}},
	{"Admission webhooks", []string{"webhook-port", "webhook-cert-dir", "webhook-cert-name", "webhook-key-name"}},
	{"Health, metrics and traces", []string{
		"diagnostics-address", "insecure-diagnostics", "health-addr", "ui", "profiler-address", "otlp-endpoint",
		"otlp-insecure", "trace-ratio",
	}},
	{"Recording of calls", []string{"record", "record-max-bytes", "record-redact"}},
	{"The process", []string{"log-format", "log-level", "memory-budget", "shutdown-delay", "shutdown-timeout", "help"}},
}

// groupFlags makes help show the flags of a command in groups.
func groupFlags(cmd *cobra.Command, groups []flagGroup) { wrapHelp(cmd, groups) }
