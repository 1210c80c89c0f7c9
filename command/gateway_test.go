// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"strings"
	"testing"

	"github.com/hookgate/hookgate/command/internal/commandtest"
	"github.com/hookgate/hookgate/internal/cli/cmdline"
)

// TestGatewayInACluster runs each client command against a gateway in a cluster, with what each way to name it allows.
func TestGatewayInACluster(t *testing.T) {
	g := commandtest.NewClusterGateway(t, commandtest.AcmeManifest)
	for name, tt := range map[string]struct {
		args []string
		code int
		want string
	}{
		"Describe":        {[]string{"describe", "acme", "--kubeconfig", g.Kubeconfig}, cmdline.ExitDone, "acme"},
		"Context":         {[]string{"describe", "acme", "--kubeconfig", g.Kubeconfig, "--context", "other"}, cmdline.ExitDone, "acme"},
		"Gateway":         {[]string{"describe", "acme", "--kubeconfig", g.Kubeconfig, "--gateway", "hookgate-system/a"}, cmdline.ExitDone, "acme"},
		"Address":         {[]string{"describe", "acme", "--kubeconfig", g.Kubeconfig, "--diagnostics", "http://127.0.0.1:8443"}, cmdline.ExitDone, "acme"},
		"GetExtensions":   {[]string{"get", "extensions", "--kubeconfig", g.Kubeconfig, "--gateway", "hookgate-system"}, cmdline.ExitDone, "acme"},
		"GetHandlers":     {[]string{"get", "handlers", "--kubeconfig", g.Kubeconfig}, cmdline.ExitDone, "hookgate-system/a has no handlers"},
		"GetHolds":        {[]string{"get", "holds", "--kubeconfig", g.Kubeconfig}, cmdline.ExitDone, "No Cluster waits for a handler of hookgate-system/a."},
		"Call":            {[]string{"call", "Discovery", "--kubeconfig", g.Kubeconfig, "--ca", g.CA, "-o", "json"}, cmdline.ExitDone, `"status": "Success"`},
		"CallGRPC":        {[]string{"call", "Discovery", "--kubeconfig", g.Kubeconfig, "--ca", g.CA, "-o", "json", "--server", "grpcs://hookgate.hookgate-system.svc:9090"}, cmdline.ExitDone, `"status": "Success"`},
		"Discover":        {[]string{"get", "handlers", "--kubeconfig", g.Kubeconfig, "--ca", g.CA, "--server", "https://hookgate.hookgate-system.svc:9443", "-o", "json"}, cmdline.ExitDone, `"status": "Success"`},
		"Untrusted":       {[]string{"call", "Discovery", "--kubeconfig", g.Kubeconfig}, cmdline.ExitFailed, "--ca FILE"},
		"OtherPort":       {[]string{"get", "holds", "--kubeconfig", g.Kubeconfig, "--diagnostics", "http://127.0.0.1:8444"}, cmdline.ExitFailed, "nothing listens on port 8444 of Pod a"},
		"CallOtherPort":   {[]string{"call", "Discovery", "--kubeconfig", g.Kubeconfig, "--ca", g.CA, "--server", "https://hookgate.hookgate-system.svc:9444"}, cmdline.ExitFailed, "nothing listens on port 9444 of Pod a"},
		"UnknownContext":  {[]string{"get", "holds", "--kubeconfig", g.Kubeconfig, "--context", "none"}, cmdline.ExitFailed, `context "none" does not exist`},
		"NoKubeconfig":    {[]string{"get", "holds", "--kubeconfig", "none"}, cmdline.ExitFailed, "kubeconfig: "},
		"OtherNamespace":  {[]string{"get", "holds", "--kubeconfig", g.Kubeconfig, "--gateway", "none"}, cmdline.ExitFailed, "namespace none has no gateway Pod"},
		"NotReady":        {[]string{"get", "holds", "--kubeconfig", g.Kubeconfig, "--gateway", "elsewhere"}, cmdline.ExitFailed, "no gateway Pod that is ready"},
		"NoNamespace":     {[]string{"get", "holds", "--kubeconfig", g.Kubeconfig, "--gateway", "/a"}, cmdline.ExitUsage, `--gateway "/a": want NAMESPACE or NAMESPACE/POD`},
		"NoPod":           {[]string{"get", "holds", "--kubeconfig", g.Kubeconfig, "--gateway", "a/"}, cmdline.ExitUsage, `--gateway "a/": want NAMESPACE or NAMESPACE/POD`},
		"TokenInTheClear": {[]string{"get", "holds", "--kubeconfig", g.Kubeconfig, "--diagnostics", "http://hookgate:8443", "--token", "x"}, cmdline.ExitUsage, "need TLS"},
	} {
		t.Run(name, func(t *testing.T) {
			got := commandtest.Hookgate(t, "", tt.args...)
			if got.Code != tt.code || !strings.Contains(got.Out+got.ErrOut, tt.want) {
				t.Errorf("exit status %d, want %d; want %q\n%s%s", got.Code, tt.code, tt.want, got.Out, got.ErrOut)
			}
		})
	}
}
