// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package servers

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"

	"github.com/hookgate/hookgate/test/process"
)

// quickService is Health by another name, with calls that tell which replica has answered.
var quickService = grpc.ServiceDesc{
	ServiceName: "test.Quick", HandlerType: (*healthv1.HealthServer)(nil), Methods: healthv1.Health_ServiceDesc.Methods,
}

type quickHealth struct {
	healthv1.UnimplementedHealthServer
	calls *atomic.Int64
}

func (q quickHealth) Check(context.Context, *healthv1.HealthCheckRequest) (*healthv1.HealthCheckResponse, error) {
	q.calls.Add(1)
	return &healthv1.HealthCheckResponse{}, nil
}

// replicas are two servers behind a balancer of connections, as a Service of Kubernetes is: the connections take turns.
type replicas struct {
	http, grpc string // the addresses of the balancer
	tls        *tls.Config
	calls      [2]atomic.Int64 // that each has answered
}

func startReplicas(t *testing.T, age time.Duration) *replicas {
	t.Helper()
	r := &replicas{}
	var https, grpcs []string
	for i := range r.calls {
		one := startServer(t, http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
			body, err := io.ReadAll(request.Body)
			if err != nil {
				return
			}
			r.calls[i].Add(1)
			_, _ = w.Write(body)
		}), func(c *Config) {
			c.MaxConnectionAge = age
			c.Register = func(s grpc.ServiceRegistrar) {
				s.RegisterService(&quickService, quickHealth{calls: &r.calls[i]})
			}
		})
		r.tls = one.tls
		https, grpcs = append(https, one.http), append(grpcs, one.grpc)
	}
	r.http, r.grpc = balance(t, https), balance(t, grpcs)
	return r
}

// balance listens for connections, which take turns on the addresses, until the test ends.
func balance(t *testing.T, to []string) string {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for next := 0; ; next++ {
			client, err := l.Accept()
			if err != nil {
				return // the test has ended
			}
			go func() {
				defer func() { _ = client.Close() }()
				server, err := net.Dial("tcp", to[next%len(to)])
				if err != nil {
					return
				}
				defer func() { _ = server.Close() }()
				var both sync.WaitGroup
				both.Go(func() { _, _ = io.Copy(server, client); _ = server.(*net.TCPConn).CloseWrite() })
				both.Go(func() { _, _ = io.Copy(client, server); _ = client.(*net.TCPConn).CloseWrite() })
				both.Wait()
			}()
		}
	}()
	return l.Addr().String()
}

// overHTTP returns a caller that keeps one connection: over HTTP/2 with the transport that Cluster API makes for an
// extension (internal/runtime/client, createHTTPClient), or over HTTP/1.1.
func (r *replicas) overHTTP(t *testing.T, protocol string) func() error {
	t.Helper()
	transport := &http.Transport{TLSClientConfig: r.tls.Clone(), MaxConnsPerHost: 1}
	if protocol == "h2" {
		transport = utilnet.SetTransportDefaults(&http.Transport{TLSClientConfig: r.tls.Clone()})
	}
	t.Cleanup(transport.CloseIdleConnections)
	client := &http.Client{Transport: transport}
	want := bytes.Repeat([]byte("{}"), 2<<10)
	return func() error {
		response, err := client.Post("https://"+r.http+"/", "application/json", bytes.NewBuffer(want))
		if err != nil {
			return err
		}
		defer func() { _ = response.Body.Close() }()
		got, err := io.ReadAll(response.Body)
		switch {
		case err != nil:
			return err
		case response.StatusCode != http.StatusOK || !bytes.Equal(got, want):
			return fmt.Errorf("status %d, %d bytes", response.StatusCode, len(got))
		case (response.ProtoMajor == 2) != (protocol == "h2"):
			return fmt.Errorf("the call was over %s", response.Proto)
		}
		return nil
	}
}

func (r *replicas) overGRPC(t *testing.T) func() error {
	t.Helper()
	conn, err := grpc.NewClient(r.grpc, grpc.WithTransportCredentials(credentials.NewTLS(r.tls)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return func() error {
		return conn.Invoke(t.Context(), "/test.Quick/Check", &healthv1.HealthCheckRequest{}, &healthv1.HealthCheckResponse{})
	}
}

// TestAgedConnectionsReachAllReplicas calls all the time with one client of each protocol: calls reach both replicas
// again and again, and none of them fails.
func TestAgedConnectionsReachAllReplicas(t *testing.T) {
	const age, workers, turns = 50 * time.Millisecond, 8, 6
	for name, caller := range map[string]func(*testing.T, *replicas) func() error{
		"HTTP2":  func(t *testing.T, r *replicas) func() error { return r.overHTTP(t, "h2") },
		"HTTP11": func(t *testing.T, r *replicas) func() error { return r.overHTTP(t, "http/1.1") },
		"GRPC":   func(t *testing.T, r *replicas) func() error { return r.overGRPC(t) },
	} {
		t.Run(name, func(t *testing.T) {
			r := startReplicas(t, age)
			call := caller(t, r)
			var made atomic.Int64
			stop := make(chan struct{})
			var calling sync.WaitGroup
			end := sync.OnceFunc(func() {
				close(stop)
				calling.Wait()
			})
			defer end()
			for range workers {
				calling.Go(func() {
					for {
						select {
						case <-stop:
							return
						default:
						}
						if err := call(); err != nil {
							t.Errorf("a call is lost: %v", err)
							return
						}
						made.Add(1)
					}
				})
			}
			for turn := range turns {
				i := turn % 2
				before := r.calls[i].Load()
				process.Eventually(t, fmt.Sprintf("replica %d has calls", i), func() bool {
					return r.calls[i].Load() > before || t.Failed()
				})
			}
			end()
			if made, answered := made.Load(), r.calls[0].Load()+r.calls[1].Load(); made != answered {
				t.Errorf("%d calls were answered %d times", made, answered)
			}
		})
	}
}

// TestConnectionsWithoutAnAgeStay holds that a server without a bound never ends a connection.
func TestConnectionsWithoutAnAgeStay(t *testing.T) {
	r := startReplicas(t, 0)
	for name, call := range map[string]func() error{"HTTP2": r.overHTTP(t, "h2"), "GRPC": r.overGRPC(t)} {
		before := [2]int64{r.calls[0].Load(), r.calls[1].Load()}
		for range 200 {
			if err := call(); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		if a, b := r.calls[0].Load()-before[0], r.calls[1].Load()-before[1]; min(a, b) != 0 {
			t.Errorf("%s: one replica had %d calls and the other %d, want all of them at one", name, a, b)
		}
	}
}

// TestAgedConnectionsKeepWhatIsInFlight holds a call over REST, and a stream over gRPC, for several ages of their
// connections.
func TestAgedConnectionsKeepWhatIsInFlight(t *testing.T) {
	for _, protocol := range []string{"http/1.1", "h2"} {
		called, answer := make(chan struct{}), make(chan struct{})
		r := startServer(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/slow" {
				called <- struct{}{}
				<-answer
			}
		}), func(c *Config) { c.MaxConnectionAge = time.Millisecond })
		config := r.tls.Clone()
		config.NextProtos = []string{protocol}
		client := &http.Client{Transport: &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: protocol == "h2"}}
		t.Cleanup(client.CloseIdleConnections)
		call := func(path string) error {
			response, err := client.Get("https://" + r.http + path)
			if err == nil {
				err = response.Body.Close()
			}
			return err
		}
		slow := make(chan error)
		go func() { slow <- call("/slow") }()
		<-called
		for range 20 { // over HTTP/2, the first of them ends the connection of the slow call for others
			if err := call("/"); err != nil {
				t.Errorf("%s: beside a slow call: %v", protocol, err)
			}
		}
		close(answer)
		if err := <-slow; err != nil {
			t.Errorf("%s: the call in flight: %v", protocol, err)
		}
	}
}

// TestAgedConnectionsKeepWatches holds that a watch of gRPC's health goes on while calls are on newer connections.
func TestAgedConnectionsKeepWatches(t *testing.T) {
	var connections atomic.Int64
	r := startServer(t, http.NotFoundHandler(), func(c *Config) { c.MaxConnectionAge = 20 * time.Millisecond })
	conn, err := grpc.NewClient(r.grpc, grpc.WithTransportCredentials(credentials.NewTLS(r.tls)),
		grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
			connections.Add(1)
			return new(net.Dialer).DialContext(ctx, "tcp", address)
		}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	client := healthv1.NewHealthClient(conn)
	watch, err := client.Watch(t.Context(), &healthv1.HealthCheckRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := watch.Recv(); err != nil {
		t.Fatal(err)
	}
	process.Eventually(t, "calls are on the third connection", func() bool {
		if _, err := client.Check(t.Context(), &healthv1.HealthCheckRequest{}); err != nil {
			t.Fatal(err)
		}
		return connections.Load() >= 3
	})
	close(r.ready)
	if got, err := watch.Recv(); err != nil || got.GetStatus() != healthv1.HealthCheckResponse_SERVING {
		t.Errorf("the watch got %v, %v", got, err)
	}
}

// TestAgesDiffer holds that connections that were made together do not end together, nor far from the age.
func TestAgesDiffer(t *testing.T) {
	if !agedAt(0).IsZero() {
		t.Error("without a bound, a connection has an end")
	}
	const age = time.Hour
	var soonest, latest time.Time
	for range 1000 {
		at := agedAt(age)
		if soonest.IsZero() || at.Before(soonest) {
			soonest = at
		}
		if at.After(latest) {
			latest = at
		}
	}
	low, high := time.Until(soonest), time.Until(latest)
	if low < 53*time.Minute || low > 58*time.Minute || high < 62*time.Minute || high > 66*time.Minute+time.Second {
		t.Errorf("connections end after %s to %s, want 54 to 66 minutes", low, high)
	}
}
