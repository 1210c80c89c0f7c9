// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// authority signs the certificates of one test.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	pem         []byte
	pool        *x509.CertPool
}

func newAuthority(t testing.TB) *authority {
	t.Helper()
	key := newKey(t)
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: "suite authority"},
		NotBefore:             time.Now().Add(-time.Hour),
		NotAfter:              time.Now().Add(24 * time.Hour),
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatalf("create certificate of the authority: %v", err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatalf("parse certificate of the authority: %v", err)
	}
	a := &authority{certificate: certificate, key: key, pem: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pool: x509.NewCertPool()}
	a.pool.AddCert(certificate)
	return a
}

// issue returns certificate and key, in PEM, of a server on loopback.
func (a *authority) issue(t testing.TB, serial int64, notAfter time.Time) (certificate, key []byte) {
	t.Helper()
	serverKey := newKey(t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial),
		Subject:      pkix.Name{CommonName: "suite server"},
		NotBefore:    time.Now().Add(-2 * time.Hour),
		NotAfter:     notAfter,
		DNSNames:     []string{"localhost"},
		IPAddresses:  []net.IP{net.IPv4(127, 0, 0, 1)},
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, serverKey.Public(), a.key)
	if err != nil {
		t.Fatalf("create certificate: %v", err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(serverKey)
	if err != nil {
		t.Fatalf("marshal key: %v", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})
}

// pair is issue as crypto/tls wants it, for servers in this process.
func (a *authority) pair(t testing.TB) tls.Certificate {
	t.Helper()
	certificate, key := a.issue(t, 2, time.Now().Add(time.Hour))
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		t.Fatalf("pair of certificate and key: %v", err)
	}
	return pair
}

// dir returns a new directory with tls.crt and tls.key of a server on loopback.
func (a *authority) dir(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	a.write(t, dir, 2, time.Now().Add(time.Hour))
	return dir
}

// write puts a new certificate into dir, each file in one step.
func (a *authority) write(t testing.TB, dir string, serial int64, notAfter time.Time) {
	t.Helper()
	certificate, key := a.issue(t, serial, notAfter)
	writeFile(t, filepath.Join(dir, "tls.key"), key)
	writeFile(t, filepath.Join(dir, "tls.crt"), certificate)
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

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatalf("generate key: %v", err)
	}
	return key
}
