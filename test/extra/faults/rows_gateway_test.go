// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"google.golang.org/grpc/connectivity"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/hookgate/hookgate/test/process"
	"github.com/hookgate/hookgate/test/samples"
)

// gatewayFaults are the rows that end a gateway, or let it refuse the healthy callers: each has a gateway of its own.
func gatewayFaults() []row {
	return []row{
		{"SIGTERM with idle connections", "gone without a wait for them, with status 0", endedWhileIdle},
		{"ca.crt appears", "connections without a certificate end", authoritiesAppear},
	}
}

// another starts another gateway, with a healthy extension.
func (w *fixture) another(t *testing.T, flags ...string) *gateway {
	t.Helper()
	good := startExtension(t, w.authority, healthy)
	g := startGateway(t, w.authority, map[string]string{"good.yaml": w.config("good", "https://"+good.https)}, flags...)
	process.Eventually(t, "the extension is called", func() bool {
		return callREST(w.rest, g.HTTPS, handler+".good", samples.Body("BeforeClusterCreate")) == nil
	})
	return g
}

// endedWhileIdle ends a gateway that has 20 gRPC connections without a first frame, and a stream of its health. If it
// waited for one of them, it would take an hour.
func endedWhileIdle(t *testing.T, w *fixture, c *tally) {
	g := w.another(t, "--shutdown-timeout=1h")
	config := w.client.Clone()
	config.NextProtos = []string{"h2"}
	for range 20 {
		conn, err := tls.Dial("tcp", g.GRPC, config)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close() }()
	}
	conn, err := dialGRPC(g.GRPC, attacker, w.client)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	watch, err := healthv1.NewHealthClient(conn).Watch(t.Context(), &healthv1.HealthCheckRequest{})
	if err == nil {
		_, err = watch.Recv()
	}
	if err != nil {
		t.Fatalf("watch the health: %v", err)
	}
	if err := g.Terminate(); err != nil {
		t.Fatal(err)
	}
	code := g.ExitCode(t)
	c.countf(code == 0, "exit status %d", code)
}

// authoritiesAppear lets a gateway demand certificates of its callers while some are connected without one.
func authoritiesAppear(t *testing.T, w *fixture, c *tally) {
	g := w.another(t)
	rest, err := tls.Dial("tcp", g.HTTPS, w.client)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rest.Close() }()
	if _, err := io.WriteString(rest, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if _, err := rest.Read(make([]byte, 1)); err != nil { // the beginning of an answer: the connection is in use
		t.Fatal(err)
	}
	rpc, err := dialGRPC(g.GRPC, attacker, w.client)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rpc.Close() }()
	err = callGRPC(rpc, handler+".good")
	c.countf(err == nil, "%v", err)

	replace(t, filepath.Join(g.certs, "ca.crt"), string(w.PEM))
	ctx, cancel := context.WithTimeout(t.Context(), process.Patience)
	defer cancel()
	c.countf(rpc.WaitForStateChange(ctx, connectivity.Ready), "a gRPC connection without a certificate stays")
	_ = rest.SetReadDeadline(time.Now().Add(process.Patience))
	_, err = io.Copy(io.Discard, rest)
	c.countf(!errors.Is(err, os.ErrDeadlineExceeded), "a connection without a certificate stays")
	process.Eventually(t, "new callers without a certificate are refused", func() bool {
		w.rest.CloseIdleConnections()
		return callREST(w.rest, g.HTTPS, handler+".good", samples.Body("BeforeClusterCreate")) != nil
	})
	c.countf(true, "")
}
