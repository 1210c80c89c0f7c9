// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"encoding/base64"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hookgate/hookgate/command/internal/commandtest"
	"github.com/hookgate/hookgate/internal/cli/cmdline"
)

// TestChainsAreHandlers calls and checks chains of a gateway as any handler. Of a hook of which Cluster API takes one,
// discovery offers the chain in place of its steps, and else beside them.
func TestChainsAreHandlers(t *testing.T) {
	var mu sync.Mutex
	var called []string
	const prefix = "/hooks.runtime.cluster.x-k8s.io/v1alpha1/"
	answers := map[string]string{
		"discovery": `{"status":"Success","handlers":[` + strings.Join([]string{
			commandtest.Offer("a", "GeneratePatches"), commandtest.Offer("b", "GeneratePatches"), commandtest.Offer("u", "UpdateMachine"),
		}, ",") + `]}`,
		"generatepatches/a": `{"status":"Success","items":[]}`,
		"generatepatches/b": `{"status":"Success","items":[]}`,
		"updatemachine/u":   `{"status":"Success","message":"","retryAfterSeconds":0}`,
	}
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := strings.TrimPrefix(r.URL.Path, prefix)
		_, _ = io.Copy(io.Discard, r.Body)
		if strings.HasPrefix(name, "generatepatches/") {
			mu.Lock()
			called = append(called, name)
			mu.Unlock()
		}
		_, _ = io.WriteString(w, answers[name])
	}))
	t.Cleanup(server.Close)
	ca := base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
	g := commandtest.NewClusterGateway(t, "apiVersion: runtime.cluster.x-k8s.io/v1beta2\nkind: ExtensionConfig\nmetadata: {name: acme}\nspec: {clientConfig: {url: \""+
		server.URL+"\", caBundle: "+ca+"}}\n---\n"+commandtest.LintChain("patches", "GeneratePatches", "b.acme", "a.acme")+"---\n"+commandtest.LintChain("updates", "UpdateMachine", "u.acme"))

	got := commandtest.Hookgate(t, "", "get", "handlers", "--server", "https://127.0.0.1:9443", "--kubeconfig", g.Kubeconfig, "--ca", g.CA)
	var offered []string
	for _, row := range commandtest.Columns(got.Out) {
		if !strings.HasPrefix(row[0], "before") && !strings.HasPrefix(row[0], "after") {
			offered = append(offered, strings.Join(row, " "))
		}
	}
	if diff := cmp.Diff([]string{
		"OFFERED AS HOOK CALLER TIMEOUT FAILURE POLICY", "a--acme GeneratePatches 11s Fail", "b--acme GeneratePatches 11s Fail", "patches GeneratePatches 21s Fail",
		"updates UpdateMachine 11s Fail",
	}, offered); diff != "" {
		t.Errorf("exit status %d, %s; offered (-want +got):\n%s", got.Code, got.ErrOut, diff)
	}

	got = commandtest.Hookgate(t, "", "call", "GeneratePatches", "--handler", "patches", "--kubeconfig", g.Kubeconfig, "--ca", g.CA,
		"-f", filepath.Join("..", "examples", "requests", "generate-patches.yaml"))
	mu.Lock()
	if got.Code != cmdline.ExitDone || !strings.Contains(got.Out, "patches") || !cmp.Equal(called, []string{"generatepatches/b", "generatepatches/a"}) {
		t.Errorf("called %v: %+v", called, got)
	}
	mu.Unlock()
	got = commandtest.Hookgate(t, "", "check", "https://"+g.Ports["9443"], "--ca", g.CA)
	if got.Code != cmdline.ExitDone || !strings.Contains(got.Out, " 0 failed") {
		t.Errorf("exit status %d: %s%s", got.Code, got.Out, got.ErrOut)
	}
	rows := commandtest.Columns(commandtest.Hookgate(t, "", "get", "chains", "--diagnostics", "http://"+g.Address).Out)
	if diff := cmp.Diff([][]string{
		{"NAME", "HOOK", "READY", "REASON", "STEPS"}, {"patches", "GeneratePatches", "True", "Ready", "2"}, {"updates", "UpdateMachine", "True", "Ready", "1"},
	}, rows); diff != "" {
		t.Errorf("chains (-want +got):\n%s", diff)
	}
}
