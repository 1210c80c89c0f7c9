// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
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

// issue writes a certificate for 127.0.0.1 to tls.crt and tls.key in dir, and returns the CA that signed it, in PEM.
// The main module has a package for this, but to require that would raise the versions of Cluster API's modules here.
func issue(t *testing.T, dir string) []byte {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	certificate := func(serial int64, name string) *x509.Certificate {
		return &x509.Certificate{
			SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: name},
			NotBefore: time.Now().Add(-time.Minute), NotAfter: time.Now().Add(24 * time.Hour),
			BasicConstraintsValid: true,
		}
	}
	block := func(kind string, der []byte) []byte { return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}) }

	ca := certificate(1, "Hookgate end-to-end CA")
	ca.IsCA, ca.KeyUsage = true, x509.KeyUsageCertSign
	caKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(err)
	caDER, err := x509.CreateCertificate(rand.Reader, ca, ca, caKey.Public(), caKey)
	must(err)

	server, client := certificate(2, "127.0.0.1"), certificate(3, caller)
	server.ExtKeyUsage, server.IPAddresses = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, []net.IP{net.IPv4(127, 0, 0, 1)}
	client.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	for name, leaf := range map[string]*x509.Certificate{"tls": server, "client": client} {
		leaf.KeyUsage = x509.KeyUsageDigitalSignature
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		must(err)
		der, err := x509.CreateCertificate(rand.Reader, leaf, ca, key.Public(), caKey)
		must(err)
		keyDER, err := x509.MarshalPKCS8PrivateKey(key)
		must(err)
		must(os.WriteFile(filepath.Join(dir, name+".crt"), block("CERTIFICATE", der), 0o600))
		must(os.WriteFile(filepath.Join(dir, name+".key"), block("PRIVATE KEY", keyDER), 0o600))
	}
	must(os.WriteFile(filepath.Join(dir, "ca.crt"), block("CERTIFICATE", caDER), 0o600))
	return block("CERTIFICATE", caDER)
}
