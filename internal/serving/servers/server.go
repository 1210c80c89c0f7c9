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

	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/base/status"
	"github.com/hookgate/hookgate/internal/network/budget"
)

// Config configures a Server. All fields but the addresses of the fronts, HealthAddress, DiagnosticsTLS and the
// durations are required.
type Config struct {
	// HTTPAddress serves REST, and GRPCAddress gRPC. Empty means that a front is not served.
	HTTPAddress, GRPCAddress string
	DiagnosticsAddress       string
	// HealthAddress serves /healthz and /readyz in plain HTTP too, for probes that cannot present a certificate. Empty
	// means that only the diagnostics address serves them.
	HealthAddress string

	// TLS serves both fronts. DiagnosticsTLS serves diagnostics; nil means plain HTTP, which is for loopback only.
	TLS, DiagnosticsTLS *tls.Config

	REST        http.Handler
	GRPCOptions []grpc.ServerOption
	Register    func(grpc.ServiceRegistrar)
	Metrics     http.Handler
	// Status serves status.Path, Recording recording.Path, and Console the page for people at /. They may be nil.
	Status, Recording, Console http.Handler

	// Ready is closed once the registry has been filled. Until then, Unready returns the reason.
	Ready   <-chan struct{}
	Unready func() string
	// Listening is called once, when all addresses serve. Addresses that are not configured are nil.
	Listening func(http, grpc, diagnostics, health net.Addr)
	Logger    *slog.Logger

	// Notices returns what operators should know though calls are answered, such as a certificate near its end, for
	// /readyz?verbose. It may be nil.
	Notices func() []status.Notice
	// Renew receives when connections that were accepted before must end: each after its calls in flight, idle ones at
	// once. It may be nil.
	Renew <-chan struct{}

	// MaxConnectionAge is the age, give or take a tenth, at which connections of callers end, each after its calls in
	// flight: a caller that keeps one connection, as Cluster API does, would call one replica for ever. Zero bounds none.
	MaxConnectionAge time.Duration
	// ShutdownDelay is how long calls are still accepted after /readyz has started to fail, so that load balancers
	// notice. Answers over REST close their connections meanwhile, so that callers connect to another gateway.
	ShutdownDelay time.Duration
	// ShutdownTimeout bounds how long calls in flight may take after that. Zero means 40 s, more than any call may
	// take.
	ShutdownTimeout time.Duration
}

// Server serves both fronts, the diagnostics and the health. Call Run once.
type Server struct {
	config   Config
	draining atomic.Bool

	front      *http.Server
	grpc       *grpcServers
	grpcHealth *health.Server
	sides      []*Side // diagnostics first, then health if that is served
	serving    sync.WaitGroup

	restCalls, grpcCalls inFlight
	// The listeners of the fronts; that of gRPC is nil if it is not served.
	restListener, grpcListener *Listener
}

// NewServer returns a Server. It does not listen yet.
func NewServer(c Config) *Server {
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
	s.newREST(l.http)
	s.newGRPC(l.grpc)
	s.newSides(l)
	failed := s.serve()
	s.config.Listening(addressOf(l.http), addressOf(l.grpc), l.diagnostics.Addr(), addressOf(l.health))
	err = s.wait(ctx, failed)

	s.draining.Store(true)
	s.grpcHealth.Shutdown()
	if err == nil {
		time.Sleep(s.config.ShutdownDelay)
	}
	err = errors.Join(err, s.drain())
	for _, side := range s.sides {
		err = errors.Join(err, side.Close())
	}
	s.serving.Wait()
	return err
}

func (s *Server) newREST(l net.Listener) {
	if l == nil {
		return
	}
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.restCalls.begin()
		defer s.restCalls.end()
		s.config.REST.ServeHTTP(w, r)
	})
	s.front = newHTTPServer(handler, s.config.TLS, HTTP2Settings(), s.config.Logger)
	s.restListener = forFront(l, "REST", descriptors(), s.config.Logger)
	s.restListener.maxAge = s.config.MaxConnectionAge
	s.restListener.attach(s.front, s.draining.Load)
}

func (s *Server) newGRPC(l net.Listener) {
	s.grpcHealth = health.NewServer()
	s.grpcHealth.SetServingStatus("", healthv1.HealthCheckResponse_NOT_SERVING)
	s.grpc = newGRPCServers(func() *grpc.Server {
		server := grpc.NewServer(slices.Concat(s.grpcOptions(), s.config.GRPCOptions)...)
		s.config.Register(server)
		healthv1.RegisterHealthServer(server, s.grpcHealth)
		reflection.Register(server)
		return server
	}, s.config.Logger)
	if l != nil {
		s.grpcListener = forFront(l, "gRPC", descriptors(), s.config.Logger)
	}
}

func (s *Server) newSides(l listeners) {
	for _, x := range []struct {
		name     string
		listener net.Listener
		SideConfig
	}{
		{"diagnostics", l.diagnostics, SideConfig{
			Address: s.config.DiagnosticsAddress, TLS: s.config.DiagnosticsTLS, Handler: s.diagnosticsMux(),
		}},
		{"health", l.health, SideConfig{Address: s.config.HealthAddress, Handler: s.healthMux()}},
	} {
		if x.listener != nil {
			x.Name, x.Logger = x.name, s.config.Logger
			side := NewSide(x.SideConfig)
			side.listenOn(x.listener)
			s.sides = append(s.sides, side)
		}
	}
}

// renew ends the connections that were accepted before.
func (s *Server) renew() {
	if s.front != nil {
		s.restListener.generation.Add(1)
		s.front.SetKeepAlivesEnabled(false) // closes those that are idle
		s.front.SetKeepAlivesEnabled(true)
	}
	s.grpc.renew()
}

// serve starts to serve on every listener. The channel receives the error of a server that fails.
func (s *Server) serve() <-chan error {
	failed := make(chan error, 2+len(s.sides))
	start := func(run func() error) {
		s.serving.Go(func() {
			if err := run(); err != nil {
				failed <- err
			}
		})
	}
	if s.front != nil {
		start(func() error {
			if err := s.front.ServeTLS(s.restListener, "", ""); !errors.Is(err, http.ErrServerClosed) {
				return fmt.Errorf("serve HTTP: %w", err)
			}
			return nil
		})
	}
	if s.grpcListener != nil {
		start(func() error { return s.grpc.serve(s.grpcListener) })
	}
	for _, side := range s.sides {
		start(side.serve)
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
	var fronts []drainingFront
	if s.front != nil {
		fronts = append(fronts, drainingFront{
			protocol: "HTTP", calls: &s.restCalls, listener: s.restListener,
			graceful: func(ctx context.Context) { _ = s.front.Shutdown(ctx) }, // ctx ends it, which is no error
			cut:      func() { _ = s.front.Close() },                          // the listener is closed already
		})
	}
	if s.grpcListener != nil {
		fronts = append(fronts, drainingFront{
			protocol: "gRPC", calls: &s.grpcCalls, listener: s.grpcListener,
			graceful: func(context.Context) {
				s.grpcListener.closeUnfinished()
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
	a := arrivals{timeout: limits.ReceiveTimeout, calls: &s.grpcCalls, logger: s.config.Logger}
	return append(a.options(),
		grpc.Creds(countingCredentials{credentials.NewTLS(s.config.TLS)}),
		grpc.ConnectionTimeout(limits.HandshakeTimeout),
		grpc.MaxConcurrentStreams(limits.Streams),
		grpc.MaxHeaderListSize(limits.HeaderBytes),
		grpc.KeepaliveParams(keepalive.ServerParameters{
			MaxConnectionIdle: limits.IdleTimeout, Time: limits.KeepaliveTime, Timeout: limits.KeepaliveTimeout,
			MaxConnectionAge: s.config.MaxConnectionAge, MaxConnectionAgeGrace: limits.RenewTimeout,
		}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{
			MinTime: limits.LeastPingTime, PermitWithoutStream: true,
		}),
	)
}

// HTTP2Settings returns the limits of connections over HTTP/2. Calls that wait for memory do not read their bodies:
// each may have little unread, so that all that may wait leave room for the other calls of their connection.
func HTTP2Settings() *http.HTTP2Config {
	const perStream = 256 << 10
	return &http.HTTP2Config{
		MaxConcurrentStreams: limits.Streams, MaxReceiveBufferPerStream: perStream,
		MaxReceiveBufferPerConnection: 2 * perStream * budget.MaxWaitingShare,
		WriteByteTimeout:              limits.AnswerPatience,
	}
}
