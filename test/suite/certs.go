// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"crypto/tls"
	"crypto/x509"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/hookgate/hookgate/internal/network/devcert"
	"github.com/hookgate/hookgate/test/certificates"
)

// authority signs the certificates of one test.
type authority struct {
	*devcert.Authority
	pool *x509.CertPool
}

func newAuthority(t testing.TB) *authority {
	t.Helper()
	signer, err := devcert.NewAuthority(time.Now().Add(24 * time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	a := &authority{Authority: signer, pool: x509.NewCertPool()}
	a.pool.AppendCertsFromPEM(a.PEM)
	return a
}

// issue returns a new certificate of a server on loopback.
func (a *authority) issue(t testing.TB, notAfter time.Time) *devcert.Pair {
	t.Helper()
	pair, err := a.Issue(notAfter)
	if err != nil {
		t.Fatal(err)
	}
	return pair
}

// certificate returns a new certificate in the form of crypto/tls, for servers in this process.
func (a *authority) certificate(t testing.TB) tls.Certificate {
	t.Helper()
	return certificates.Of(t, a.issue(t, time.Now().Add(time.Hour)))
}

// dir returns a new directory with tls.crt and tls.key of a server on loopback.
func (a *authority) dir(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	a.write(t, dir, time.Now().Add(time.Hour))
	return dir
}

// write puts a new certificate into dir, and returns it.
func (a *authority) write(t testing.TB, dir string, notAfter time.Time) *devcert.Pair {
	t.Helper()
	pair := a.issue(t, notAfter)
	if err := pair.WriteDir(dir); err != nil {
		t.Fatal(err)
	}
	return pair
}

// writeFile replaces a file in one step, as editors and volume mounts do.
func writeFile(t testing.TB, path string, data []byte) {
	t.Helper()
	temporary := filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".new")
	if err := os.WriteFile(temporary, data, 0o600); err != nil {
		t.Fatalf("write %s: %v", filepath.Base(path), err)
	}
	if err := os.Rename(temporary, path); err != nil {
		t.Fatalf("replace %s: %v", filepath.Base(path), err)
	}
}
