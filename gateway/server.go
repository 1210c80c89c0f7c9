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
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/reflection"
)

// ServerConfig is what a Server needs. All fields but GRPCAddress, HealthAddress and the durations are required.
type ServerConfig struct {
	HTTPAddress, DiagnosticsAddress string
	// GRPCAddress serves gRPC. Empty means that the gateway does not.
	GRPCAddress string
	// HealthAddress serves /healthz and /readyz once more, in plain HTTP, for probes that cannot show a certificate. They say
	// nothing but whether the gateway runs and takes calls. Empty serves them with the diagnostics only.
	HealthAddress string

	// TLS serves both fronts. DiagnosticsTLS serves diagnostics; nil means plain HTTP, which is for loopback only.
	TLS, DiagnosticsTLS *tls.Config

	REST        http.Handler
	GRPCOptions []grpc.ServerOption
	Register    func(grpc.ServiceRegistrar)
	Metrics     http.Handler

	// Ready is closed once the registry has been filled. Until then, Unready says what it waits for.
	Ready   <-chan struct{}
	Unready func() string
	// Listening is called once, when all addresses serve. Those that are not configured are nil.
	Listening func(http, grpc, diagnostics, health net.Addr)
	Logger    *slog.Logger

	// ShutdownDelay is how long calls are still taken after the gateway has said that it is not ready any more, so that
	// load balancers see that first.
	ShutdownDelay time.Duration
	// ShutdownTimeout bounds how long calls in flight may take then; zero means 40 s, more than any call may take.
	ShutdownTimeout time.Duration
}

// Server serves both fronts and the diagnostics.
type Server struct {
	config   ServerConfig
	draining atomic.Bool
}

// NewServer returns a Server. It does not listen yet.
func NewServer(c ServerConfig) *Server {
	if c.ShutdownTimeout == 0 {
		c.ShutdownTimeout = 40 * time.Second
	}
	return &Server{config: c}
}

// Run listens and serves until ctx is done, then drains: it says that it is not ready, takes no more calls, and returns
// when those in flight have their answers. It returns nil after a drain that left nothing behind.
func (s *Server) Run(ctx context.Context) error {
	l, err := s.listen(ctx)
	if err != nil {
		return err
	}
	front := s.httpServer(s.config.REST, s.config.TLS)
	diagnostics := s.httpServer(s.diagnostics(), s.config.DiagnosticsTLS)
	probes := s.httpServer(s.health(), nil)
	healthServer := health.NewServer()
	healthServer.SetServingStatus("", healthv1.HealthCheckResponse_NOT_SERVING)
	options := append([]grpc.ServerOption{grpc.Creds(credentials.NewTLS(s.config.TLS))}, s.config.GRPCOptions...)
	grpcServer := grpc.NewServer(options...)
	s.config.Register(grpcServer)
	healthv1.RegisterHealthServer(grpcServer, healthServer)
	reflection.Register(grpcServer)

	failed := make(chan error, 4)
	var wg sync.WaitGroup
	serve := func(name string, run func() error) {
		wg.Go(func() {
			if err := run(); err != nil && !errors.Is(err, http.ErrServerClosed) && !errors.Is(err, grpc.ErrServerStopped) {
				failed <- fmt.Errorf("serve %s: %w", name, err)
			}
		})
	}
	serve("HTTP", func() error { return front.ServeTLS(l.http, "", "") })
	if l.grpc != nil {
		serve("gRPC", func() error { return grpcServer.Serve(l.grpc) })
	}
	serve("diagnostics", func() error {
		if s.config.DiagnosticsTLS == nil {
			return diagnostics.Serve(l.diagnostics)
		}
		return diagnostics.ServeTLS(l.diagnostics, "", "")
	})
	if l.health != nil {
		serve("health", func() error { return probes.Serve(l.health) })
	}
	s.config.Listening(l.http.Addr(), addressOf(l.grpc), l.diagnostics.Addr(), addressOf(l.health))

	ready := s.config.Ready
	for err == nil && ctx.Err() == nil {
		select {
		case <-ready:
			ready = nil
			setServing(healthServer, grpcServer)
		case err = <-failed:
		case <-ctx.Done():
		}
	}
	s.draining.Store(true)
	healthServer.Shutdown()
	if err == nil && s.config.ShutdownDelay > 0 {
		time.Sleep(s.config.ShutdownDelay)
	}
	err = errors.Join(err, s.drain(front, grpcServer))
	err = errors.Join(err, diagnostics.Close(), probes.Close())
	wg.Wait()
	return err
}

// setServing marks the server, and each service by its name, as serving.
func setServing(h *health.Server, g *grpc.Server) {
	h.SetServingStatus("", healthv1.HealthCheckResponse_SERVING)
	for name := range g.GetServiceInfo() {
		h.SetServingStatus(name, healthv1.HealthCheckResponse_SERVING)
	}
}

// drain lets the calls in flight finish, on both fronts at the same time.
func (s *Server) drain(front *http.Server, grpcServer *grpc.Server) error {
	ctx, cancel := context.WithTimeout(context.Background(), s.config.ShutdownTimeout)
	defer cancel()
	stopped := make(chan struct{})
	go func() {
		grpcServer.GracefulStop()
		close(stopped)
	}()
	err := front.Shutdown(ctx)
	if err != nil {
		err = errors.Join(fmt.Errorf("drain HTTP: calls were still in flight after %s", s.config.ShutdownTimeout), front.Close())
	}
	select {
	case <-stopped:
	case <-ctx.Done():
		grpcServer.Stop()
		<-stopped
		err = errors.Join(err, fmt.Errorf("drain gRPC: calls were still in flight after %s", s.config.ShutdownTimeout))
	}
	return err
}

// listeners are the open addresses. Those that are not configured are nil.
type listeners struct{ http, grpc, diagnostics, health net.Listener }

// listen opens all addresses, or none.
func (s *Server) listen(ctx context.Context) (listeners, error) {
	var opened listeners
	for _, l := range []struct {
		flag, address string
		optional      bool
		listener      *net.Listener
	}{
		{"--http-address", s.config.HTTPAddress, false, &opened.http},
		{"--grpc-address", s.config.GRPCAddress, true, &opened.grpc},
		{"--diagnostics-address", s.config.DiagnosticsAddress, false, &opened.diagnostics},
		{"--health-addr", s.config.HealthAddress, true, &opened.health},
	} {
		if l.optional && l.address == "" {
			continue
		}
		listener, err := new(net.ListenConfig).Listen(ctx, "tcp", l.address)
		if err != nil {
			for _, other := range []net.Listener{opened.http, opened.grpc, opened.diagnostics, opened.health} {
				if other != nil {
					_ = other.Close()
				}
			}
			if errors.Is(err, syscall.EADDRINUSE) {
				return listeners{}, fmt.Errorf("listen on %s: the port is in use: stop the program that has it, or choose another with %s", l.address, l.flag)
			}
			return listeners{}, fmt.Errorf("listen on %s (%s): %w", l.address, l.flag, err)
		}
		*l.listener = listener
	}
	return opened, nil
}

// addressOf returns the address of a listener, nil if there is none.
func addressOf(l net.Listener) net.Addr {
	if l == nil {
		return nil
	}
	return l.Addr()
}

// httpServer returns a server with limits on what a slow or idle peer can hold.
func (s *Server) httpServer(h http.Handler, tlsConfig *tls.Config) *http.Server {
	return &http.Server{
		Handler:           h,
		TLSConfig:         tlsConfig,
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       60 * time.Second,
		WriteTimeout:      2 * time.Minute, // from the header of the request on: what a call may take, and a slow reader
		IdleTimeout:       3 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          slog.NewLogLogger(s.config.Logger.Handler(), slog.LevelDebug),
	}
}

// diagnostics serves what health does, and /metrics.
func (s *Server) diagnostics() http.Handler {
	mux := s.health()
	mux.Handle("GET /metrics", s.config.Metrics)
	return mux
}

// health serves /healthz (the process runs) and /readyz (it takes calls).
func (s *Server) health() *http.ServeMux {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		switch {
		case s.draining.Load():
			http.Error(w, "not ready: shutting down", http.StatusServiceUnavailable)
		case !isClosed(s.config.Ready):
			http.Error(w, "not ready: "+s.config.Unready(), http.StatusServiceUnavailable)
		default:
			_, _ = fmt.Fprintln(w, "ok")
		}
	})
	return mux
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
