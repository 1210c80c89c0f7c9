// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
)

// programs builds what the quickstart starts, once.
var programs = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "hookgate-quickstart-")
	if err != nil {
		return "", err
	}
	build := exec.Command("go", "build", "-o", dir+string(filepath.Separator), "../../cmd/hookgate", "../rest-extension")
	build.Stderr = os.Stderr
	build.Env = append(os.Environ(), "CGO_ENABLED=0") // as `make build` does, and so from its cache
	return dir, build.Run()
})

func TestMain(m *testing.M) {
	code := m.Run()
	if dir, err := programs(); dir != "" && err == nil {
		_ = os.RemoveAll(dir)
	}
	os.Exit(code)
}

// arguments are the flags for a run in a directory of its own, at ports that the system chooses.
func arguments(t *testing.T, more ...string) []string {
	t.Helper()
	bin, err := programs()
	if err != nil {
		t.Fatalf("build: %v", err)
	}
	return append([]string{"--hookgate", filepath.Join(bin, "hookgate"), "--extension", filepath.Join(bin, "rest-extension"),
		"--requests", "../requests", "--dir", filepath.Join(t.TempDir(), "dev"), "--ports", "0"}, more...)
}

// TestOnce runs all calls against the real gateway. The quickstart itself checks what they answer.
func TestOnce(t *testing.T) {
	var out, errOut bytes.Buffer
	if code := run(t.Context(), arguments(t, "--once"), &out, &errOut); code != 0 {
		t.Fatalf("exit status %d: %s\n%s", code, errOut.String(), out.String())
	}
	for _, want := range []string{
		"node-image--rest-extension ", // handlers
		`"retryAfterSeconds":30`,      // over HTTPS JSON
		"waits for the annotation example.com/approved-by; ask the platform team", // the settings arrived
		"is approved by zoe@example.com",                                          // over gRPC
		`add /spec/template/spec/customImage "registry.example.com/node:v1.34.0"`,
		"- name: nodeImage\n", // variables
		"error kind UnknownHandler",
		"the handlers of GeneratePatches are node-image--rest-extension (",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the output lacks %q:\n%s", want, out.String())
		}
	}
}

// lockedBuffer can be read while the quickstart writes.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// TestInterrupt checks that everything keeps running until an interrupt, and is gone after it.
func TestInterrupt(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var out, errOut lockedBuffer
	code := make(chan int, 1)
	args := arguments(t)
	go func() { code <- run(ctx, args, &out, &errOut) }()
	deadline := time.Now().Add(5 * time.Minute) // each step has a limit of its own
	for !strings.Contains(out.String(), "Ctrl-C stops") {
		select {
		case c := <-code:
			t.Fatalf("it ended with status %d: %s\n%s", c, errOut.String(), out.String())
		case <-time.After(10 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			t.Fatalf("it never got to the end: %s", out.String())
		}
	}
	metrics := regexp.MustCompile(`http://\S+/metrics`).FindString(out.String())
	response, err := http.Get(metrics)
	if err != nil {
		t.Fatalf("the gateway does not keep running: %v", err)
	}
	_, _ = io.Copy(io.Discard, response.Body)
	_ = response.Body.Close()
	cancel()
	if c := <-code; c != 0 {
		t.Errorf("exit status %d after an interrupt: %s", c, errOut.String())
	}
	if response, err := http.Get(metrics); err == nil {
		_ = response.Body.Close()
		t.Error("the gateway still answers")
	}
}

// TestFailures checks what people see who have another program at the port, or have not built anything.
func TestFailures(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	_, port, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	tests := map[string]struct {
		reason string
		args   []string
		code   int
		want   string
	}{
		"PortTaken": {"says which port and what to do", []string{"--http-address", listener.Addr().String()}, 1,
			"port " + port + ", for HTTPS JSON, is taken by another program"},
		"NotBuilt":   {"says what is missing", []string{"--ports", "0", "--dir", dir, "--extension", "nowhere/rest-extension"}, 1, "there is no nowhere/rest-extension: build it first"},
		"BadAddress": {"names the flag", []string{"--grpc-address", "9090", "--http-address", "127.0.0.1:0"}, 1, "--grpc-address: address 9090: missing port"},
		"BadPorts":   {"says how many ports it needs", []string{"--ports", "65533"}, 1, "want the first of four consecutive ports"},
		"BadFlag":    {"is wrong usage", []string{"--nope"}, 2, "flag provided but not defined: -nope"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var out, errOut bytes.Buffer
			code := run(t.Context(), tt.args, &out, &errOut)
			if code != tt.code || !strings.Contains(errOut.String(), tt.want) {
				t.Errorf("%s: got %d %s\nwant %d %s", tt.reason, code, errOut.String(), tt.code, tt.want)
			}
		})
	}
}

// TestChildDies checks that a program that ends by itself is reported with the end of its log.
func TestChildDies(t *testing.T) {
	args := arguments(t, "--once")
	bin, err := programs()
	if err != nil {
		t.Fatal(err)
	}
	for i, a := range args {
		if a == "--hookgate" {
			args[i+1] = filepath.Join(bin, "rest-extension") // it does not know the command serve
		}
	}
	var out, errOut bytes.Buffer
	code := run(t.Context(), args, &out, &errOut)
	for _, want := range []string{"the gateway does not serve", "the gateway ended by itself (exit status 2). The end of its log, ", "usage: rest-extension"} {
		if code != 1 || !strings.Contains(errOut.String(), want) {
			t.Errorf("got %d %s\nwant %s", code, errOut.String(), want)
		}
	}
}

func TestCommandLine(t *testing.T) {
	got := commandLine("bin/hookgate", []string{"call", "BeforeClusterCreate", "-f", "a file's.yaml", "--server", "https://127.0.0.1:9443", "--ca",
		"out/dev/certs/dev-ca.crt", "--handler", "node-image--rest-extension"})
	const want = `bin/hookgate call BeforeClusterCreate -f 'a file'\''s.yaml' --server https://127.0.0.1:9443 \` + "\n" +
		`    --ca out/dev/certs/dev-ca.crt --handler node-image--rest-extension`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
