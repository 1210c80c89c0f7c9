// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"crypto/tls"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/internal/contract/codec"
	"github.com/hookgate/hookgate/internal/network/endpoint"
)

// A client that runs for long takes a renewed token, and keeps the one that it has while the file cannot be used.
func TestRenewed(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	write := func(token string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(token), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("one")
	e, err := endpoint.Parse("grpcs://127.0.0.1:1", endpoint.GRPCS)
	if err != nil {
		t.Fatal(err)
	}
	c, err := NewRenewed([]string{"", file}, func() (*Client, error) {
		token, err := os.ReadFile(file)
		if err != nil || len(token) == 0 {
			return nil, errors.New("no token")
		}
		return New(Config{
			Endpoint: e, TLS: &tls.Config{MinVersion: tls.VersionTLS12}, Codec: codec.New(catalog.New()), UserAgent: "test", Token: string(token),
		})
	}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	first := c.current.Load()
	if c.Look(); c.current.Load() != first {
		t.Error("another client for the same files")
	}
	write("")
	if c.Look(); c.current.Load() != first {
		t.Error("another client for a file that cannot be used")
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if c.Look(); c.current.Load() != first {
		t.Error("another client for a file that is missing")
	}
	write("two")
	if c.Look(); c.current.Load() == first || c.current.Load().config.Token != "two" {
		t.Error("the same client for another token")
	}
}
