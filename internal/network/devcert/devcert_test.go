// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package devcert_test

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hookgate/hookgate/internal/network/devcert"
)

func newPair(t *testing.T, hosts ...string) *devcert.Pair {
	t.Helper()
	pair, err := devcert.New(time.Now().Add(time.Hour), hosts...)
	if err != nil {
		t.Fatal(err)
	}
	return pair
}

func TestServerAndClientTrustEachOther(t *testing.T) {
	pair := newPair(t)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.TLS.PeerCertificates[0].Subject.CommonName)
	}))
	var err error
	if server.TLS, err = pair.ServerTLS(); err != nil {
		t.Fatal(err)
	}
	server.TLS.ClientAuth = tls.RequireAndVerifyClientCert
	server.TLS.ClientCAs = pair.ClientTLS().RootCAs
	server.StartTLS()
	defer server.Close()

	config := pair.ClientTLS()
	if config.Certificates, err = certificates(pair); err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: config}}
	defer client.CloseIdleConnections()
	resp, err := client.Get(server.URL)
	if err != nil {
		t.Fatalf("a client that trusts the CA was refused: %v", err)
	}
	body, err := io.ReadAll(resp.Body)
	if closeErr := resp.Body.Close(); err != nil || closeErr != nil {
		t.Fatal(err, closeErr)
	}
	if string(body) != "localhost" {
		t.Errorf("the server saw the client certificate %q, want localhost", body)
	}

	// Another CA is not trusted: the CA of each pair is its own.
	stranger := &http.Client{Transport: &http.Transport{TLSClientConfig: newPair(t).ClientTLS()}}
	resp, err = stranger.Get(server.URL)
	if err == nil {
		_ = resp.Body.Close()
	}
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); !ok {
		t.Errorf("a client with another CA got %v, want an unknown authority", err)
	}
}

func certificates(pair *devcert.Pair) ([]tls.Certificate, error) {
	cert, err := tls.X509KeyPair(pair.CertPEM, pair.KeyPEM)
	return []tls.Certificate{cert}, err
}

func TestHosts(t *testing.T) {
	pair := newPair(t, "gateway.example.com", "192.0.2.7")
	certs, err := certificates(pair)
	if err != nil {
		t.Fatal(err)
	}
	for _, host := range []string{"127.0.0.1", "::1", "localhost", "gateway.example.com", "192.0.2.7"} {
		if err := certs[0].Leaf.VerifyHostname(host); err != nil {
			t.Errorf("host %s: %v", host, err)
		}
	}
	if err := certs[0].Leaf.VerifyHostname("other.example.com"); err == nil {
		t.Error("the certificate is good for other.example.com, which was not asked for")
	}
	for _, host := range []string{"", "https://a.example.com", "a.example.com:443"} {
		if _, err := devcert.New(time.Now().Add(time.Hour), host); err == nil {
			t.Errorf("host %q was taken", host)
		}
	}
}

func TestNewRefusesThePast(t *testing.T) {
	_, err := devcert.New(time.Date(2020, 1, 2, 3, 4, 5, 0, time.UTC))
	if err == nil || !strings.Contains(err.Error(), "the expiry time 2020-01-02T03:04:05Z is in the past") {
		t.Errorf("got error %v", err)
	}
}

func TestWriteDir(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "certs")
	for range 2 { // the second time over existing files
		pair := newPair(t)
		if err := pair.WriteDir(dir); err != nil {
			t.Fatal(err)
		}
		if _, err := tls.LoadX509KeyPair(filepath.Join(dir, devcert.CertFile), filepath.Join(dir, devcert.KeyFile)); err != nil {
			t.Fatal(err)
		}
		ca, err := os.ReadFile(filepath.Join(dir, devcert.CAFile))
		if err != nil {
			t.Fatal(err)
		}
		if string(ca) != string(pair.CAPEM) {
			t.Error("the CA in the directory is not the pair's")
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	// Nothing temporary stays, and there is no ca.crt, which would make the gateway ask callers for certificates.
	if want := []string{devcert.CAFile, devcert.CertFile, devcert.KeyFile}; !slices.Equal(names, want) {
		t.Errorf("the directory has %v, want %v", names, want)
	}
	info, err := os.Stat(filepath.Join(dir, devcert.KeyFile))
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o600 {
		t.Errorf("the key has mode %v, want only the user to read it", info.Mode())
	}
}

func TestWriteDirSaysWhatIsInTheWay(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := newPair(t).WriteDir(file); err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("got error %v, want one that names %s", err, file)
	}
}
