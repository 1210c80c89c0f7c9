// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package devcert makes certificates for development and tests: authorities whose keys are never written, and
// certificates that they sign for servers on this machine. It cannot renew or revoke them, and is not for production:
// there, the gateway reads certificates that others have made from a directory.
//
// All functions are safe for concurrent use. A Pair and an Authority are immutable.
package devcert

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/hookgate/hookgate/internal/base/files"
)

// The names of the files that WriteDir writes. The CA is not in ca.crt: with a file of that name in the gateway's
// --cert-dir, callers must show a certificate.
const (
	CAFile   = "dev-ca.crt"
	CertFile = "tls.crt"
	KeyFile  = "tls.key"
)

// organization is in the subject of each certificate, and so in the issuer of those that an Authority signs.
const organization = "Hookgate (development only)"

// Pair is a certificate, its key and the CA that has signed it, all in PEM. Servers and clients can use the
// certificate.
type Pair struct {
	CAPEM   []byte
	CertPEM []byte
	KeyPEM  []byte
}

// New makes a pair with a new CA, whose key is thrown away. For notAfter and hosts see Authority.Issue.
func New(notAfter time.Time, hosts ...string) (*Pair, error) {
	a, err := NewAuthority(notAfter)
	if err != nil {
		return nil, err
	}
	return a.Issue(notAfter, hosts...)
}

// Authority is a CA whose key exists in memory only, for several certificates that one bundle trusts.
type Authority struct {
	// PEM is the CA's certificate.
	PEM []byte

	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// NewAuthority makes a CA that is valid until notAfter.
func NewAuthority(notAfter time.Time) (*Authority, error) {
	ca, err := template("Hookgate development CA", notAfter)
	if err != nil {
		return nil, err
	}
	ca.IsCA = true
	ca.MaxPathLenZero = true
	ca.KeyUsage = x509.KeyUsageCertSign
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("generate key of development CA: %w", err)
	}
	der, err := x509.CreateCertificate(rand.Reader, ca, ca, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("create development CA: %w", err)
	}
	if ca, err = x509.ParseCertificate(der); err != nil {
		return nil, fmt.Errorf("create development CA: %w", err)
	}
	return &Authority{PEM: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), cert: ca, key: key}, nil
}

// Issue makes a pair that is valid until notAfter for 127.0.0.1, ::1, localhost and the hosts, which are DNS names or
// IP addresses. The key is ECDSA P-256.
func (a *Authority) Issue(notAfter time.Time, hosts ...string) (*Pair, error) {
	leaf, err := template("localhost", notAfter)
	if err != nil {
		return nil, err
	}
	leaf.KeyUsage = x509.KeyUsageDigitalSignature
	leaf.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	leaf.DNSNames = []string{"localhost"}
	leaf.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback}
	for _, host := range hosts {
		if ip := net.ParseIP(host); ip != nil {
			leaf.IPAddresses = append(leaf.IPAddresses, ip)
			continue
		}
		if host == "" || strings.ContainsAny(host, ":/ ") {
			return nil, fmt.Errorf("development certificate: %q is neither a DNS name nor an IP address", host)
		}
		leaf.DNSNames = append(leaf.DNSNames, host)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("generate key of development certificate: %w", err)
	}
	der, err := x509.CreateCertificate(rand.Reader, leaf, a.cert, key.Public(), a.key)
	if err != nil {
		return nil, fmt.Errorf("create development certificate: %w", err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encode key of development certificate: %w", err)
	}
	return &Pair{
		CAPEM:   a.PEM,
		CertPEM: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		KeyPEM:  pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}),
	}, nil
}

func template(name string, notAfter time.Time) (*x509.Certificate, error) {
	notBefore := time.Now().Add(-time.Hour) // clocks of containers and their hosts differ
	if !notAfter.After(notBefore) {
		return nil, fmt.Errorf("development certificate: the expiry time %s is in the past",
			notAfter.Format(time.RFC3339))
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, fmt.Errorf("generate serial number of %s: %w", name, err)
	}
	return &x509.Certificate{
		SerialNumber:          serial,
		Subject:               pkix.Name{CommonName: name, Organization: []string{organization}},
		NotBefore:             notBefore,
		NotAfter:              notAfter,
		BasicConstraintsValid: true,
	}, nil
}

// Certificate returns the certificate and its key for crypto/tls.
func (p *Pair) Certificate() (tls.Certificate, error) {
	cert, err := tls.X509KeyPair(p.CertPEM, p.KeyPEM)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("development certificate: %w", err)
	}
	return cert, nil
}

// ServerTLS returns the settings of a server that shows the certificate.
func (p *Pair) ServerTLS() (*tls.Config, error) {
	cert, err := p.Certificate()
	if err != nil {
		return nil, err
	}
	return &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12}, nil
}

// ClientTLS returns the settings of a client that trusts only the CA.
func (p *Pair) ClientTLS() *tls.Config {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(p.CAPEM)
	return &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
}

// WriteDir writes the pair to CAFile, CertFile and KeyFile in dir, which it creates if necessary. It replaces each file
// atomically, for servers that watch them. Only the user may read the key.
func (p *Pair) WriteDir(dir string) error {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return fmt.Errorf("write development certificates: %w", err)
	}
	for _, f := range []struct {
		name string
		data []byte
		mode os.FileMode
	}{
		{CAFile, p.CAPEM, 0o644},
		{KeyFile, p.KeyPEM, 0o600},
		{CertFile, p.CertPEM, 0o644},
	} {
		if err := files.Replace(filepath.Join(dir, f.name), f.data, f.mode); err != nil {
			return fmt.Errorf("write development certificates: %w", err)
		}
	}
	return nil
}
