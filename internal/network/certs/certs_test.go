// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"log/slog"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hookgate/hookgate/internal/network/devcert"
	"github.com/hookgate/hookgate/test/certificates"
)

var quiet = slog.New(slog.DiscardHandler)

// newDir returns a directory with a certificate, and the pair in it.
func newDir(t *testing.T) (string, *devcert.Pair) {
	t.Helper()
	dir, pair := t.TempDir(), certificates.New(t)
	if err := pair.WriteDir(dir); err != nil {
		t.Fatal(err)
	}
	return dir, pair
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
		"another key":    {func(t *testing.T, dir string) { write(t, dir, KeyFile, certificates.New(t).KeyPEM) }, "private key does not match public key"},
		"not PEM":        {func(t *testing.T, dir string) { write(t, dir, CertFile, []byte("x")) }, "tls.crt and its key: "},
		"authorities":    {func(t *testing.T, dir string) { write(t, dir, CAFile, certificates.New(t).CAPEM) }, ""},
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
		if err := checkValidity(c, at); err == nil || err.Error() != "is valid only from 2026-01-02T03:04:05Z to 2026-02-03T04:05:06Z: replace it" {
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
	first, second := certificates.New(t), certificates.New(t)
	for _, step := range []struct {
		name    string
		change  func()
		ca      []byte // the CA of client certificates; nil if none are requested
		logged  int
		changed bool
	}{
		{"none", func() {}, nil, 0, false},
		{"added", func() { write(t, dir, CAFile, first.CAPEM) }, first.CAPEM, 0, true},
		{"replaced", func() { write(t, dir, CAFile, second.CAPEM) }, second.CAPEM, 0, true},
		{"half written", func() { write(t, dir, CAFile, second.CAPEM[:100]) }, second.CAPEM, 1, false},
		{"emptied", func() { write(t, dir, CAFile, nil) }, second.CAPEM, 0, false}, // the same error again
		{"removed", func() { remove(t, dir, CAFile) }, second.CAPEM, 1, false},
		{"a pipe", func() { pipe(t, dir, CAFile) }, second.CAPEM, 1, false},
		{"there again", func() { remove(t, dir, CAFile); write(t, dir, CAFile, first.CAPEM) }, first.CAPEM, 0, true},
	} {
		step.change()
		log.Reset()
		s.Reload()
		s.Reload() // the second time says the same
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
		if logged := strings.Count(log.String(), "reload certificate authorities of callers"); logged != step.logged {
			t.Errorf("%s: logged %d times: %s", step.name, logged, log.String())
		}
		select {
		case <-s.Changed():
			if !step.changed {
				t.Errorf("%s: connections are to end, and the authorities are the same", step.name)
			}
		default:
			if step.changed {
				t.Errorf("%s: connections under other authorities stay", step.name)
			}
		}
	}
}

// pipe makes a pipe that has no writer: to open it blocks.
func pipe(t *testing.T, dir, name string) {
	t.Helper()
	remove(t, dir, name)
	if err := syscall.Mkfifo(filepath.Join(dir, name), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestCertificateFollowsItsFiles holds that a replaced certificate is shown, and that one that cannot be used, be it
// that it has expired, changes nothing and is reported once it is certain.
func TestCertificateFollowsItsFiles(t *testing.T) {
	dir, first := newDir(t)
	var log bytes.Buffer
	p, err := OpenDir(dir, CertFile, KeyFile, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	second := certificates.New(t)
	expired := expiredPair(t)
	for _, step := range []struct {
		name    string
		change  func()
		want    *devcert.Pair
		logged  string // nothing if empty
		warning string
	}{
		{"nothing", func() {}, first, "", ""},
		{"replaced", func() { writePair(t, dir, second) }, second, "certificate replaced", ""},
		{"expired", func() { writePair(t, dir, expired) }, second, "certificate refused", "its replacement is refused"},
		{"still expired", func() {}, second, "", "its replacement is refused"},
		{"another key", func() { write(t, dir, CertFile, first.CertPEM) }, second, "certificate refused", "its replacement is refused"},
		{"a pipe", func() { pipe(t, dir, KeyFile) }, second, "certificate refused", "not a regular file"},
		{"good again", func() { remove(t, dir, KeyFile); writePair(t, dir, first) }, first, "certificate replaced", ""},
	} {
		step.change()
		log.Reset()
		p.look()
		if step.want == second && step.logged == "certificate refused" && log.Len() > 0 {
			t.Errorf("%s: logged at the first look, which may see files that are being written: %s", step.name, log.String())
		}
		p.look()
		p.look()
		if lines := strings.Count(log.String(), "\n"); (step.logged == "") != (lines == 0) || lines > 1 ||
			!strings.Contains(log.String(), step.logged) {
			t.Errorf("%s: logged %q, want %q once", step.name, log.String(), step.logged)
		}
		want, err := step.want.Certificate()
		if err != nil {
			t.Fatal(err)
		}
		if got, _ := p.Certificate(); !bytes.Equal(got.Certificate[0], want.Certificate[0]) {
			t.Errorf("%s: another certificate is shown", step.name)
		}
		if got := p.Warning(time.Now()); (step.warning == "") != (got == "") || !strings.Contains(got, step.warning) {
			t.Errorf("%s: warning %q, want %q", step.name, got, step.warning)
		}
	}
}

func writePair(t *testing.T, dir string, pair *devcert.Pair) {
	t.Helper()
	if err := pair.WriteDir(dir); err != nil {
		t.Fatal(err)
	}
}

// expiredPair returns a certificate that was valid until an hour ago.
func expiredPair(t *testing.T) *devcert.Pair {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-2 * time.Hour), NotAfter: time.Now().Add(-time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return &devcert.Pair{
		CertPEM: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		KeyPEM:  pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}),
	}
}

// TestWarningOfACertificateNearItsEnd holds that the last fifth of a lifetime is near the end, and no more than 30
// days.
func TestWarningOfACertificateNearItsEnd(t *testing.T) {
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	day := 24 * time.Hour
	for _, tt := range []struct {
		lifetime, age time.Duration
		want          string
	}{
		{10 * day, 8 * day, ""},
		{10 * day, 8*day + 1, "expires at 2026-01-11T00:00:00Z: replace it"},
		{365 * day, 335 * day, ""},
		{365 * day, 335*day + 1, "expires at 2027-01-01T00:00:00Z: replace it"},
		{10 * day, 10 * day, "expires at 2026-01-11T00:00:00Z: replace it"},
		{10 * day, 10*day + 1, "expired at 2026-01-11T00:00:00Z: replace it"},
	} {
		p := &Pair{}
		p.current.Store(&loaded{certificate: tls.Certificate{
			Leaf: &x509.Certificate{NotBefore: begin, NotAfter: begin.Add(tt.lifetime)},
		}})
		if got := p.Warning(begin.Add(tt.age)); got != tt.want {
			t.Errorf("%s old of %s: %q, want %q", tt.age, tt.lifetime, got, tt.want)
		}
	}
}

// TestRunLooks holds that the files are looked at without an event.
func TestRunLooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir, _ := newDir(t)
		s, err := OpenServer(dir, Settings{}, quiet)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- s.Run(ctx) }()
		write(t, dir, CAFile, certificates.New(t).CAPEM)
		<-s.Changed()
		if !s.AsksForCertificates() {
			t.Error("callers need no certificate")
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
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
		for _, config := range []*tls.Config{s.TLS(), s.current.Load().required} {
			if config.MinVersion != tt.want.MinVersion || !slices.Equal(config.CipherSuites, tt.want.CipherSuites) || !slices.Equal(config.NextProtos, []string{"h2", "http/1.1"}) {
				t.Errorf("%+v: got %x, %x, %v", tt.have, config.MinVersion, config.CipherSuites, config.NextProtos)
			}
		}
	}
}

// TestAuthoritiesOfCallersThatEnd checks what is said of the authorities in CAFile: of several, one that has expired.
func TestAuthoritiesOfCallersThatEnd(t *testing.T) {
	dir, _ := newDir(t)
	s, err := OpenServer(dir, Settings{}, quiet)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	if !s.AuthoritiesNotAfter().IsZero() || s.AuthoritiesWarning(now) != "" {
		t.Errorf("without authorities: %s, %q", s.AuthoritiesNotAfter(), s.AuthoritiesWarning(now))
	}
	old := expiredPair(t)
	write(t, dir, CAFile, slices.Concat(certificates.New(t).CAPEM, old.CertPEM))
	s.Reload()
	at := Bundle(old.CertPEM)[0].NotAfter
	want := "of the authorities of callers, no subject expired " + at.Format(time.RFC3339) +
		": give callers certificates of another authority, and remove this one"
	if got := s.AuthoritiesWarning(now); got != want || !s.AuthoritiesNotAfter().Equal(at) {
		t.Errorf("until %s: %q, want %q", s.AuthoritiesNotAfter(), got, want)
	}
}

func TestCertificatesNearTheirEnd(t *testing.T) {
	now, day := time.Now(), 24*time.Hour
	for _, tt := range []struct {
		lifetime, left time.Duration
		near           bool
	}{
		{365 * day, 31 * day, false}, {365 * day, 29 * day, true}, {30 * day, 30 * day, false},
		{30 * day, 6*day + time.Hour, false}, {30 * day, 5 * day, true},
		{10 * day, 3 * day, false}, {10 * day, day, true}, {day, 6 * time.Hour, false}, {day, -1, true},
	} {
		e := Expiry{NotBefore: now.Add(tt.left - tt.lifetime), NotAfter: now.Add(tt.left)}
		if e.Near(now) != tt.near {
			t.Errorf("%s left of %s: %t", tt.left, tt.lifetime, e.Near(now))
		}
	}
	if (Expiry{}).Near(now) {
		t.Error("no certificate is near its end")
	}
	if got := Bundle([]byte("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n" + string(certificates.New(t).CAPEM))); len(got) != 1 {
		t.Errorf("a bundle with one that cannot be read: %v", got)
	}
}
