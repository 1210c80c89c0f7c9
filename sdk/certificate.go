// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package sdk

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"sync/atomic"
	"syscall"
	"time"
)

// The gateway follows its certificates in the same way (internal/network/certs), and does more with them. An extension
// shares no code with it: what it had of the gateway, every extension would take home.
const (
	// certificateInterval is how often files are looked at. They are small, and not every file system has events.
	certificateInterval = 2 * time.Second
	// certificateBytes is the size of the largest file.
	certificateBytes = 1 << 20
)

// serverTLS returns the settings of a server with the certificate of the configuration. They follow the files until ctx
// ends. It returns an error unless the extension can serve with them now.
func serverTLS(ctx context.Context, c Config, logger *slog.Logger) (*tls.Config, error) {
	pair := &followed[*tls.Certificate]{
		what: "certificate", files: []string{c.CertFile, c.KeyFile},
		reading: "certificate " + c.CertFile + " and its key: read ",
		parse: func(contents [][]byte) (*tls.Certificate, error) {
			return parsePair(c.CertFile, contents[0], contents[1])
		},
	}
	if _, err := pair.look(); err != nil {
		return nil, err
	}
	config := &tls.Config{
		MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return *pair.value.Load(), nil },
	}
	if c.ClientCAFile == "" {
		go follow(ctx, func() { pair.lookAgain(logger) })
		return config, nil
	}
	callers := &followed[*tls.Config]{
		what: "certificate authorities of callers", files: []string{c.ClientCAFile}, reading: readAuthorities,
		parse: func(contents [][]byte) (next *tls.Config, err error) {
			next = config.Clone() // with keys of its own, so that no session outlives its authorities
			next.ClientAuth = tls.RequireAndVerifyClientCert
			next.ClientCAs, err = parseAuthorities(c.ClientCAFile, contents[0])
			return next, err
		},
	}
	if _, err := callers.look(); err != nil {
		return nil, err
	}
	go follow(ctx, func() {
		pair.lookAgain(logger)
		callers.lookAgain(logger)
	})
	served := config.Clone()
	served.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { return *callers.value.Load(), nil }
	return served, nil
}

// follow calls look at every interval until ctx is done.
func follow(ctx context.Context, look func()) {
	ticker := time.NewTicker(certificateInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			look()
		}
	}
}

// followed is what was last read from files and could be used.
type followed[T any] struct {
	what    string // for the log
	files   []string
	reading string // how the error begins that names a file
	parse   func(contents [][]byte) (T, error)
	value   atomic.Pointer[T]

	contents [][]byte
	refused  string // the error of the last look
	logged   bool   // whether it is in the log
}

// look reads the files, and reports whether they had something new that can be used.
func (f *followed[T]) look() (changed bool, err error) {
	contents := make([][]byte, len(f.files))
	for i, name := range f.files {
		if contents[i], err = readFile(name); err != nil {
			return false, fmt.Errorf("%s%s: %w", f.reading, name, err)
		}
	}
	if slices.EqualFunc(contents, f.contents, bytes.Equal) {
		return false, nil
	}
	value, err := f.parse(contents)
	if err != nil {
		return false, err
	}
	f.contents = contents
	f.value.Store(&value)
	return true, nil
}

// lookAgain looks at the files, and logs what is new. What cannot be used is logged the second time that it is found,
// because two files are not replaced in one step.
func (f *followed[T]) lookAgain(logger *slog.Logger) {
	changed, err := f.look()
	switch {
	case err == nil:
		f.refused, f.logged = "", false
		if changed {
			logger.Info(f.what+" replaced", "file", f.files[0])
		}
	case err.Error() != f.refused:
		f.refused, f.logged = err.Error(), false
	case !f.logged:
		f.logged = true
		logger.Error(f.what+" refused: what was read last stays in use", "error", err)
	}
}

// parsePair returns a certificate that is valid now.
func parsePair(file string, cert, key []byte) (*tls.Certificate, error) {
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("certificate %s and its key: %w", file, err)
	}
	if now, leaf := time.Now(), pair.Leaf; now.After(leaf.NotAfter) || now.Before(leaf.NotBefore) {
		return nil, fmt.Errorf("certificate %s is valid only from %s to %s: replace it",
			file, leaf.NotBefore.Format(time.RFC3339), leaf.NotAfter.Format(time.RFC3339))
	}
	return &pair, nil
}

const readAuthorities = "read certificate authorities of callers: "

// parseAuthorities returns the certificates in PEM; other blocks are ignored.
func parseAuthorities(file string, text []byte) (*x509.CertPool, error) {
	pool, found := x509.NewCertPool(), false
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			continue
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("%s%s: %w", readAuthorities, file, err)
		}
		pool.AddCert(c)
		found = true
	}
	if !found {
		return nil, fmt.Errorf("%s%s has no certificate in PEM", readAuthorities, file)
	}
	return pool, nil
}

// readFile returns the content of a regular file of at most certificateBytes. It does not wait for a writer at the
// other end of a pipe.
func readFile(name string) ([]byte, error) {
	file, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, errors.Unwrap(err) // which does not repeat the path
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	switch {
	case err != nil:
		return nil, err
	case info.IsDir():
		return nil, syscall.EISDIR
	case !info.Mode().IsRegular():
		return nil, errors.New("not a regular file")
	}
	data, err := io.ReadAll(io.LimitReader(file, certificateBytes+1))
	switch {
	case err != nil:
		return nil, err
	case len(data) > certificateBytes:
		return nil, fmt.Errorf("larger than %d bytes", certificateBytes)
	}
	return data, nil
}
