// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package servers

import (
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	reflectionv1 "google.golang.org/grpc/reflection/grpc_reflection_v1"
)

// stopsSoon stops the server, and fails unless it is gone within a few seconds and without an error.
func (r *running) stopsSoon(t *testing.T) {
	t.Helper()
	took := elapsed(t)
	r.stop()
	for gone := false; !gone; {
		select {
		case err := <-r.done:
			if err != nil {
				t.Errorf("drain: %v", err)
			}
			gone = true
		case <-time.After(10 * time.Millisecond):
		}
		if took := took(); took > 5*time.Second {
			t.Fatalf("gone is %t after %s", gone, took)
		}
	}
}

// No connection without a call keeps the server from stopping, whatever state it is in.
func TestIdleConnectionsDoNotHoldTheDrain(t *testing.T) {
	dial := func(t *testing.T, address string) net.Conn {
		t.Helper()
		c, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	for name, connect := range map[string]func(t *testing.T, r *running){
		"None":      func(*testing.T, *running) {},
		"RESTNew":   func(t *testing.T, r *running) { dial(t, r.http) },
		"GRPCNew":   func(t *testing.T, r *running) { dial(t, r.grpc) },
		"RESTTLS":   func(t *testing.T, r *running) { handshake(t, r, dial(t, r.http), "http/1.1") },
		"GRPCFrame": func(t *testing.T, r *running) { handshake(t, r, dial(t, r.grpc), "h2") },
		"RESTIdle": func(t *testing.T, r *running) {
			c := handshake(t, r, dial(t, r.http), "http/1.1")
			if _, err := io.WriteString(c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
				t.Fatal(err)
			}
			if _, err := c.Read(make([]byte, 10)); err != nil {
				t.Fatal(err)
			}
		},
		"RESTHalfAHeader": func(t *testing.T, r *running) {
			c := handshake(t, r, dial(t, r.http), "http/1.1")
			if _, err := io.WriteString(c, "POST / HTTP/1.1\r\nHost"); err != nil {
				t.Fatal(err)
			}
		},
		"HealthWatch": func(t *testing.T, r *running) {
			w, err := healthv1.NewHealthClient(r.dialGRPC(t)).Watch(t.Context(), &healthv1.HealthCheckRequest{})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := w.Recv(); err != nil {
				t.Fatal(err)
			}
		},
		"Reflection": func(t *testing.T, r *running) {
			s, err := reflectionv1.NewServerReflectionClient(r.dialGRPC(t)).ServerReflectionInfo(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			list := &reflectionv1.ServerReflectionRequest_ListServices{}
			if err := s.Send(&reflectionv1.ServerReflectionRequest{MessageRequest: list}); err != nil {
				t.Fatal(err)
			}
			if _, err := s.Recv(); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := startServer(t, http.NotFoundHandler(), func(c *Config) { c.ShutdownTimeout = time.Minute })
			for range 20 {
				connect(t, r)
			}
			r.stopsSoon(t)
		})
	}
}

// Where there are no calls, none is reported, however short the timeout is.
func TestDrainReportsOnlyCalls(t *testing.T) {
	r := startServer(t, http.NotFoundHandler(), func(c *Config) { c.ShutdownTimeout = 1 })
	if _, err := healthv1.NewHealthClient(r.dialGRPC(t)).Watch(t.Context(), &healthv1.HealthCheckRequest{}); err != nil {
		t.Fatal(err)
	}
	r.stopsSoon(t)
}

// dialGRPC returns a connection to the gRPC front, until the test ends.
func (r *running) dialGRPC(t *testing.T) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient(r.grpc, grpc.WithTransportCredentials(credentials.NewTLS(r.tls)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// handshake makes a TLS connection of c.
func handshake(t *testing.T, r *running, c net.Conn, protocol string) *tls.Conn {
	t.Helper()
	config := r.tls.Clone()
	config.NextProtos = []string{protocol}
	secure := tls.Client(c, config)
	if err := secure.HandshakeContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	return secure
}
