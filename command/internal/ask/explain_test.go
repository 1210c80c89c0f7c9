// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package ask_test

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hookgate/hookgate/command/internal/ask"
	"github.com/hookgate/hookgate/command/internal/commandtest"
	"github.com/hookgate/hookgate/gateway"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/cli/cmdline"
	"github.com/hookgate/hookgate/test/certificates"
)

const acmeStatus = `status:
  handlers:
  - {name: image.acme, requestHook: {apiVersion: ` + hook.APIVersion + `, hook: GeneratePatches}, timeoutSeconds: 10, failurePolicy: Fail}
  - {name: proxy.acme, requestHook: {apiVersion: ` + hook.APIVersion + `, hook: GeneratePatches}, timeoutSeconds: 20, failurePolicy: Fail}
  - {name: check.acme, requestHook: {apiVersion: ` + hook.APIVersion + `, hook: BeforeClusterCreate}, timeoutSeconds: 10, failurePolicy: Fail}
`

const blueCluster = `apiVersion: cluster.x-k8s.io/v1beta2
kind: Cluster
metadata: {name: c, namespace: teams, labels: {tier: gold}}
`

// Without a gateway, the handlers are those of the status, and with --call those of the extensions.
func TestExplainDirectory(t *testing.T) {
	known := commandtest.ManifestDir(t, commandtest.ExplainedManifests("https://127.0.0.1:1", certificates.New(t).CAPEM, acmeStatus))
	unknown := commandtest.ManifestDir(t, commandtest.ExplainedManifests("https://127.0.0.1:1", certificates.New(t).CAPEM, ""))
	live := commandtest.ManifestDir(t, commandtest.NewPatcher(t, commandtest.PatchReply(`{"spec":{"image":"a"}}`), commandtest.PatchReply(`{"spec":{"proxy":"b"}}`)))
	cluster, request := commandtest.WriteFile(t, "cluster.yaml", blueCluster), commandtest.WriteFile(t, "request.yaml", commandtest.PatchesRequest)
	audits := commandtest.ManifestDir(t, "apiVersion: hookgate.dev/v1alpha1\nkind: HookRule\nmetadata: {name: small}\n"+
		"spec: {hook: ValidateTopology, action: Audit, validations: [{if: 'true', message: '\"too large\"'}]}\n")
	for name, tt := range map[string]struct {
		args []string
		code int
		want string // of stderr
	}{
		"audits":    {[]string{"ValidateTopology", "-f", request, "--extension-configs", audits, "--call"}, cmdline.ExitDone, ""},
		"lifecycle": {[]string{"BeforeClusterCreate", "-f", cluster, "--extension-configs", known}, cmdline.ExitDone, ""},
		"chain":     {[]string{"GeneratePatches", "-f", cluster, "--extension-configs", known}, cmdline.ExitDone, ""},
		"undiscovered": {
			[]string{"BeforeClusterCreate", "-f", cluster, "--extension-configs", unknown}, cmdline.ExitFailed,
			"hookgate: explain BeforeClusterCreate: the call fails with NotReady\n",
		},
		"called": {[]string{"GeneratePatches", "-f", request, "--extension-configs", live, "--call"}, cmdline.ExitDone,
			"ExtensionConfig \"red\": discover handlers: connection refused\n"},
	} {
		t.Run(name, func(t *testing.T) {
			got := commandtest.Hookgate(t, "", append([]string{"explain"}, tt.args...)...)
			if got.Code != tt.code || got.ErrOut != tt.want {
				t.Errorf("exit status %d, want %d: %q", got.Code, tt.code, got.ErrOut)
			}
			commandtest.Golden(t, "explain/"+name+".table", got.Out)
			for line := range strings.SplitSeq(got.Out, "\n") {
				if len(line) > ask.ExplanationWidth {
					t.Errorf("%d columns: %s", len(line), line)
				}
			}
		})
	}
}

// A gateway explains what it would do, and calls with --call only.
func TestExplainAsksAGateway(t *testing.T) {
	g := commandtest.NewClusterGateway(t, commandtest.NewPatcher(t, commandtest.PatchReply(`{"spec":{"image":"a"}}`), commandtest.PatchReply(`{"metadata":{"name":"ignored"}}`)))
	request := commandtest.WriteFile(t, "request.yaml", commandtest.PatchesRequest)
	args := []string{"explain", "GeneratePatches", "-f", request, "--kubeconfig", g.Kubeconfig, "--ca", g.CA, "-o", "json"}
	for _, called := range []bool{false, true} {
		if called {
			args = append(args, "--call")
		}
		got := commandtest.Hookgate(t, "", args...)
		x := commandtest.DecodeInto(t, got.Out, &gateway.Explanation{})
		if got.Code != cmdline.ExitDone || len(x.Handlers) != 3 || x.Handlers[0].Name != "platform" || len(x.Handlers[0].Steps) != 3 || (x.Answer != nil) != called {
			t.Fatalf("call %t: exit status %d, %s\n%s", called, got.Code, got.ErrOut, got.Out)
		}
		if !called {
			continue
		}
		objects, _ := json.Marshal(x.Answer.Objects)
		if want := `[{"uid":"1","name":"Cluster teams/c spec.x","object":{"apiVersion":"x/v1","kind":"X","spec":{"image":"a"}}}]`; string(objects) != want {
			t.Errorf("after the chain: %s, want %s", objects, want)
		}
	}
}

// A server that does not explain is not called instead.
func TestExplainUsage(t *testing.T) {
	f := commandtest.NewFakeServer(t, map[string]commandtest.FakeReply{"BeforeClusterCreate": {Body: commandtest.Reply("BeforeClusterCreate", `"status":"Success"`)}})
	dir, cluster := commandtest.ManifestDir(t, commandtest.AcmeManifest), commandtest.WriteFile(t, "cluster.yaml", blueCluster)
	for name, tt := range map[string]struct {
		args []string
		code int
		want string
	}{
		"Older":         {[]string{"BeforeClusterCreate", "-f", cluster, "--server", f.HTTP.URL, "--ca", f.CAFile}, cmdline.ExitFailed, "Does the gateway explain calls?"},
		"GRPC":          {[]string{"BeforeClusterCreate", "-f", cluster, "--server", "grpc://" + f.GRPC}, cmdline.ExitUsage, "a gateway explains calls only over HTTPS"},
		"NoHook":        {[]string{"BeforeClusterCreat", "-f", cluster}, cmdline.ExitUsage, `no hook "BeforeClusterCreat", did you mean BeforeClusterCreate?`},
		"NoFile":        {[]string{"BeforeClusterCreate"}, cmdline.ExitUsage, "-f is required: a file with the request of BeforeClusterCreate, or with a Cluster"},
		"Discovery":     {[]string{"Discovery", "-f", cluster}, cmdline.ExitUsage, "Discovery is answered by the gateway itself"},
		"NoCluster":     {[]string{"UpdateMachine", "-f", cluster, "--extension-configs", dir}, cmdline.ExitUsage, "a Cluster is not enough for a request of UpdateMachine: give the request"},
		"CallOfCluster": {[]string{"GeneratePatches", "-f", cluster, "--extension-configs", dir, "--call"}, cmdline.ExitUsage, "handlers of GeneratePatches need a complete request"},
		"Acts":          {[]string{"UpdateMachine", "-f", commandtest.WriteFile(t, "r.yaml", "desired: {machine: {kind: Machine}}\n"), "--extension-configs", dir, "--call"}, cmdline.ExitFailed, "handlers of UpdateMachine have side effects"},
		"Both":          {[]string{"BeforeClusterCreate", "-f", cluster, "--extension-configs", dir, "--server", "https://127.0.0.1:1"}, cmdline.ExitUsage, "--extension-configs reads a directory, and --server asks a gateway: leave out one of the two flags"},
		"NoDirectory":   {[]string{"BeforeClusterCreate", "-f", cluster, "--extension-configs", filepath.Join(dir, "none")}, cmdline.ExitFailed, "read directory"},
		"NotARequest":   {[]string{"BeforeClusterCreate", "-f", commandtest.WriteFile(t, "r.yaml", "kind: X\n"), "--extension-configs", dir}, cmdline.ExitFailed, "it cannot be read as BeforeClusterCreateRequest"},
	} {
		t.Run(name, func(t *testing.T) {
			got := commandtest.Hookgate(t, "", append([]string{"explain"}, tt.args...)...)
			if got.Code != tt.code || !strings.Contains(got.ErrOut, tt.want) {
				t.Errorf("exit status %d, want %d: %q, want %q", got.Code, tt.code, got.ErrOut, tt.want)
			}
		})
	}
	if path, _, _ := f.Asked(); path != "" {
		t.Errorf("%s was called", path)
	}
}
