// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/hookgate/hookgate/internal/network/devcert"
)

// certificates holds the files of one run: a new CA, and one server certificate that all peers use, so that the cost of
// TLS is the same for each.
type certificates struct {
	caFile string
	caPEM  []byte
	// serverDir holds tls.crt and tls.key and nothing else: a ca.crt there would make the gateway ask callers for
	// certificates.
	serverDir string
}

func (c certificates) certFile() string { return filepath.Join(c.serverDir, "tls.crt") }
func (c certificates) keyFile() string  { return filepath.Join(c.serverDir, "tls.key") }

// newCertificates writes the files below dir. They are valid for a day.
func newCertificates(dir string) (certificates, error) {
	c := certificates{caFile: filepath.Join(dir, "ca.pem"), serverDir: filepath.Join(dir, "certs")}
	pair, err := devcert.New(time.Now().Add(24 * time.Hour))
	if err != nil {
		return c, err
	}
	if err := os.MkdirAll(c.serverDir, 0o700); err != nil {
		return c, err
	}
	c.caPEM = pair.CAPEM
	for name, content := range map[string][]byte{c.caFile: pair.CAPEM, c.certFile(): pair.CertPEM, c.keyFile(): pair.KeyPEM} {
		if err := os.WriteFile(name, content, 0o600); err != nil {
			return c, err
		}
	}
	return c, nil
}

// clientTLS returns a configuration that trusts only the CA in caPEM. protocols are the ALPN names to offer; an
// http.Transport adds its own.
func clientTLS(caPEM []byte, protocols ...string) (*tls.Config, error) {
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(caPEM) {
		return nil, errors.New("no certificate in the CA file")
	}
	return &tls.Config{
		RootCAs:    pool,
		ServerName: "localhost",
		NextProtos: protocols,
		MinVersion: tls.VersionTLS12,
	}, nil
}
