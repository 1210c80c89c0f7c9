// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package sideserver serves what stands beside the calls, such as the webhooks: over HTTP, with limits on connections,
// requests and time.
package sideserver

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/hookgate/hookgate/internal/connlimit"
)

// Config configures a Server.
type Config struct {
	// Name says in errors and in the log what is served, such as "webhooks".
	Name string
	// Address is the host:port to listen on; an empty host means all addresses.
	Address string
	// TLS is nil for plain HTTP.
	TLS     *tls.Config
	Handler http.Handler
	Logger  *slog.Logger
}

// Server serves a handler. It needs nothing from the API server.
type Server struct {
	config   Config
	listener *connlimit.Listener
}

// New returns a Server. It does not listen yet.
func New(c Config) *Server { return &Server{config: c} }

// Listen opens the address, so that a busy one is an error before anything else starts.
func (s *Server) Listen(ctx context.Context) error {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", s.config.Address)
	if err != nil {
		return err
	}
	s.listener = connlimit.New(listener, s.config.Name, s.config.Logger)
	return nil
}

// Close closes a Server that listens but does not run.
func (s *Server) Close() error { return s.listener.Close() }

// Addr returns the address that the Server listens on. Call Listen first.
func (s *Server) Addr() net.Addr { return s.listener.Addr() }

// Run serves until ctx is done, then answers the requests in flight. Call Listen first.
func (s *Server) Run(ctx context.Context) error {
	handler := s.config.Handler
	if s.config.TLS == nil {
		handler = LocalHosts(handler, s.config.Address, s.listener.Addr())
	}
	server := &http.Server{
		Handler:           handler,
		TLSConfig:         s.config.TLS,
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       30 * time.Second, // the API server waits no longer for an answer
		WriteTimeout:      60 * time.Second,
		IdleTimeout:       90 * time.Second,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          slog.NewLogLogger(s.config.Logger.Handler(), slog.LevelDebug),
	}
	s.listener.Bound(server)
	done := make(chan error, 1)
	go func() {
		if s.config.TLS == nil {
			done <- server.Serve(s.listener)
			return
		}
		done <- server.ServeTLS(s.listener, "", "")
	}()
	select {
	case err := <-done:
		return fmt.Errorf("serve %s: %w", s.config.Name, err)
	case <-ctx.Done():
	}
	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	err := server.Shutdown(drain)
	if err != nil {
		err = errors.Join(fmt.Errorf("drain %s: requests were still in flight after 10s", s.config.Name), server.Close())
	}
	if ended := <-done; !errors.Is(ended, http.ErrServerClosed) {
		err = errors.Join(err, fmt.Errorf("serve %s: %w", s.config.Name, ended))
	}
	return err
}
