// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package servers

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net/http"
	"net/http/httptrace"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/hookgate/hookgate/internal/base/status"
	"github.com/hookgate/hookgate/test/process"
)

// awaitRenewal waits until the server has done what it was told before: it does one thing after the other, and reports
// last that the registry is ready.
func (r *running) awaitRenewal(t *testing.T) {
	t.Helper()
	close(r.ready)
	process.Eventually(t, "the server reports that it is ready", func() bool {
		return r.grpcHealth(t) == healthv1.HealthCheckResponse_SERVING
	})
}

// TestRenewEndsConnectionsWithCalls holds that a call in flight is answered, and that the next one tells the caller to
// connect again, over both versions of HTTP.
func TestRenewEndsConnectionsWithCalls(t *testing.T) {
	for _, protocol := range []string{"http/1.1", "h2"} {
		t.Run(protocol, func(t *testing.T) {
			renew, called, answer := make(chan struct{}), make(chan struct{}), make(chan struct{})
			r := startServer(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/slow" {
					called <- struct{}{}
					<-answer
				}
			}), func(c *Config) { c.Renew = renew })
			config := r.tls.Clone()
			config.NextProtos = []string{protocol}
			client := &http.Client{Transport: &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: protocol == "h2"}}
			t.Cleanup(client.CloseIdleConnections)
			reused := func(path string) bool {
				t.Helper()
				var was bool
				ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{
					GotConn: func(info httptrace.GotConnInfo) { was = info.Reused },
				})
				request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+r.http+path, http.NoBody)
				if err != nil {
					t.Fatal(err)
				}
				response, err := client.Do(request)
				if err != nil {
					t.Fatalf("%s: %v", path, err)
				}
				_, _ = io.Copy(io.Discard, response.Body)
				_ = response.Body.Close()
				return was
			}
			if reused("/") || !reused("/") {
				t.Fatal("the connection is not kept between calls")
			}
			slow := make(chan bool)
			go func() { slow <- reused("/slow") }()
			<-called
			renew <- struct{}{}
			r.awaitRenewal(t)
			close(answer)
			if !<-slow {
				t.Error("the call in flight was not on the first connection")
			}
			if !reused("/") {
				t.Error("the connection has ended before it was told so")
			}
			if reused("/") {
				t.Error("the connection stays")
			}
			if !reused("/") {
				t.Error("connections that were accepted afterwards are not kept")
			}
		})
	}
}

// TestRenewEndsIdleConnections holds that a connection that sends no further request ends, too, be it idle or not when
// that is due.
func TestRenewEndsIdleConnections(t *testing.T) {
	for name, inFlight := range map[string]bool{"idle": false, "with a call": true} {
		t.Run(name, func(t *testing.T) {
			renew, called, answer := make(chan struct{}), make(chan struct{}, 1), make(chan struct{})
			r := startServer(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
				called <- struct{}{}
				<-answer
			}), func(c *Config) { c.Renew = renew })
			conn, err := tls.Dial("tcp", r.http, r.tls)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = conn.Close() }()
			if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: a\r\n\r\n"); err != nil {
				t.Fatal(err)
			}
			<-called
			if inFlight {
				renew <- struct{}{}
				r.awaitRenewal(t)
			}
			close(answer)
			reader := bufio.NewReader(conn)
			response, err := http.ReadResponse(reader, nil)
			if err != nil {
				t.Fatal(err)
			}
			_, _ = io.Copy(io.Discard, response.Body)
			_ = response.Body.Close()
			if !inFlight {
				renew <- struct{}{}
			}
			if err := conn.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
				t.Fatal(err)
			}
			if _, err := reader.ReadByte(); !errors.Is(err, io.EOF) {
				t.Errorf("the connection stays: %v", err)
			}
		})
	}
}

// slowHealth is a service with one call that lasts as long as the test wants.
type slowHealth struct {
	healthv1.UnimplementedHealthServer
	called, answer chan struct{}
}

func (s slowHealth) Check(context.Context, *healthv1.HealthCheckRequest) (*healthv1.HealthCheckResponse, error) {
	s.called <- struct{}{}
	<-s.answer
	return &healthv1.HealthCheckResponse{}, nil
}

// slowService is Health by another name.
var slowService = grpc.ServiceDesc{
	ServiceName: "test.Slow", HandlerType: (*healthv1.HealthServer)(nil), Methods: healthv1.Health_ServiceDesc.Methods,
}

// TestRenewEndsConnectionsOverGRPC holds the same for gRPC: the call in flight is answered, and another connection takes
// the next one.
func TestRenewEndsConnectionsOverGRPC(t *testing.T) {
	renew := make(chan struct{})
	slow := slowHealth{called: make(chan struct{}), answer: make(chan struct{})}
	r := startServer(t, http.NotFoundHandler(), func(c *Config) {
		c.Renew = renew
		c.Register = func(s grpc.ServiceRegistrar) { s.RegisterService(&slowService, slow) }
	})
	conn, err := grpc.NewClient(r.grpc, grpc.WithTransportCredentials(credentials.NewTLS(r.tls)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	done := make(chan error)
	go func() {
		done <- conn.Invoke(t.Context(), "/test.Slow/Check", &healthv1.HealthCheckRequest{}, &healthv1.HealthCheckResponse{})
	}()
	<-slow.called
	renew <- struct{}{}
	for state := connectivity.Ready; state == connectivity.Ready; state = conn.GetState() { // until GOAWAY arrives
		time.Sleep(time.Millisecond)
	}
	if _, err := healthv1.NewHealthClient(conn).Check(t.Context(), &healthv1.HealthCheckRequest{},
		grpc.WaitForReady(true)); err != nil {
		t.Errorf("a call on another connection: %v", err)
	}
	close(slow.answer)
	if err := <-done; err != nil {
		t.Errorf("the call in flight: %v", err)
	}
	r.stop()
	if err := <-r.done; err != nil {
		t.Errorf("the end after a renewal: %v", err)
	}
}

func TestVerboseReadyz(t *testing.T) {
	warning := "expires at 2027-01-01T00:00:00Z: replace it"
	r := startServer(t, http.NotFoundHandler(), func(c *Config) {
		c.Notices = func() []status.Notice {
			return []status.Notice{{Name: "certificate/serving", Text: warning}, {Name: "manifests"}, {Name: "more", Text: "1 error", Details: []string{"secret"}}}
		}
	})
	code, text := get(t, "http://"+r.diagnostics+"/readyz?verbose")
	want := "[-]registrations failed: the gateway has not read its ExtensionConfigs yet\n[!]certificate/serving: " +
		warning + "\n[+]manifests ok\n[!]more: 1 error; see the log, or hookgate get extensions\nreadyz check failed"
	if code != http.StatusServiceUnavailable || text != want {
		t.Errorf("before: %d\n%s\nwant\n%s", code, text, want)
	}
	close(r.ready)
	code, text = get(t, "http://"+r.health+"/readyz?verbose=1")
	if want = strings.Replace(strings.Replace(want, "failed: the gateway has not read its ExtensionConfigs yet", "ok", 1), "[-]", "[+]", 1); code !=
		http.StatusOK || text != strings.Replace(want, "check failed", "check passed", 1) {
		t.Errorf("after: %d\n%s", code, text)
	}
}
