// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hookgate/hookgate/internal/base/files"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/base/notify"
	"github.com/hookgate/hookgate/internal/base/text"
)

// The names of the files of a Server.
const (
	CertFile = "tls.crt"
	KeyFile  = "tls.key"
	CAFile   = "ca.crt"
)

// Server is the certificate that a server shows to callers, in files. If there is a file of authorities, callers must
// show a certificate that one of them has signed.
type Server struct {
	caFile   string
	pair     *Pair
	settings Settings
	logger   *slog.Logger
	files    files.Reader
	changed  *notify.Signal
	current  atomic.Pointer[authorities]

	mu     sync.Mutex // for reloads
	failed string     // the error of the last reload, which is logged once
}

// authorities are those of a CAFile.
type authorities struct {
	pem      []byte          // the content of the file; nil without one
	trusted  map[string]bool // the certificates, in DER
	ends     []Expiry
	required *tls.Config
	optional *tls.Config // the same, for callers that may show a token instead
}

// OpenServer reads the directory. It returns an error unless the gateway can serve with it now.
func OpenServer(dir string, settings Settings, logger *slog.Logger) (*Server, error) {
	pair, err := OpenDir(dir, CertFile, KeyFile, logger)
	if err != nil {
		return nil, err
	}
	s := &Server{
		caFile: filepath.Join(dir, CAFile), pair: pair, settings: settings, logger: logger, changed: notify.NewSignal(),
	}
	first, err := s.read()
	if err != nil {
		return nil, err
	}
	s.current.Store(first)
	return s, nil
}

// Run follows the files until ctx is done.
func (s *Server) Run(ctx context.Context) error {
	return follow(ctx, func() {
		s.pair.look()
		s.look()
	})
}

// Reload reads the files at once.
func (s *Server) Reload() {
	s.pair.Reload()
	s.look()
}

// Pair returns the certificate that the gateway shows.
func (s *Server) Pair() *Pair { return s.pair }

// Changed returns the channel from which one value can be received after CAFile has changed: connections that were
// accepted before were checked against other authorities, or none.
func (s *Server) Changed() <-chan struct{} { return s.changed.C() }

// AsksForCertificates reports whether callers must show a certificate.
func (s *Server) AsksForCertificates() bool { return s.current.Load().pem != nil }

// Trusts reports whether an authority of the current CAFile has signed the certificate of a connection, which may be
// older than that file.
func (s *Server) Trusts(state *tls.ConnectionState) bool {
	trusted := s.current.Load().trusted
	for _, chain := range state.VerifiedChains {
		if trusted[string(chain[len(chain)-1].Raw)] {
			return true
		}
	}
	return false
}

// TLS returns the settings of a server, which follow the files.
func (s *Server) TLS() *tls.Config {
	config := s.pair.ServerTLS(s.settings)
	config.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { return s.current.Load().required, nil }
	return config
}

// TLSOrToken returns the settings of a server whose callers may show no certificate, because they may authenticate by
// other means. A certificate that a caller shows is verified.
func (s *Server) TLSOrToken() *tls.Config {
	config := s.pair.ServerTLS(s.settings)
	config.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { return s.current.Load().optional, nil }
	return config
}

// look reads CAFile. The authorities that were read last stay if that fails: without any, the gateway would let
// everyone in.
func (s *Server) look() {
	s.mu.Lock()
	defer s.mu.Unlock()
	next, err := s.read()
	if err != nil {
		if s.failed != err.Error() {
			s.logger.Error("reload certificate authorities of callers: those that were read last stay in use",
				"error", err)
		}
		s.failed = err.Error()
		return
	}
	s.failed = ""
	if next == s.current.Load() {
		return
	}
	s.current.Store(next)
	s.logger.Info("certificate authorities of callers replaced; connections accepted before are "+
		"closed", "file", s.caFile)
	s.changed.Notify()
}

// read returns the authorities in the current CAFile.
func (s *Server) read() (*authorities, error) {
	file, now := s.caFile, s.current.Load()
	ca, err := s.files.Read(file, limits.CertificateFileBytes)
	if err != nil && (!errors.Is(err, fs.ErrNotExist) || now != nil && now.pem != nil) {
		if path, ok := errors.AsType[*fs.PathError](err); ok {
			err = path.Err // which does not repeat the path
		}
		return nil, fmt.Errorf("read certificate authorities of callers: %s: %w", file, err)
	}
	if now != nil && bytes.Equal(ca, now.pem) {
		return now, nil
	}
	config := s.pair.ServerTLS(s.settings)
	next := &authorities{pem: ca, trusted: map[string]bool{}, required: config, optional: config}
	if ca == nil {
		return next, nil
	}
	found, err := parse(ca, false)
	switch {
	case err != nil:
		return nil, fmt.Errorf("read certificate authorities of callers: %s: %w", file, err)
	case len(found) == 0:
		return nil, fmt.Errorf("read certificate authorities of callers: %s has no certificate in PEM", file)
	}
	config.ClientCAs, config.ClientAuth = x509.NewCertPool(), tls.RequireAndVerifyClientCert
	for _, c := range found {
		config.ClientCAs.AddCert(c)
		next.trusted[string(c.Raw)] = true
		next.ends = append(next.ends, ExpiryOf(c))
	}
	next.optional = config.Clone()
	next.optional.ClientAuth = tls.VerifyClientCertIfGiven
	return next, nil
}

// parse returns the certificates in PEM; other blocks are ignored, and if lax, certificates that cannot be read, too.
func parse(blocks []byte, lax bool) (found []*x509.Certificate, err error) {
	for {
		var block *pem.Block
		if block, blocks = pem.Decode(blocks); block == nil {
			return found, nil
		}
		if block.Type != "CERTIFICATE" {
			continue
		}
		c, err := x509.ParseCertificate(block.Bytes)
		switch {
		case err == nil:
			found = append(found, c)
		case !lax:
			return nil, err
		}
	}
}

// Authorities returns when those of callers end; none if callers need no certificate.
func (s *Server) Authorities() []Expiry { return s.current.Load().ends }

// AuthoritiesNotAfter returns when the first of Authorities expires; the zero time if there is none.
func (s *Server) AuthoritiesNotAfter() time.Time { return First(s.Authorities()).NotAfter }

// AuthoritiesWarning names those of Authorities that have expired or will soon. It is empty if there are none.
func (s *Server) AuthoritiesWarning(now time.Time) string {
	var near []string
	for _, e := range s.Authorities() {
		if e.Near(now) {
			near = append(near, e.Subject+" "+e.Text(now))
		}
	}
	if len(near) == 0 {
		return ""
	}
	return "of the authorities of callers, " + text.Join(near, ", ", limits.Problems) +
		": give callers certificates of another authority, and remove this one"
}
