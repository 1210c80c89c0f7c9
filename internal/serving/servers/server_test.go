// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package servers

import (
	"context"
	"crypto/tls"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/hookgate/hookgate/internal/base/limits"
)

// running is a Server that runs.
type running struct {
	http, grpc, diagnostics, health string
	tls                             *tls.Config
	ready                           chan struct{}
	server                          *Server
	stop                            context.CancelFunc
	done                            chan error
}

func startServer(t *testing.T, rest http.Handler, change ...func(*Config)) *running {
	t.Helper()
	certificate := httptest.NewUnstartedServer(nil)
	certificate.StartTLS()
	t.Cleanup(certificate.Close)
	ctx, stop := context.WithCancel(t.Context())
	r := &running{ready: make(chan struct{}), stop: stop, done: make(chan error, 1), tls: certificate.Client().Transport.(*http.Transport).TLSClientConfig.Clone()}
	r.tls.ServerName = "example.com"
	listening := make(chan struct{})
	config := Config{
		HTTPAddress: "127.0.0.1:0", GRPCAddress: "127.0.0.1:0", DiagnosticsAddress: "127.0.0.1:0", HealthAddress: "127.0.0.1:0",
		TLS:      &tls.Config{Certificates: certificate.TLS.Certificates, NextProtos: []string{"h2", "http/1.1"}},
		REST:     rest,
		Register: func(grpc.ServiceRegistrar) {},
		Metrics:  http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }),
		Ready:    r.ready,
		Unready:  func() string { return "the gateway has not read its ExtensionConfigs yet" },
		Listening: func(http, grpc, diagnostics, health net.Addr) {
			r.http, r.grpc, r.diagnostics, r.health = http.String(), grpc.String(), diagnostics.String(), health.String()
			close(listening)
		},
		Logger:          slog.New(slog.DiscardHandler),
		ShutdownTimeout: time.Minute,
	}
	for _, f := range change {
		f(&config)
	}
	r.server = NewServer(config)
	go func() { r.done <- r.server.Run(ctx) }()
	t.Cleanup(func() { stop() })
	select {
	case <-listening:
	case err := <-r.done:
		t.Fatal(err)
	}
	return r
}

// readyz asks both addresses that have /readyz; they must agree.
func (r *running) readyz(t *testing.T) (int, string) {
	t.Helper()
	code, text := get(t, "http://"+r.diagnostics+"/readyz")
	if healthCode, healthText := get(t, "http://"+r.health+"/readyz"); code != healthCode || text != healthText {
		t.Errorf("/readyz of the diagnostics says %d %s, the one of the health address %d %s", code, text, healthCode, healthText)
	}
	return code, text
}

func get(t *testing.T, url string) (int, string) {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, strings.TrimSpace(string(body))
}

func (r *running) grpcHealth(t *testing.T) healthv1.HealthCheckResponse_ServingStatus {
	t.Helper()
	conn, err := grpc.NewClient(r.grpc, grpc.WithTransportCredentials(credentials.NewTLS(r.tls)))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	resp, err := healthv1.NewHealthClient(conn).Check(t.Context(), &healthv1.HealthCheckRequest{})
	if err != nil {
		t.Fatal(err)
	}
	return resp.GetStatus()
}

func TestServerIsReadyWhenTheRegistryIs(t *testing.T) {
	r := startServer(t, http.NotFoundHandler())
	if code, text := r.readyz(t); code != http.StatusServiceUnavailable || !strings.Contains(text, "has not read its ExtensionConfigs yet") {
		t.Errorf("before: %d %s", code, text)
	}
	if got := r.grpcHealth(t); got != healthv1.HealthCheckResponse_NOT_SERVING {
		t.Errorf("before: gRPC health says %s", got)
	}
	close(r.ready)
	if code, text := r.readyz(t); code != http.StatusOK {
		t.Errorf("after: %d %s", code, text)
	}
	for deadline := time.Now().Add(time.Minute); r.grpcHealth(t) != healthv1.HealthCheckResponse_SERVING; {
		if time.Now().After(deadline) {
			t.Fatal("gRPC health does not say that it serves")
		}
	}
}

func TestHealthAddressServesNothingElse(t *testing.T) {
	r := startServer(t, http.NotFoundHandler())
	if code, text := get(t, "http://"+r.health+"/healthz"); code != http.StatusOK || text != "ok" {
		t.Errorf("/healthz: %d %s", code, text)
	}
	if code, text := get(t, "http://"+r.diagnostics+"/metrics"); code != http.StatusTeapot {
		t.Errorf("/metrics of the diagnostics: %d %s, want the handler of the metrics", code, text)
	}
	if code, text := get(t, "http://"+r.health+"/metrics"); code != http.StatusNotFound {
		t.Errorf("/metrics of the health address: %d %s, want 404: it is not protected", code, text)
	}
}

func TestServerDrains(t *testing.T) {
	arrived, finish := make(chan struct{}), make(chan struct{})
	r := startServer(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		close(arrived)
		<-finish
		_, _ = io.WriteString(w, "finished")
	}))
	close(r.ready)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: r.tls}}
	defer client.CloseIdleConnections()
	answer := make(chan string, 1)
	go func() {
		resp, err := client.Get("https://" + r.http)
		if err != nil {
			answer <- err.Error()
			return
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		answer <- string(body) + map[bool]string{true: "", false: " and failed"}[err == nil]
	}()
	<-arrived
	r.stop()
	waitForDrain(t, r)
	select {
	case err := <-r.done:
		t.Fatalf("stopped before the call in flight had its answer: %v", err)
	default:
	}
	close(finish)
	if got := <-answer; got != "finished" {
		t.Errorf("the call in flight got %q", got)
	}
	if err := <-r.done; err != nil {
		t.Errorf("drain: %v", err)
	}
}

func TestServerSaysWhichPortIsInUse(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	err = NewServer(Config{HTTPAddress: "127.0.0.1:0", GRPCAddress: taken.Addr().String(), DiagnosticsAddress: "127.0.0.1:0"}).Run(t.Context())
	if want := "listen on " + taken.Addr().String() + ": the port is in use: stop the program that uses it, or choose another port with --grpc-address"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// TestOtherAddressesBoundConnections opens idle connections to the addresses that ask for no credentials before a
// handshake.
func TestOtherAddressesBoundConnections(t *testing.T) {
	r := startServer(t, http.NotFoundHandler())
	for name, address := range map[string]string{"diagnostics": r.diagnostics, "health": r.health} {
		for range limits.SideHostConnections {
			c, err := new(net.Dialer).DialContext(t.Context(), "tcp", address)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
		}
		if code, text := get(t, "http://"+address+"/healthz"); code != 0 {
			t.Errorf("%s: one more connection is answered %d %s", name, code, text)
		}
	}
}

// Listening fails as a whole: an address that was opened before the one that is in use is given back.
func TestServerListensOnAllAddressesOrNone(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	free, err := net.Listen("tcp", "127.0.0.8:0") // where no other program listens, so that it stays free
	if err != nil {
		t.Fatal(err)
	}
	address := free.Addr().String()
	free.Close()
	for _, c := range []Config{
		{HTTPAddress: address, DiagnosticsAddress: taken.Addr().String()},
		{HTTPAddress: "127.0.0.1:0", GRPCAddress: address, DiagnosticsAddress: taken.Addr().String()},
		{HTTPAddress: "127.0.0.1:0", DiagnosticsAddress: address, HealthAddress: taken.Addr().String()},
	} {
		if err := NewServer(c).Run(t.Context()); err == nil {
			t.Fatal("the server listens on an address that is in use")
		}
		again, err := net.Listen("tcp", address)
		if err != nil {
			t.Fatalf("the address is still open: %v", err)
		}
		again.Close()
	}
}

// blockingGRPC registers a handler for every gRPC method that closes arrived and answers when finish is closed.
func blockingGRPC(arrived, finish chan struct{}) func(*Config) {
	return func(c *Config) {
		c.GRPCOptions = []grpc.ServerOption{grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
			close(arrived)
			select {
			case <-finish:
			case <-stream.Context().Done():
				return stream.Context().Err()
			}
			return stream.SendMsg(&healthv1.HealthCheckResponse{Status: healthv1.HealthCheckResponse_SERVING})
		})}
	}
}

func (r *running) callGRPC(t *testing.T) <-chan error {
	t.Helper()
	conn, err := grpc.NewClient(r.grpc, grpc.WithTransportCredentials(credentials.NewTLS(r.tls)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	answered := make(chan error, 1)
	go func() {
		answered <- conn.Invoke(context.Background(), "/test.Service/Method", &healthv1.HealthCheckRequest{}, &healthv1.HealthCheckResponse{})
	}()
	return answered
}

func TestServerDrainsGRPC(t *testing.T) {
	arrived, finish := make(chan struct{}), make(chan struct{})
	r := startServer(t, http.NotFoundHandler(), blockingGRPC(arrived, finish))
	answered := r.callGRPC(t)
	<-arrived
	r.stop()
	waitForDrain(t, r)
	select {
	case err := <-r.done:
		t.Fatalf("stopped before the call in flight had its answer: %v", err)
	default:
	}
	close(finish)
	if err := <-answered; err != nil {
		t.Errorf("the call in flight got %v", err)
	}
	if err := <-r.done; err != nil {
		t.Errorf("drain: %v", err)
	}
}

// waitForDrain returns when /readyz reports that the server shuts down.
func waitForDrain(t *testing.T, r *running) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; {
		if code, text := get(t, "http://"+r.diagnostics+"/readyz"); code == http.StatusServiceUnavailable && text == "not ready: shutting down" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("readyz does not say that it shuts down")
		}
	}
}

// Calls that take longer than the drain may are cut off, and the error names their protocol.
func TestServerGivesUpOnCallsThatDoNotEnd(t *testing.T) {
	arrivedGRPC, arrivedHTTP, never := make(chan struct{}), make(chan struct{}), make(chan struct{})
	r := startServer(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(arrivedHTTP)
		<-r.Context().Done()
	}), blockingGRPC(arrivedGRPC, never), func(c *Config) { c.ShutdownTimeout = 50 * time.Millisecond })
	answered := r.callGRPC(t)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: r.tls}}
	defer client.CloseIdleConnections()
	go func() {
		if resp, err := client.Get("https://" + r.http); err == nil {
			resp.Body.Close()
		}
	}()
	<-arrivedHTTP
	<-arrivedGRPC
	r.stop()
	err := <-r.done
	for _, want := range []string{"drain HTTP: calls were still in flight after 50ms", "drain gRPC: calls were still in flight after 50ms"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	if err := <-answered; err == nil {
		t.Error("the gRPC call that was cut off has an answer")
	}
}

// During the delay, calls are still taken, but the server reports that it is not ready, and answers close their
// connections.
func TestServerTakesCallsDuringTheShutdownDelay(t *testing.T) {
	t.Parallel()
	const delay = 8 * time.Second // in which calls are made
	r := startServer(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "taken") }),
		func(c *Config) { c.ShutdownDelay = delay })
	close(r.ready)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: r.tls}}
	defer client.CloseIdleConnections()
	closes := func() bool {
		t.Helper()
		resp, err := client.Get("https://" + r.http)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		return resp.Close
	}
	if closes() {
		t.Error("an answer closes its connection before the shutdown")
	}
	start := time.Now()
	r.stop()
	waitForDrain(t, r)
	if !closes() {
		t.Error("an answer does not close its connection during the delay")
	}
	if err := <-r.done; err != nil || time.Since(start) < delay {
		t.Errorf("stopped after %s with %v, want it to wait for the delay", time.Since(start), err)
	}
}

// A web page whose name resolves to loopback reads nothing.
func TestDiagnosticsRefuseAForeignHost(t *testing.T) {
	r := startServer(t, http.NotFoundHandler(), func(c *Config) { c.Console = http.NotFoundHandler() })
	for _, path := range []string{"/metrics", "/status", "/readyz?verbose", "/"} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+r.diagnostics+path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		request.Host = "evil.example"
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if response.StatusCode != http.StatusMisdirectedRequest {
			t.Errorf("%s answers %s to a foreign Host", path, response.Status)
		}
	}
}
