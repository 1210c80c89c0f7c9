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
	"time"

	certutil "k8s.io/client-go/util/cert"
)

// The names of the files of a Server.
const (
	CertFile = "tls.crt"
	KeyFile  = "tls.key"
	CAFile   = "ca.crt"
)

// Server is a directory with the certificate that the gateway shows to callers. If the directory has CAFile, callers
// must show a certificate that one of its authorities has signed.
type Server struct {
	dir      string
	pair     *Pair
	settings Settings
	logger   *slog.Logger

	mu          sync.Mutex
	ca          []byte          // CAFile as last read; nil without one
	authorities map[string]bool // the certificates of ca, in DER
	config      *tls.Config     // for ca
	optional    *tls.Config     // the same, for callers that may show a token instead
}

// OpenServer reads the directory. It returns an error unless the gateway can serve with it now.
func OpenServer(dir string, settings Settings, logger *slog.Logger) (*Server, error) {
	pair, err := OpenDir(dir, CertFile, KeyFile)
	if err != nil {
		return nil, err
	}
	s := &Server{dir: dir, pair: pair, settings: settings, logger: logger}
	if _, _, err := s.current(); err != nil {
		return nil, err
	}
	return s, nil
}

// rereadInterval is how often CAFile is read besides with each connection, for the connections that stay.
const rereadInterval = 5 * time.Second

// Run follows the files until ctx is done.
func (s *Server) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var reading sync.WaitGroup
	defer reading.Wait()
	defer cancel()
	reading.Go(func() {
		ticker := time.NewTicker(rereadInterval)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				_, _, _ = s.current() // the next connection logs the error
			case <-ctx.Done():
				return
			}
		}
	})
	return s.pair.Run(ctx)
}

// AsksForCertificates reports whether callers must show a certificate, as of the last connection.
func (s *Server) AsksForCertificates() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ca != nil
}

// Trusts reports whether an authority of the current CAFile has signed the certificate of a connection, which may be
// older than that file.
func (s *Server) Trusts(state *tls.ConnectionState) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, chain := range state.VerifiedChains {
		if s.authorities[string(chain[len(chain)-1].Raw)] {
			return true
		}
	}
	return false
}

// TLS returns the settings of a server, which follow the files.
func (s *Server) TLS() *tls.Config { return s.tls(false) }

// TLSOrToken returns the settings of a server whose callers may show no certificate, because they may authenticate by
// other means. A certificate that a caller shows is verified.
func (s *Server) TLSOrToken() *tls.Config { return s.tls(true) }

func (s *Server) tls(optional bool) *tls.Config {
	config := s.pair.ServerTLS(s.settings)
	config.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		required, orToken, err := s.current()
		if err != nil {
			// The authorities that were read last stay: without any, the gateway would let everyone in.
			s.logger.Error("reload certificate authorities of callers", "error", err)
		}
		if optional {
			return orToken, nil
		}
		return required, nil
	}
	return config
}

// current returns the settings for the current CAFile, with certificates that are required and with certificates that
// are not; with an error, the settings for its previous content.
func (s *Server) current() (required, optional *tls.Config, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	file := filepath.Join(s.dir, CAFile)
	ca, err := os.ReadFile(file)
	if err != nil && (!errors.Is(err, fs.ErrNotExist) || s.ca != nil) {
		return s.config, s.optional, fmt.Errorf("read certificate authorities of callers: %w", err)
	}
	if s.config != nil && bytes.Equal(ca, s.ca) {
		return s.config, s.optional, nil
	}
	config := s.pair.ServerTLS(s.settings)
	authorities := map[string]bool{}
	if ca != nil {
		found, err := certutil.ParseCertsPEM(ca)
		switch {
		case err != nil && len(found) == 0:
			return s.config, s.optional,
				fmt.Errorf("read certificate authorities of callers: %s has no certificate in PEM", file)
		case err != nil:
			return s.config, s.optional, fmt.Errorf("read certificate authorities of callers: %s: %w", file, err)
		}
		config.ClientCAs, config.ClientAuth = x509.NewCertPool(), tls.RequireAndVerifyClientCert
		for _, c := range found {
			config.ClientCAs.AddCert(c)
			authorities[string(c.Raw)] = true
		}
	}
	s.ca, s.authorities, s.config, s.optional = ca, authorities, config, config
	if ca != nil {
		s.optional = config.Clone()
		s.optional.ClientAuth = tls.VerifyClientCertIfGiven
	}
	return s.config, s.optional, nil
}
