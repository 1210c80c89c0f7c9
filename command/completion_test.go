// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"net"
	"slices"
	"testing"
	"time"

	"github.com/hookgate/hookgate/command/internal/commandtest"
	"github.com/hookgate/hookgate/internal/cli/cmdline"
	"github.com/hookgate/hookgate/internal/cli/target"
	"github.com/hookgate/hookgate/test/process"
)

func TestCompletion(t *testing.T) {
	before := cmdline.CompletionTimeout
	t.Cleanup(func() { cmdline.CompletionTimeout = before })
	cmdline.CompletionTimeout = process.Patience // a busy machine answers later than a person would wait
	s := commandtest.ServeStatus(t, commandtest.GatewayStatus)
	f := commandtest.NewFakeServer(t, map[string]commandtest.FakeReply{"Discovery": {Body: discoveryBody}})
	g := commandtest.NewClusterGateway(t, commandtest.AcmeManifest)
	for name, tt := range map[string]struct {
		args []string
		want []string
	}{
		"Hooks":           {[]string{"call", "beforecl"}, []string{"BeforeClusterCreate", "BeforeClusterDelete", "BeforeClusterUpgrade"}},
		"NoSecondHook":    {[]string{"call", "Discovery", ""}, nil},
		"Handlers":        {[]string{"call", "--server", f.HTTP.URL, "--ca", f.CAFile, "--handler", ""}, []string{"before.acme", "patch.acme"}},
		"HandlersOfAHook": {[]string{"call", "GeneratePatches", "--server", f.HTTP.URL, "--ca", f.CAFile, "--handler", ""}, []string{"patch.acme"}},
		"Extensions":      {[]string{"describe", "--diagnostics", s.URL, "a"}, []string{"acme"}},
		"Clusters":        {[]string{"get", "holds", "--diagnostics", s.URL, ""}, []string{"c"}},
		"InACluster":      {[]string{"describe", "--kubeconfig", g.Kubeconfig, ""}, []string{"acme"}},
		"Contexts":        {[]string{"describe", "--kubeconfig", g.Kubeconfig, "--context", ""}, []string{"management", "other"}},
		"ContextsOf":      {[]string{"preflight", "--kubeconfig", g.Kubeconfig, "--context", "o"}, []string{"other"}},
		"NoContexts":      {[]string{"describe", "--kubeconfig", "none", "--context", ""}, nil},
		"Checks":          {[]string{"check", "--only", "patches.sc"}, []string{"patches.scope"}},
		"Families":        {[]string{"check", "--skip", "determinis"}, nil},
		"Formats":         {[]string{"get", "extensions", "-o", "n"}, []string{"name"}},
		"Unreachable":     {[]string{"describe", "--diagnostics", "http://127.0.0.1:1", ""}, nil},
		"NoCluster":       {[]string{"describe", "--context", "none", "--kubeconfig", "none", ""}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			got := commandtest.Completions(t, tt.args...)
			if name == "Families" {
				if !slices.Contains(got, "determinism") {
					t.Errorf("got %v, want determinism among them", got)
				}
				return
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}

// TestHandlersOfTheDefaultGateway completes --handler without flags that say where to ask: with the names of a gateway on
// this machine, those that it offers among them, and without one with nothing.
func TestHandlersOfTheDefaultGateway(t *testing.T) {
	before, address := cmdline.CompletionTimeout, target.DefaultDiagnostics
	t.Cleanup(func() { cmdline.CompletionTimeout, target.DefaultDiagnostics = before, address })
	cmdline.CompletionTimeout = process.Patience
	target.DefaultDiagnostics = commandtest.ServeStatus(t, commandtest.ChainsStatus).URL
	for _, tt := range []struct {
		args []string
		want []string
	}{
		{[]string{"call", "BeforeClusterUpgrade"}, []string{"beforeclusterupgrade", "gate.acme", "gates"}},
		{[]string{"explain", "beforeclusterupgrade"}, []string{"beforeclusterupgrade", "gate.acme", "gates"}},
		{[]string{"call", "CanUpdateMachineSet"}, []string{"updates-of-machines"}},
	} {
		if got := commandtest.Completions(t, append(tt.args, "--handler", "")...); !slices.Equal(got, tt.want) {
			t.Errorf("%v: got %v, want %v", tt.args, got, tt.want)
		}
	}
	target.DefaultDiagnostics = "http://127.0.0.1:1"
	if got := commandtest.Completions(t, "call", "BeforeClusterUpgrade", "--server", "https://127.0.0.1:1", "--handler", ""); len(got) > 0 {
		t.Errorf("without a gateway: %v", got)
	}
}

// TestCompletionDoesNotHang completes with the names of a gateway that never answers.
func TestCompletionDoesNotHang(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0") // whose connections nothing accepts
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	began := time.Now()
	if got := commandtest.Completions(t, "describe", "--diagnostics", "http://"+l.Addr().String(), ""); len(got) > 0 {
		t.Errorf("got %v", got)
	}
	// Without a limit, it would wait for as long as hookgate may take at all in a test.
	if took := time.Since(began); took < cmdline.CompletionTimeout || took > commandtest.ProgramPatience/2 {
		t.Errorf("took %s, want %s", took, cmdline.CompletionTimeout)
	}
}

const discoveryBody = `{"apiVersion":"hooks.runtime.cluster.x-k8s.io/v1alpha1","kind":"DiscoveryResponse","status":"Success","handlers":[` +
	`{"name":"patch.acme","requestHook":{"apiVersion":"hooks.runtime.cluster.x-k8s.io/v1alpha1","hook":"GeneratePatches"}},` +
	`{"name":"before.acme","requestHook":{"apiVersion":"hooks.runtime.cluster.x-k8s.io/v1alpha1","hook":"BeforeClusterCreate"}}]}`
