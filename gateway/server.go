// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/reflection"

	"github.com/hookgate/hookgate/internal/budget"
	"github.com/hookgate/hookgate/internal/connlimit"
	"github.com/hookgate/hookgate/internal/limits"
	"github.com/hookgate/hookgate/internal/sideserver"
)

const (
	// A gRPC caller that is silent for keepaliveTime is asked whether it is still there, and has keepaliveTimeout to
	// answer.
	keepaliveTime    = time.Minute
	keepaliveTimeout = 20 * time.Second
	// minPingTime is how often a gRPC caller may ask that itself.
	minPingTime = 10 * time.Second
)

// ServerConfig configures a Server. All fields but GRPCAddress, HealthAddress, DiagnosticsTLS and the durations are
// required.
type ServerConfig struct {
	HTTPAddress, DiagnosticsAddress string
	// GRPCAddress serves gRPC. Empty means that gRPC is not served.
	GRPCAddress string
	// HealthAddress serves /healthz and /readyz in plain HTTP too, for probes that cannot present a certificate. Empty
	// means that only the diagnostics address serves them.
	HealthAddress string

	// TLS serves both fronts. DiagnosticsTLS serves diagnostics; nil means plain HTTP, which is for loopback only.
	TLS, DiagnosticsTLS *tls.Config

	REST        http.Handler
	GRPCOptions []grpc.ServerOption
	Register    func(grpc.ServiceRegistrar)
	Metrics     http.Handler
	// Status serves status.Path, and Console the page for people at /. Both may be nil.
	Status, Console http.Handler

	// Ready is closed once the registry has been filled. Until then, Unready returns the reason.
	Ready   <-chan struct{}
	Unready func() string
	// Listening is called once, when all addresses serve. Addresses that are not configured are nil.
	Listening func(http, grpc, diagnostics, health net.Addr)
	Logger    *slog.Logger

	// Notices returns what operators should know though calls are answered, such as a certificate near its end, for
	// /readyz?verbose. It may be nil.
	Notices func() []Notice
	// Renew receives when connections that were accepted before must end: each after its calls in flight, idle ones at
	// once. It may be nil.
	Renew <-chan struct{}

	// ShutdownDelay is how long calls are still accepted after /readyz has started to fail, so that load balancers
	// notice. Answers over REST close their connections meanwhile, so that callers connect to another gateway.
	ShutdownDelay time.Duration
	// ShutdownTimeout bounds how long calls in flight may take after that. Zero means 40 s, more than any call may
	// take.
	ShutdownTimeout time.Duration
}

// Server serves both fronts and the diagnostics. Call Run once.
type Server struct {
	config   ServerConfig
	draining atomic.Bool

	front, diagnostics, probes *http.Server
	grpc                       *grpcServers
	grpcHealth                 *health.Server
	serving                    sync.WaitGroup

	restCalls, grpcCalls inFlight
	// The connections of the fronts; those of gRPC are nil if it is not served.
	restConnections, grpcConnections *connections
}

// NewServer returns a Server. It does not listen yet.
func NewServer(c ServerConfig) *Server {
	if c.ShutdownTimeout == 0 {
		c.ShutdownTimeout = 40 * time.Second
	}
	return &Server{config: c}
}

// Run listens and serves until ctx is done, then drains: it reports that it is not ready, accepts no more calls, and
// returns when those in flight have their answers. It returns nil if the drain left no call behind.
func (s *Server) Run(ctx context.Context) error {
	l, err := s.listen(ctx)
	if err != nil {
		return err
	}
	descriptors := connlimit.Descriptors()
	s.restConnections = limitConnections(l.http, "REST", descriptors, s.config.Logger)
	l.http = s.restConnections
	if l.grpc != nil {
		s.grpcConnections = limitConnections(l.grpc, "gRPC", descriptors, s.config.Logger)
		l.grpc = s.grpcConnections
	}
	s.newServers(l)
	bound := func(to net.Listener, name string, server *http.Server) net.Listener {
		bounded := connlimit.New(to, name, s.config.Logger)
		bounded.Bound(server)
		return bounded
	}
	l.diagnostics = bound(l.diagnostics, "diagnostics", s.diagnostics)
	if l.health != nil {
		l.health = bound(l.health, "health", s.probes)
	}
	failed := s.serve(l)
	s.config.Listening(l.http.Addr(), addressOf(l.grpc), l.diagnostics.Addr(), addressOf(l.health))
	err = s.wait(ctx, failed)

	s.draining.Store(true)
	s.grpcHealth.Shutdown()
	if err == nil {
		time.Sleep(s.config.ShutdownDelay)
	}
	err = errors.Join(err, s.drain(), s.diagnostics.Close(), s.probes.Close())
	s.serving.Wait()
	return err
}

func (s *Server) newServers(l listeners) {
	s.front = s.httpServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor == 2 {
			growFrontStack(0)
		}
		s.restCalls.begin()
		defer s.restCalls.end()
		c, _ := r.Context().Value(connectionKey{}).(*connection)
		if c != nil {
			c.overhead.BeginRequest(r)
			defer c.overhead.End()
		}
		// A caller should not be on a connection that is about to close: what it sends at that moment is lost.
		if c != nil && c.isOld() || s.draining.Load() || isLast(r) {
			w.Header().Set("Connection", "close") // over HTTP/2, GOAWAY
		}
		s.config.REST.ServeHTTP(w, r)
		endRequest(r)
	}), s.config.TLS)
	s.front.HTTP2 = http2Settings()
	s.front.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		return context.WithValue(ctx, connectionKey{}, connectionOf(c))
	}
	s.front.ConnState = func(c net.Conn, state http.ConnState) {
		if of := connectionOf(c); of != nil {
			of.endIfOld(c, state == http.StateIdle)
		}
	}
	diagnostics := s.diagnosticsMux()
	if s.config.DiagnosticsTLS == nil {
		diagnostics = sideserver.LocalHosts(diagnostics, s.config.DiagnosticsAddress, l.diagnostics.Addr())
	}
	s.diagnostics = s.httpServer(diagnostics, s.config.DiagnosticsTLS)
	s.probes = s.httpServer(s.healthMux(), nil)
	s.grpcHealth = health.NewServer()
	s.grpcHealth.SetServingStatus("", healthv1.HealthCheckResponse_NOT_SERVING)
	s.grpc = newGRPCServers(func() *grpc.Server {
		server := grpc.NewServer(slices.Concat(s.grpcOptions(), s.config.GRPCOptions)...)
		s.config.Register(server)
		healthv1.RegisterHealthServer(server, s.grpcHealth)
		reflection.Register(server)
		return server
	}, s.config.Logger)
}

// isLast reports whether the server must close the connection after the answer to r, because the request may have had a
// Content-Length beside its Transfer-Encoding, in HTTP/1.0 a Transfer-Encoding at all: net/http removes the one that it
// ignores, so that these requests look like any other in chunks (https://www.rfc-editor.org/rfc/rfc9112#section-6.1).
func isLast(r *http.Request) bool {
	return r.ProtoMajor == 1 && (r.ProtoMinor == 0 || r.TransferEncoding != nil)
}

// connectionKey is the key of the *connection of a request over REST.
type connectionKey struct{}

// renew ends the connections that were accepted before.
func (s *Server) renew() {
	s.restConnections.generation.Add(1)
	s.front.SetKeepAlivesEnabled(false) // closes those that are idle
	s.front.SetKeepAlivesEnabled(true)
	s.grpc.renew()
}

// serve starts to serve on every listener. The channel receives the error of a server that fails.
func (s *Server) serve(l listeners) <-chan error {
	failed := make(chan error, 4)
	start := func(name string, run func() error) {
		s.serving.Go(func() {
			switch err := run(); {
			case err == nil, errors.Is(err, http.ErrServerClosed), errors.Is(err, grpc.ErrServerStopped):
			default:
				failed <- fmt.Errorf("serve %s: %w", name, err)
			}
		})
	}
	start("HTTP", func() error { return s.front.ServeTLS(l.http, "", "") })
	if l.grpc != nil {
		start("gRPC", func() error { return s.grpc.serve(l.grpc) })
	}
	start("diagnostics", func() error {
		if s.config.DiagnosticsTLS == nil {
			return s.diagnostics.Serve(l.diagnostics)
		}
		return s.diagnostics.ServeTLS(l.diagnostics, "", "")
	})
	if l.health != nil {
		start("health", func() error { return s.probes.Serve(l.health) })
	}
	return failed
}

// wait returns when ctx is done or a server fails. In between it reports on the gRPC health service that the registry
// is ready.
func (s *Server) wait(ctx context.Context, failed <-chan error) error {
	ready := s.config.Ready
	for {
		select {
		case <-ready:
			ready = nil
			s.grpcHealth.SetServingStatus("", healthv1.HealthCheckResponse_SERVING)
			for name := range s.grpc.services() {
				s.grpcHealth.SetServingStatus(name, healthv1.HealthCheckResponse_SERVING)
			}
		case <-s.config.Renew:
			s.renew()
		case err := <-failed:
			return err
		case <-ctx.Done():
			return nil
		}
	}
}

// drain lets the calls in flight finish, on both fronts at the same time.
func (s *Server) drain() error {
	ctx, cancel := context.WithTimeout(context.Background(), s.config.ShutdownTimeout)
	defer cancel()
	fronts := []drainingFront{{
		protocol: "HTTP", calls: &s.restCalls, connections: s.restConnections,
		graceful: func(ctx context.Context) { _ = s.front.Shutdown(ctx) }, // ctx ends it, which is no error
		cut:      func() { _ = s.front.Close() },                          // the listener is closed already
	}}
	if s.grpcConnections != nil {
		fronts = append(fronts, drainingFront{
			protocol: "gRPC", calls: &s.grpcCalls, connections: s.grpcConnections,
			graceful: func(context.Context) {
				s.grpcConnections.closeUnfinished()
				s.grpc.gracefulStop()
			},
			cut: s.grpc.stop,
		})
	}
	errs := make([]error, len(fronts))
	var wg sync.WaitGroup
	for i, f := range fronts {
		wg.Go(func() { errs[i] = f.drain(ctx, s.config.ShutdownTimeout) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// grpcOptions returns the options of the gRPC front that the network needs: what slow, idle and greedy peers may do.
// gRPC itself bounds streams that are reset as fast as they are opened, and pings.
func (s *Server) grpcOptions() []grpc.ServerOption {
	r := receipts{timeout: limits.ReceiveTimeout, calls: &s.grpcCalls, logger: s.config.Logger}
	return append(r.options(),
		grpc.Creds(countingCredentials{credentials.NewTLS(s.config.TLS)}),
		grpc.ConnectionTimeout(limits.HandshakeTimeout),
		grpc.MaxConcurrentStreams(limits.Streams),
		grpc.MaxHeaderListSize(limits.HeaderBytes),
		grpc.KeepaliveParams(keepalive.ServerParameters{
			MaxConnectionIdle: limits.IdleTimeout, Time: keepaliveTime, Timeout: keepaliveTimeout,
		}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: minPingTime, PermitWithoutStream: true}),
	)
}

// httpServer returns a server that limits the resources of slow and idle peers.
func (s *Server) httpServer(h http.Handler, tlsConfig *tls.Config) *http.Server {
	return &http.Server{
		Handler:           h,
		TLSConfig:         tlsConfig,
		ReadHeaderTimeout: limits.HandshakeTimeout,
		ReadTimeout:       limits.ReceiveTimeout,
		WriteTimeout:      2 * time.Minute, // since the request's header: a call may take long, and its reader be slow
		IdleTimeout:       limits.IdleTimeout,
		MaxHeaderBytes:    limits.HeaderBytes,
		ErrorLog:          slog.NewLogLogger(s.config.Logger.Handler(), slog.LevelDebug),
	}
}

// http2Settings returns the limits of connections over HTTP/2. Calls that wait for memory do not read their bodies:
// each may have little unread, so that all that may wait leave room for the other calls of their connection.
func http2Settings() *http.HTTP2Config {
	const perStream = 256 << 10
	return &http.HTTP2Config{
		MaxConcurrentStreams: limits.Streams, MaxReceiveBufferPerStream: perStream,
		MaxReceiveBufferPerConnection: 2 * perStream * budget.MaxWaitingShare,
	}
}
