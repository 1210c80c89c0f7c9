// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hookgate/hookgate/gateway"
	"github.com/hookgate/hookgate/internal/codec"
)

// Mistakes in the flags of hookgate infrastructure end it before it calls anything, with a text that names the flag.
func TestInfrastructureUsage(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{nil, "--gateway is required"},
		{[]string{"--gateway", "https://gateway:9443"}, `--gateway "https://gateway:9443"`},
		{[]string{"--gateway", "grpcs://gateway"}, "--gateway \"grpcs://gateway\": must have a port"},
		{[]string{"--gateway", "grpcs://gateway:9090"}, "--kubeconfig is required"},
		{[]string{"--gateway", "grpcs://gateway:9090", "--kubeconfig", "k", "--max-calls", "0"}, "--max-calls: want more than 0"},
		{[]string{"--gateway", "grpcs://gateway:9090", "--kubeconfig", "k", "--sync-period", "0s"}, "--sync-period: want"},
		{[]string{"--gateway", "grpcs://gateway:9090", "--kubeconfig", "k", "--webhook-port", "65536"}, "--webhook-port: want"},
		{[]string{"--gateway", "grpcs://gateway:9090", "--kubeconfig", "k", "--diagnostics-address", "x"}, "--diagnostics-address"},
	} {
		var out, errOut bytes.Buffer
		code := run(t.Context(), append([]string{"infrastructure"}, c.args...), strings.NewReader(""), &out, &errOut,
			func(string) (string, bool) { return "", false })
		if code != exitUsage || !strings.Contains(errOut.String(), c.want) {
			t.Errorf("%q: exit status %d, %s, want %q", c.args, code, &errOut, c.want)
		}
	}
}

// A client that runs for long takes a renewed token, and keeps the one that it has while the file cannot be used.
func TestRenewedClient(t *testing.T) {
	hooks, _, err := gateway.Hooks(gateway.Infrastructure())
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "token")
	write := func(token string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(token), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("one")
	logger, err := newLogger(&bytes.Buffer{}, "text", "info")
	if err != nil {
		t.Fatal(err)
	}
	c, err := openRenewed(&clientOptions{server: "grpcs://127.0.0.1:1", tokenFile: file, timeout: time.Second},
		codec.New(hooks), logger)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	first := c.current.Load()
	if c.look(); c.current.Load() != first {
		t.Error("another client for the same files")
	}
	write("")
	if c.look(); c.current.Load() != first {
		t.Error("another client for a file that cannot be used")
	}
	write("two")
	if c.look(); c.current.Load() == first {
		t.Error("the same client for another token")
	}
}
