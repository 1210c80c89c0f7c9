// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/certwatcher"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
)

// certificates are those in --cert-dir: tls.crt and tls.key, and, if callers shall show certificates, ca.crt. All of them
// are used as they are now, not as they were at the start.
type certificates struct {
	dir     string
	watcher *certwatcher.CertWatcher
	logger  *slog.Logger
	change  func(*tls.Config) // of how to serve

	mu     sync.Mutex
	ca     []byte      // as last read; nil if there is none
	config *tls.Config // for ca
}

// newCertificates reads the directory and refuses what could not be served with.
func newCertificates(dir string, change func(*tls.Config), logger *slog.Logger) (*certificates, error) {
	watcher, err := watchPair("--cert-dir", dir, "tls.crt", "tls.key", logger)
	if err != nil {
		return nil, err
	}
	c := &certificates{dir: dir, watcher: watcher, logger: logger, change: change}
	if _, err := c.current(); err != nil {
		return nil, err
	}
	return c, nil
}

// watchPair returns what follows a certificate and its key in the directory that a flag names, and refuses those that
// could not be served with.
func watchPair(flag, dir, certName, keyName string, logger *slog.Logger) (*certwatcher.CertWatcher, error) {
	certFile, keyFile := filepath.Join(dir, certName), filepath.Join(dir, keyName)
	if _, err := os.Stat(dir); err != nil {
		return nil, fmt.Errorf("read %s: %w", flag, err)
	}
	for _, file := range []string{certFile, keyFile} {
		if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("read %s: %s is missing: the directory needs %s and %s in PEM", flag, file, certName, keyName)
		}
	}
	return watchFiles(certFile, keyFile, logger)
}

// watchFiles returns what follows a certificate and its key, and refuses those that could not be used.
func watchFiles(certFile, keyFile string, logger *slog.Logger) (*certwatcher.CertWatcher, error) {
	pair, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		return nil, fmt.Errorf("read certificate %s and its key: %w", certFile, err)
	}
	leaf, err := x509.ParseCertificate(pair.Certificate[0])
	if err != nil {
		return nil, fmt.Errorf("read certificate %s: %w", certFile, err)
	}
	if now := time.Now(); now.After(leaf.NotAfter) || now.Before(leaf.NotBefore) {
		return nil, fmt.Errorf("certificate %s is valid from %s to %s only: replace it", certFile, leaf.NotBefore.Format(time.RFC3339), leaf.NotAfter.Format(time.RFC3339))
	}
	// certwatcher logs through controller-runtime's logger, which is global.
	ctrllog.SetLogger(logr.FromSlogHandler(logger.Handler()))
	watcher, err := certwatcher.New(certFile, keyFile)
	if err != nil {
		return nil, fmt.Errorf("watch certificate %s: %w", certFile, err)
	}
	return watcher, nil
}

// Run follows tls.crt and tls.key until ctx is done.
func (c *certificates) Run(ctx context.Context) error { return c.watcher.Start(ctx) }

// frontConfig returns what both fronts serve with.
func (c *certificates) frontConfig() *tls.Config {
	config := c.base()
	config.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		current, err := c.current()
		if err != nil {
			// The one that was read last stays: to serve without it would let everyone in.
			c.logger.Error("reload certificate authorities of callers", "error", err)
		}
		return current, nil
	}
	return config
}

// base returns what is served with whatever callers have to show.
func (c *certificates) base() *tls.Config {
	return newTLSConfig(c.watcher, c.change)
}

// newTLSConfig returns how HTTP is served with the certificate that w has at the time.
func newTLSConfig(w *certwatcher.CertWatcher, change func(*tls.Config)) *tls.Config {
	config := &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}, GetCertificate: w.GetCertificate}
	change(config)
	return config
}

// current returns the configuration for ca.crt as it is now; with an error, the one before.
func (c *certificates) current() (*tls.Config, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	file := filepath.Join(c.dir, "ca.crt")
	ca, err := os.ReadFile(file)
	if err != nil && (!errors.Is(err, fs.ErrNotExist) || c.ca != nil) {
		return c.config, fmt.Errorf("read certificate authorities of callers: %w", err)
	}
	if c.config != nil && bytes.Equal(ca, c.ca) {
		return c.config, nil
	}
	config := c.base()
	if ca != nil {
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(ca) {
			return c.config, fmt.Errorf("read certificate authorities of callers: %s has no certificate in PEM", file)
		}
		config.ClientCAs, config.ClientAuth = pool, tls.RequireAndVerifyClientCert
	}
	c.ca, c.config = ca, config
	return config, nil
}
