// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/certwatcher"
)

// Pair is a certificate and its key in files. It logs to the global logger of controller-runtime.
type Pair struct{ watcher *certwatcher.CertWatcher }

// Open reads a certificate and its key, in PEM. It returns an error unless they can be used now.
func Open(certFile, keyFile string) (*Pair, error) {
	pair, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		return nil, fmt.Errorf("certificate %s and its key: %w", certFile, err)
	}
	leaf, err := x509.ParseCertificate(pair.Certificate[0])
	if err != nil {
		return nil, fmt.Errorf("certificate %s: %w", certFile, err)
	}
	if err := checkValidity(leaf, time.Now()); err != nil {
		return nil, fmt.Errorf("certificate %s %w", certFile, err)
	}
	watcher, err := certwatcher.New(certFile, keyFile)
	if err != nil {
		return nil, fmt.Errorf("watch certificate %s: %w", certFile, err)
	}
	return &Pair{watcher}, nil
}

// checkValidity returns an error unless the certificate is valid at the time.
func checkValidity(c *x509.Certificate, now time.Time) error {
	if now.After(c.NotAfter) || now.Before(c.NotBefore) {
		return fmt.Errorf("is valid from %s to %s only: replace it",
			c.NotBefore.Format(time.RFC3339), c.NotAfter.Format(time.RFC3339))
	}
	return nil
}

// OpenDir is like Open, for two files of a directory. Its errors say which of them is missing.
func OpenDir(dir, certName, keyName string) (*Pair, error) {
	if _, err := os.Stat(dir); err != nil {
		return nil, err
	}
	certFile, keyFile := filepath.Join(dir, certName), filepath.Join(dir, keyName)
	for _, file := range []string{certFile, keyFile} {
		if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("%s is missing: the directory needs %s and %s in PEM", file, certName, keyName)
		}
	}
	return Open(certFile, keyFile)
}

// Run follows the files until ctx is done.
func (p *Pair) Run(ctx context.Context) error { return p.watcher.Start(ctx) }

// Certificate returns the certificate that was read last.
func (p *Pair) Certificate() (*tls.Certificate, error) { return p.watcher.GetCertificate(nil) }

// ServerTLS returns the settings of an HTTP server that shows the certificate.
func (p *Pair) ServerTLS(s Settings) *tls.Config {
	return &tls.Config{
		MinVersion: max(tls.VersionTLS12, s.MinVersion), CipherSuites: s.CipherSuites,
		NextProtos: []string{"h2", "http/1.1"}, GetCertificate: p.watcher.GetCertificate,
	}
}
