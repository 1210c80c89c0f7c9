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

	mu     sync.Mutex
	ca     []byte      // CAFile as last read; nil without one
	config *tls.Config // for ca
}

// OpenServer reads the directory. It returns an error unless the gateway can serve with it now.
func OpenServer(dir string, settings Settings, logger *slog.Logger) (*Server, error) {
	pair, err := OpenDir(dir, CertFile, KeyFile)
	if err != nil {
		return nil, err
	}
	s := &Server{dir: dir, pair: pair, settings: settings, logger: logger}
	if _, err := s.current(); err != nil {
		return nil, err
	}
	return s, nil
}

// Run follows CertFile and KeyFile until ctx is done. CAFile is read with each connection.
func (s *Server) Run(ctx context.Context) error { return s.pair.Run(ctx) }

// AsksForCertificates reports whether callers must show a certificate, as of the last connection.
func (s *Server) AsksForCertificates() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ca != nil
}

// TLS returns the settings of a server, which follow the files.
func (s *Server) TLS() *tls.Config {
	config := s.pair.ServerTLS(s.settings)
	config.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		current, err := s.current()
		if err != nil {
			// The authorities that were read last stay: without any, the gateway would let everyone in.
			s.logger.Error("reload certificate authorities of callers", "error", err)
		}
		return current, nil
	}
	return config
}

// current returns the settings for the current CAFile; with an error, the settings for its previous content.
func (s *Server) current() (*tls.Config, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	file := filepath.Join(s.dir, CAFile)
	ca, err := os.ReadFile(file)
	if err != nil && (!errors.Is(err, fs.ErrNotExist) || s.ca != nil) {
		return s.config, fmt.Errorf("read certificate authorities of callers: %w", err)
	}
	if s.config != nil && bytes.Equal(ca, s.ca) {
		return s.config, nil
	}
	config := s.pair.ServerTLS(s.settings)
	if ca != nil {
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(ca) {
			return s.config, fmt.Errorf("read certificate authorities of callers: %s has no certificate in PEM", file)
		}
		config.ClientCAs, config.ClientAuth = pool, tls.RequireAndVerifyClientCert
	}
	s.ca, s.config = ca, config
	return config, nil
}
