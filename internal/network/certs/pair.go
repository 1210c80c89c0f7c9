// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package certs

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
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/hookgate/hookgate/internal/base/files"
	"github.com/hookgate/hookgate/internal/base/limits"
)

// interval is how often files are looked at. They are small, and not every file system has events.
const interval = 2 * time.Second

// Pair is a certificate and its key in files.
type Pair struct {
	certFile, keyFile string
	logger            *slog.Logger
	files             files.Reader
	current           atomic.Pointer[loaded]

	mu sync.Mutex // for reloads
	// refused is the error of the last look at the files, and logged reports whether it is in the log.
	refused string
	logged  bool
}

// loaded is the content of the files.
type loaded struct {
	certPEM, keyPEM []byte
	certificate     tls.Certificate
}

// Open reads a certificate and its key, in PEM. It returns an error unless they can be used now.
func Open(certFile, keyFile string, logger *slog.Logger) (*Pair, error) {
	p := &Pair{certFile: certFile, keyFile: keyFile, logger: logger}
	next, err := p.read()
	if err != nil {
		return nil, err
	}
	p.current.Store(next)
	return p, nil
}

// OpenDir is like Open, for two files of a directory. Its errors say which of them is missing.
func OpenDir(dir, certName, keyName string, logger *slog.Logger) (*Pair, error) {
	if _, err := os.Stat(dir); err != nil {
		return nil, err
	}
	certFile, keyFile := filepath.Join(dir, certName), filepath.Join(dir, keyName)
	for _, file := range []string{certFile, keyFile} {
		if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("%s is missing: the directory needs %s and %s in PEM", file, certName, keyName)
		}
	}
	return Open(certFile, keyFile, logger)
}

// read returns what the files hold now; with an error unless that can be used.
func (p *Pair) read() (*loaded, error) {
	next := &loaded{}
	for _, f := range []struct {
		name string
		data *[]byte
	}{{p.certFile, &next.certPEM}, {p.keyFile, &next.keyPEM}} {
		data, err := p.files.Read(f.name, limits.CertificateFileBytes)
		if err != nil {
			if path, ok := errors.AsType[*fs.PathError](err); ok {
				err = path.Err // which does not repeat the path
			}
			return nil, fmt.Errorf("certificate %s and its key: read %s: %w", p.certFile, f.name, err)
		}
		*f.data = data
	}
	if now := p.current.Load(); now != nil &&
		bytes.Equal(now.certPEM, next.certPEM) && bytes.Equal(now.keyPEM, next.keyPEM) {
		return now, nil
	}
	var err error
	if next.certificate, err = tls.X509KeyPair(next.certPEM, next.keyPEM); err != nil {
		return nil, fmt.Errorf("certificate %s and its key: %w", p.certFile, err)
	}
	if err := checkValidity(next.certificate.Leaf, time.Now()); err != nil {
		return nil, fmt.Errorf("certificate %s %w", p.certFile, err)
	}
	return next, nil
}

// checkValidity returns an error unless the certificate is valid at the time.
func checkValidity(c *x509.Certificate, now time.Time) error {
	if now.After(c.NotAfter) || now.Before(c.NotBefore) {
		return fmt.Errorf("is valid only from %s to %s: replace it",
			c.NotBefore.Format(time.RFC3339), c.NotAfter.Format(time.RFC3339))
	}
	return nil
}

// Run follows the files until ctx is done.
func (p *Pair) Run(ctx context.Context) error { return follow(ctx, p.look) }

// follow calls look at every interval until ctx is done.
func follow(ctx context.Context, look func()) error {
	wait.UntilWithContext(ctx, func(context.Context) { look() }, interval)
	return nil
}

// Reload reads the files at once, and logs what is wrong with them.
func (p *Pair) Reload() {
	p.look()
	p.look() // the second time, it is no file that is being written
}

// look reads the files. A certificate that cannot be used, because it has expired, say, does not replace the current
// one. It is logged the second time that it is found, because two files are not replaced in one step.
func (p *Pair) look() {
	p.mu.Lock()
	defer p.mu.Unlock()
	next, err := p.read()
	switch {
	case err == nil && next != p.current.Load():
		p.current.Store(next)
		p.logger.Info("certificate replaced", "file", p.certFile,
			"notAfter", next.certificate.Leaf.NotAfter.Format(time.RFC3339))
	case err != nil && err.Error() == p.refused && !p.logged:
		p.logged = true
		p.logger.Error("certificate refused: the last one that was valid stays in use", "error", err,
			"notAfter", p.NotAfter().Format(time.RFC3339))
		return
	}
	if err == nil {
		p.refused, p.logged = "", false
	} else if err.Error() != p.refused {
		p.refused, p.logged = err.Error(), false
	}
}

// Certificate returns the current certificate.
func (p *Pair) Certificate() (*tls.Certificate, error) { return &p.current.Load().certificate, nil }

// NotAfter returns when the current certificate expires.
func (p *Pair) NotAfter() time.Time { return p.current.Load().certificate.Leaf.NotAfter }

// Warning returns what operators should know about the certificate at the time: that it has expired or will soon, or
// that the files have one that is not used. It is empty if all is well.
func (p *Pair) Warning(now time.Time) string {
	leaf := p.current.Load().certificate.Leaf
	p.mu.Lock()
	refused := p.refused
	p.mu.Unlock()
	switch {
	case now.After(leaf.NotAfter):
		return "expired at " + leaf.NotAfter.Format(time.RFC3339) + ": replace it"
	case refused != "":
		return "valid until " + leaf.NotAfter.Format(time.RFC3339) + ", but its replacement is refused: " + refused
	case ExpiryOf(leaf).Near(now):
		return "expires at " + leaf.NotAfter.Format(time.RFC3339) + ": replace it"
	}
	return ""
}

// ServerTLS returns the settings of an HTTP server that shows the certificate.
func (p *Pair) ServerTLS(s Settings) *tls.Config {
	return &tls.Config{
		MinVersion: max(tls.VersionTLS12, s.MinVersion), CipherSuites: s.CipherSuites,
		NextProtos:     []string{"h2", "http/1.1"},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return p.Certificate() },
	}
}
