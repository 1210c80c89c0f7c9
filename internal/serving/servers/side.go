// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package servers

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/hookgate/hookgate/internal/base/limits"
)

// writeTimeout is how long an answer may take since the header of its request: a call may take long, and its reader be
// slow.
const writeTimeout = limits.AnswerTimeout

// newHTTPServer returns a server that bounds the time of slow and idle peers.
func newHTTPServer(h http.Handler, t *tls.Config, http2 *http.HTTP2Config, logger *slog.Logger) *http.Server {
	return &http.Server{
		Handler:           h,
		TLSConfig:         t,
		HTTP2:             http2,
		ReadHeaderTimeout: limits.HandshakeTimeout,
		ReadTimeout:       limits.ReceiveTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       limits.IdleTimeout,
		MaxHeaderBytes:    limits.HeaderBytes,
		ErrorLog:          slog.NewLogLogger(logger.Handler(), slog.LevelDebug),
	}
}

// SideConfig configures a Side.
type SideConfig struct {
	// Name says in errors and in the log what is served, such as "webhooks".
	Name string
	// Address is the host:port to listen on; an empty host means all addresses.
	Address string
	// TLS is nil for plain HTTP.
	TLS     *tls.Config
	Handler http.Handler
	Logger  *slog.Logger
	// Ending reports whether the process is about to end, so that answers are the last ones of their connections: what a
	// caller sends on one that is just being closed is lost. Nil means that it never is.
	Ending func() bool
}

// Side serves an address besides the fronts, such as that of webhooks. It is safe for concurrent use; call Listen and
// Run once each.
type Side struct {
	config   SideConfig
	listener *Listener
	server   *http.Server
}

// NewSide returns a Side. It does not listen yet.
func NewSide(c SideConfig) *Side { return &Side{config: c} }

// Listen opens the address, so that a busy one is an error before anything else starts.
func (s *Side) Listen(ctx context.Context) error {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", s.config.Address)
	if err != nil {
		return err
	}
	s.listenOn(l)
	return nil
}

func (s *Side) listenOn(l net.Listener) {
	s.listener = forSide(l, s.config.Name, s.config.Logger)
	handler := s.config.Handler
	if s.config.TLS == nil {
		handler = LocalHosts(handler, s.config.Address, l.Addr())
	}
	// What a request has not read yet is no more than a call may send besides its body.
	s.server = newHTTPServer(handler, s.config.TLS, &http.HTTP2Config{
		MaxConcurrentStreams: limits.SideStreams, MaxReceiveBufferPerStream: limits.CallOverheadBytes,
	}, s.config.Logger)
	s.listener.attach(s.server, func() bool { return s.config.Ending != nil && s.config.Ending() })
}

// Close closes the address and all connections. Run returns nil then.
func (s *Side) Close() error {
	err := s.server.Close()
	if closed := s.listener.Close(); !errors.Is(closed, net.ErrClosed) {
		err = errors.Join(err, closed)
	}
	return err
}

// Addr returns the address that the Side listens on. Call Listen first.
func (s *Side) Addr() net.Addr { return s.listener.Addr() }

// Run serves until ctx is done, then answers the requests in flight. Call Listen first.
func (s *Side) Run(ctx context.Context) error {
	ended := make(chan error, 1)
	go func() { ended <- s.serve() }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	const timeout = 10 * time.Second
	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
	defer cancel()
	err := s.server.Shutdown(drain)
	if err != nil {
		err = errors.Join(fmt.Errorf("drain %s: requests were still in flight after %s", s.config.Name, timeout),
			s.server.Close())
	}
	return errors.Join(err, <-ended)
}

// serve serves until the server is closed.
func (s *Side) serve() error {
	err := serveHTTP(s.server, s.listener)
	if errors.Is(err, http.ErrServerClosed) || errors.Is(err, net.ErrClosed) {
		return nil
	}
	return fmt.Errorf("serve %s: %w", s.config.Name, err)
}

// serveHTTP serves a listener, with TLS if the server has it.
func serveHTTP(server *http.Server, l net.Listener) error {
	if server.TLSConfig == nil {
		return server.Serve(l)
	}
	return server.ServeTLS(l, "", "")
}
