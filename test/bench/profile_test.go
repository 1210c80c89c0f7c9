// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestFetchProfile(t *testing.T) {
	server := httptest.NewServer(profiled(http.NotFoundHandler()))
	t.Cleanup(server.Close)
	certs, err := newCertificates(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	f := &fleet{certs: certs}
	file := filepath.Join(t.TempDir(), "profile")
	if err := f.fetchProfile(t.Context(), &peer{profiler: server.URL}, file, time.Second); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(file); err != nil || !bytes.HasPrefix(got, []byte{0x1f, 0x8b}) {
		t.Errorf("the profile begins with %.20q, %v, want what gzip writes", got, err)
	}
	if err := f.fetchProfile(t.Context(), &peer{profiler: server.URL + "/elsewhere"}, file, time.Second); err == nil {
		t.Error("an answer of 404 is kept as a profile")
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if err := f.fetchProfile(ended, &peer{profiler: server.URL}, file, time.Second); err == nil {
		t.Error("a profile goes on behind the end of a run")
	}
}
