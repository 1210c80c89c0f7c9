// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/hookgate/hookgate/command/internal/commandtest"
	"github.com/hookgate/hookgate/internal/cli/cmdline"
)

// TestURLs gives the URL of a socket to everything that takes the URL of a server. What speaks gRPC finds that nothing
// listens there; what speaks nothing but HTTP says so. No flag about a URL is left out.
func TestURLs(t *testing.T) {
	socket := "unix://" + filepath.Join(t.TempDir(), "none.sock")
	request := commandtest.WriteFile(t, "request.yaml", commandtest.ACluster)
	manifests := commandtest.ManifestDir(t, "apiVersion: runtime.cluster.x-k8s.io/v1beta2\nkind: ExtensionConfig\nmetadata: {name: acme}\n"+
		"spec: {clientConfig: {url: '"+socket+"'}}\n")
	const refused, web = "there is no such socket", `must begin with http://, https://, not with "unix"`
	ports := []string{"--http-address", "127.0.0.1:0", "--grpc-address", "127.0.0.1:0", "--diagnostics-address", "127.0.0.1:0"}
	tested := map[string]bool{}
	for _, tt := range []struct {
		flag string // of a command; empty where the URL is an argument or in a file
		args []string
		want string
	}{
		{"call --server", []string{"call", "Discovery"}, refused},
		{"get handlers --server", []string{"get", "handlers"}, refused},
		{"replay --server", []string{"replay", "none.jsonl"}, "replay none.jsonl: open none.jsonl"},
		{"explain --server", []string{"explain", "BeforeClusterCreate", "-f", request}, "want https://, because a gateway explains calls only over HTTPS"},
		{"", []string{"check", socket}, refused},
		{"", []string{"check", socket, "--only", "tls"}, refused},
		{"", []string{"lint", manifests}, ""},
		{"", []string{"explain", "GeneratePatches", "-f", commandtest.WriteFile(t, "patches.yaml", commandtest.PatchesRequest), "--extension-configs", manifests, "--call"}, refused},
		{"chain test --server", []string{"chain", "test", "none.yaml"}, "none.yaml"},
		{"serve --sidecar", append([]string{"serve", "--dev", "--cert-dir", t.TempDir()}, ports...), ""},
		{"serve --extension", append([]string{"serve", "--dev", "--cert-dir", t.TempDir()}, ports...), ""},
		{"infrastructure --gateway", []string{"infrastructure"}, "--kubeconfig is required outside a Pod"},
		{"get extensions --diagnostics", []string{"get", "extensions"}, web},
		{"record --diagnostics", []string{"record", "acme"}, web},
	} {
		args := tt.args
		if command, flag, _ := strings.Cut(tt.flag, " --"); tt.flag != "" {
			tested[command+" --"+flag] = true
			args = append(args, "--"+flag, socket)
		}
		var got commandtest.Outcome
		if args[0] == "serve" {
			got = commandtest.ServeBriefly(t, nil, args[1:]...)
		} else {
			got = commandtest.Hookgate(t, "", args...)
		}
		if tt.want == "" && got.Code != cmdline.ExitDone || !strings.Contains(got.ErrOut, tt.want) || tt.want != web && strings.Contains(got.ErrOut, "must begin with") {
			t.Errorf("%v: exit status %d, want %q in\n%s", args, got.Code, tt.want, got.ErrOut)
		}
	}
	root, err := newRootCommand(func(*cobra.Command) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	var visit func(*cobra.Command)
	visit = func(cmd *cobra.Command) {
		path := strings.TrimPrefix(cmd.CommandPath(), "hookgate ")
		if path == "render" {
			return // another program reads its flags
		}
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			switch {
			case strings.Contains(f.Usage, "grpc://") && !tested[path+" --"+f.Name]:
				t.Errorf("%s --%s takes a URL, and is not tested here", path, f.Name)
			case strings.Contains(f.Usage, "grpc://") && !strings.Contains(f.Usage, "unix://"):
				t.Errorf("%s --%s does not say that it takes unix://", path, f.Name)
			}
		})
		for _, c := range cmd.Commands() {
			visit(c)
		}
	}
	visit(root)
}
