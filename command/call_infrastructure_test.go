// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/hookgate/hookgate/command/internal/commandtest"
	"github.com/hookgate/hookgate/internal/cli/cmdline"
	"github.com/hookgate/hookgate/internal/network/devcert"
	"github.com/hookgate/hookgate/test/certificates"
	"github.com/hookgate/hookgate/test/process"
)

// newCloud returns the URL of a cloud for the example of an infrastructure provider. What it makes runs at once, and
// what it deletes is gone at once.
func newCloud(t *testing.T) string {
	t.Helper()
	var mu sync.Mutex
	things := map[string]bool{} // by path
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		switch {
		case r.Method == http.MethodPut:
			things[r.URL.Path] = true
		case !things[r.URL.Path]:
			w.WriteHeader(http.StatusNotFound)
			_, _ = w.Write([]byte(`{"reason":"NotFound","message":"there is none"}`))
			return
		case r.Method == http.MethodDelete:
			delete(things, r.URL.Path)
			return
		}
		_ = json.NewEncoder(w).Encode(map[string]any{
			"state": "running", "providerID": "fake:/" + r.URL.Path, "endpoint": map[string]any{"host": "10.0.0.1", "port": 6443},
		})
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// startProvider starts the example of an infrastructure provider in Go, and returns its URL and the file of its CA.
func startProvider(t *testing.T) (url, ca string) {
	t.Helper()
	program, certs := filepath.Join(t.TempDir(), "provider"), t.TempDir()
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, "../examples/infrastructure/go")
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	certificates.In(t, certs)
	cmd := exec.CommandContext(t.Context(), program, "127.0.0.1:0", certs)
	cmd.Env = append(os.Environ(), "CLOUD_URL="+newCloud(t))
	address := process.Run(t, "provider", cmd).Expect(t, `listening on ([^"\n]+)`)
	return "grpcs://" + address[1], filepath.Join(certs, devcert.CAFile)
}

// TestCallInfrastructureWithTheSamples sends the sample of every hook of infrastructure to an example that has them, in
// the order in which they are meant.
func TestCallInfrastructureWithTheSamples(t *testing.T) {
	url, ca := startProvider(t)
	const requests = "../examples/requests"
	sent := map[string]bool{}
	for _, c := range []struct {
		sample, handler string
		want            []string
	}{
		{"discover-infrastructure", "", []string{`"providerIdPrefix": "fake://"`, `"hook": "ReconcileMachine"`}},
		{"delete-machine", "delete-machine", []string{`"state": "Gone"`}}, // what never was
		{"reconcile-cluster", "reconcile-cluster", []string{`"phase": "Ready"`, `"host": "10.0.0.1"`}},
		{"reconcile-machine", "reconcile-machine", []string{`"phase": "Ready"`, `"providerId": "fake://machines/hg-m-41"`}},
		{"reconcile-machine", "reconcile-machine", []string{`"phase": "Ready"`, `"providerId": "fake://machines/hg-m-41"`}},
		{"delete-machine", "delete-machine", []string{`"state": "Deleting"`}},
		{"delete-machine", "delete-machine", []string{`"state": "Gone"`}},
		{"delete-cluster", "delete-cluster", []string{`"state": "Deleting"`}},
		{"delete-cluster", "delete-cluster", []string{`"state": "Gone"`}},
		// The example has no hooks for pools, and the sample is no mistake of the caller.
		{"reconcile-machine-pool", "", nil},
		{"delete-machine-pool", "", nil},
	} {
		sent[c.sample] = true
		args := []string{
			"call", strings.ReplaceAll(c.sample, "-", ""), "--server", url, "--ca", ca, "-o", "json",
			"-f", filepath.Join(requests, c.sample+".yaml"),
		}
		if c.handler != "" {
			args = append(args, "--handler", c.handler)
		}
		got := commandtest.Hookgate(t, "", args...)
		if c.want == nil {
			if got.Code == cmdline.ExitDone || !strings.Contains(got.Out+got.ErrOut, "Unimplemented") {
				t.Errorf("%s: exit status %d, %s%s, want Unimplemented", c.sample, got.Code, got.Out, got.ErrOut)
			}
			continue
		}
		if got.Code != cmdline.ExitDone {
			t.Fatalf("%s: exit status %d: %s%s", c.sample, got.Code, got.Out, got.ErrOut)
		}
		for _, want := range c.want {
			if !strings.Contains(got.Out, want) {
				t.Errorf("%s: got %s, want %s", c.sample, got.Out, want)
			}
		}
	}
	files, err := filepath.Glob(filepath.Join(requests, "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimSuffix(filepath.Base(file), ".yaml")
		if strings.Contains(string(text), "\napiVersion: infrastructure.hookgate.dev/") && !sent[name] {
			t.Errorf("%s is not sent", file)
		}
	}
}

// TestCallRefusesWhatTheControllersRefuse sends parameters that do not match the schema of the extension. Machines that
// exist can be deleted whatever their parameters are.
func TestCallRefusesWhatTheControllersRefuse(t *testing.T) {
	url, ca := startProvider(t)
	for _, c := range []struct{ hook, handler, parameters, want string }{
		{"ReconcileMachine", "reconcile-machine", "{size: huge}",
			`call ReconcileMachine: the controllers would not send these parameters: subject.parameters.size: Unsupported value: "huge"`},
		{"ReconcileMachine", "reconcile-machine", "{colour: red}", "subject.parameters.colour: Forbidden: is not a member that the extension knows"},
		{"ReconcileCluster", "reconcile-cluster", "{region: north}", "subject.parameters.region: Forbidden: is not a member that the extension knows"},
		{"DeleteMachine", "delete-machine", "{size: huge}", ""},
	} {
		request := "{subject: {externalId: m, clusterExternalId: c, namespace: default, name: m, clusterName: c, parameters: " +
			c.parameters + "}}"
		got := commandtest.Hookgate(t, request, "call", c.hook, "--handler", c.handler, "--server", url, "--ca", ca, "-f", "-")
		if c.want == "" && got.Code != cmdline.ExitDone || c.want != "" && (got.Code != cmdline.ExitFailed || !strings.Contains(got.ErrOut, c.want)) {
			t.Errorf("%s with %s: exit status %d, %s, want %q", c.hook, c.parameters, got.Code, got.ErrOut, c.want)
		}
	}
}
