// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hookgate/hookgate/devcert"
)

var quiet = slog.New(slog.DiscardHandler)

// newDir returns a directory with a certificate, and the pair in it.
func newDir(t *testing.T) (string, *devcert.Pair) {
	t.Helper()
	dir, pair := t.TempDir(), newPair(t)
	if err := pair.WriteDir(dir); err != nil {
		t.Fatal(err)
	}
	return dir, pair
}

func newPair(t *testing.T) *devcert.Pair {
	t.Helper()
	pair, err := devcert.New(time.Now().Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	return pair
}

func write(t *testing.T, dir, name string, data []byte) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestOpenServerRefusesWhatItCannotServeWith(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(t *testing.T, dir string)
		want   string // empty if it can be served with
	}{
		"good":           {func(*testing.T, string) {}, ""},
		"no directory":   {func(t *testing.T, dir string) { remove(t, dir) }, "no such file or directory"},
		"no certificate": {func(t *testing.T, dir string) { remove(t, dir, CertFile) }, "tls.crt is missing: the directory needs tls.crt and tls.key in PEM"},
		"no key":         {func(t *testing.T, dir string) { remove(t, dir, KeyFile) }, "tls.key is missing: the directory needs tls.crt and tls.key in PEM"},
		"another key":    {func(t *testing.T, dir string) { write(t, dir, KeyFile, newPair(t).KeyPEM) }, "private key does not match public key"},
		"not PEM":        {func(t *testing.T, dir string) { write(t, dir, CertFile, []byte("x")) }, "tls.crt and its key: "},
		"authorities":    {func(t *testing.T, dir string) { write(t, dir, CAFile, newPair(t).CAPEM) }, ""},
		"no authorities": {func(t *testing.T, dir string) { write(t, dir, CAFile, nil) }, "ca.crt has no certificate in PEM"},
		"a directory in their place": {func(t *testing.T, dir string) {
			if err := os.Mkdir(filepath.Join(dir, CAFile), 0o700); err != nil {
				t.Fatal(err)
			}
		}, "read certificate authorities of callers: "},
	} {
		dir, _ := newDir(t)
		tt.change(t, dir)
		_, err := OpenServer(dir, Settings{}, quiet)
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s: got %v, want %q", name, err, tt.want)
		}
	}
}

func remove(t *testing.T, dir string, files ...string) {
	t.Helper()
	if err := os.RemoveAll(filepath.Join(append([]string{dir}, files...)...)); err != nil {
		t.Fatal(err)
	}
}

func TestCertificatesAreValidToTheirLastSecond(t *testing.T) {
	begin, end := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), time.Date(2026, 2, 3, 4, 5, 6, 0, time.UTC)
	c := &x509.Certificate{NotBefore: begin, NotAfter: end}
	for _, at := range []time.Time{begin, end} {
		if err := checkValidity(c, at); err != nil {
			t.Errorf("at %s: %v", at, err)
		}
	}
	for _, at := range []time.Time{begin.Add(-1), end.Add(1)} {
		if err := checkValidity(c, at); err == nil || err.Error() != "is valid from 2026-01-02T03:04:05Z to 2026-02-03T04:05:06Z only: replace it" {
			t.Errorf("at %s: %v", at, err)
		}
	}
}

// TestAuthoritiesFollowTheirFile holds that a connection is asked for a certificate as CAFile says at that time, and
// that a file that becomes invalid or disappears admits no client that was refused before.
func TestAuthoritiesFollowTheirFile(t *testing.T) {
	dir, _ := newDir(t)
	var log bytes.Buffer
	s, err := OpenServer(dir, Settings{}, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	first, second := newPair(t), newPair(t)
	for _, step := range []struct {
		name   string
		change func()
		ca     []byte // the CA of client certificates; nil if none are requested
		logged bool
	}{
		{"none", func() {}, nil, false},
		{"added", func() { write(t, dir, CAFile, first.CAPEM) }, first.CAPEM, false},
		{"replaced", func() { write(t, dir, CAFile, second.CAPEM) }, second.CAPEM, false},
		{"half written", func() { write(t, dir, CAFile, second.CAPEM[:100]) }, second.CAPEM, true},
		{"emptied", func() { write(t, dir, CAFile, nil) }, second.CAPEM, true},
		{"removed", func() { remove(t, dir, CAFile) }, second.CAPEM, true},
		{"there again", func() { write(t, dir, CAFile, first.CAPEM) }, first.CAPEM, false},
	} {
		step.change()
		if _, err := s.TLS().GetConfigForClient(nil); err != nil { // the second time says the same
			t.Fatal(err)
		}
		log.Reset()
		config, err := s.TLS().GetConfigForClient(nil)
		if err != nil {
			t.Fatal(err)
		}
		want, asked := tls.NoClientCert, s.AsksForCertificates()
		if step.ca != nil {
			want = tls.RequireAndVerifyClientCert
			pool := x509.NewCertPool()
			pool.AppendCertsFromPEM(step.ca)
			if !config.ClientCAs.Equal(pool) {
				t.Errorf("%s: another authority is trusted", step.name)
			}
		}
		if config.ClientAuth != want || asked != (step.ca != nil) {
			t.Errorf("%s: client auth %v, asks: %v, want %v", step.name, config.ClientAuth, asked, want)
		}
		if logged := strings.Contains(log.String(), "reload certificate authorities of callers"); logged != step.logged {
			t.Errorf("%s: logged: %v: %s", step.name, logged, log.String())
		}
	}
}

// TestReplacedCertificateIsShown holds that Run reads a certificate again, and keeps it when the files turn bad.
func TestReplacedCertificateIsShown(t *testing.T) {
	dir, _ := newDir(t)
	p, err := OpenDir(dir, CertFile, KeyFile)
	if err != nil {
		t.Fatal(err)
	}
	p.watcher.WithWatchInterval(10 * time.Millisecond) // the first change may come before the files are watched
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- p.Run(ctx) }()
	next := newPair(t)
	if err := next.WriteDir(dir); err != nil {
		t.Fatal(err)
	}
	want, err := next.Certificate()
	if err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		got, err := p.Certificate()
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Equal(got.Certificate[0], want.Certificate[0]) {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the new certificate is not shown")
		}
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestSettingsReachTheServer(t *testing.T) {
	dir, _ := newDir(t)
	suites := []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256}
	for _, tt := range []struct{ have, want Settings }{
		{Settings{}, Settings{MinVersion: tls.VersionTLS12}},
		{Settings{MinVersion: tls.VersionTLS13}, Settings{MinVersion: tls.VersionTLS13}},
		{Settings{MinVersion: tls.VersionTLS12, CipherSuites: suites}, Settings{MinVersion: tls.VersionTLS12, CipherSuites: suites}},
	} {
		s, err := OpenServer(dir, tt.have, quiet)
		if err != nil {
			t.Fatal(err)
		}
		for _, config := range []*tls.Config{s.TLS(), mustCurrent(t, s)} {
			if config.MinVersion != tt.want.MinVersion || !slices.Equal(config.CipherSuites, tt.want.CipherSuites) || !slices.Equal(config.NextProtos, []string{"h2", "http/1.1"}) {
				t.Errorf("%+v: got %x, %x, %v", tt.have, config.MinVersion, config.CipherSuites, config.NextProtos)
			}
		}
	}
}

func mustCurrent(t *testing.T, s *Server) *tls.Config {
	t.Helper()
	config, _, err := s.current()
	if err != nil {
		t.Fatal(err)
	}
	return config
}
