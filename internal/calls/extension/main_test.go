// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hookgate/hookgate/catalog"
	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/leaktest"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/contract/codec"
	"github.com/hookgate/hookgate/internal/network/devcert"
	"github.com/hookgate/hookgate/registry"
	"github.com/hookgate/hookgate/test/certificates"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

const success = `{"apiVersion":"hooks.runtime.cluster.x-k8s.io/v1alpha1","kind":"BeforeClusterCreateResponse",` +
	`"status":"Success","message":"fine","retryAfterSeconds":7}`

// patience is how long a test waits for something before it fails: for longer than a busy machine takes.
const patience = time.Minute

// deadline is a context whose deadline passes when the test says so, so that a busy machine does not let it pass
// earlier.
type deadline struct {
	context.Context

	passed chan struct{} // closed once it has passed
}

// Deadline returns a time before the timeouts of calls and of discovery.
func (deadline) Deadline() (time.Time, bool) {
	return time.Now().Add(limits.DiscoveryTimeout - time.Second), true
}

func (d deadline) Done() <-chan struct{} { return d.passed }

func (d deadline) Err() error {
	select {
	case <-d.passed:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

func newAuthority(t testing.TB) *devcert.Authority {
	t.Helper()
	a, err := devcert.NewAuthority(time.Now().Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// issue returns a certificate for 127.0.0.1 and ext.example.
func issue(t testing.TB, a *devcert.Authority, notAfter time.Time) tls.Certificate {
	t.Helper()
	pair, err := a.Issue(notAfter, "ext.example")
	if err != nil {
		t.Fatal(err)
	}
	return certificates.Of(t, pair)
}

// server is an extension under test.
type server struct {
	*httptest.Server
	cc registry.ClientConfig

	mu     sync.Mutex
	states map[http.ConnState]int
	notify chan struct{} // closed and replaced at every change of a connection's state
}

// newServer starts an extension. configure may change the server before it starts.
func newServer(t testing.TB, a *devcert.Authority, handler http.HandlerFunc, configure func(*httptest.Server)) *server {
	t.Helper()
	s := &server{Server: httptest.NewUnstartedServer(handler), states: map[http.ConnState]int{}, notify: make(chan struct{})}
	s.TLS = &tls.Config{Certificates: []tls.Certificate{issue(t, a, time.Now().Add(time.Hour))}}
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.states[state]++
		close(s.notify)
		s.notify = make(chan struct{})
	}
	if configure != nil {
		configure(s.Server)
	}
	s.StartTLS()
	t.Cleanup(s.Close)
	s.cc = registry.ClientConfig{URL: s.URL, CABundle: a.PEM}
	return s
}

// seen returns how many connections have reached a state.
func (s *server) seen(state http.ConnState) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.states[state]
}

// await waits until n connections have reached a state.
func (s *server) await(t testing.TB, state http.ConnState, n int) {
	t.Helper()
	deadline := time.After(patience)
	for {
		s.mu.Lock()
		got, changed := s.states[state], s.notify
		s.mu.Unlock()
		if got >= n {
			return
		}
		select {
		case <-changed:
		case <-deadline:
			t.Fatalf("%d connections became %s, want %d", got, state, n)
		}
	}
}

// rawServer accepts TLS connections and leaves the rest to serve, which runs once for each and then closes it.
func rawServer(t testing.TB, a *devcert.Authority, serve func(net.Conn)) registry.ClientConfig {
	t.Helper()
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{issue(t, a, time.Now().Add(time.Hour))}})
	if err != nil {
		t.Fatal(err)
	}
	return serveRaw(t, l, a, serve)
}

func serveRaw(t testing.TB, l net.Listener, a *devcert.Authority, serve func(net.Conn)) registry.ClientConfig {
	t.Helper()
	var running sync.WaitGroup
	running.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			running.Go(func() {
				defer func() { _ = c.Close() }()
				serve(c)
			})
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		running.Wait()
	})
	return registry.ClientConfig{URL: "https://" + l.Addr().String(), CABundle: a.PEM}
}

// readRequest reads one request off a connection, body included.
func readRequest(c net.Conn) error {
	var text []byte
	buf := make([]byte, 4096)
	for {
		n, err := c.Read(buf)
		text = append(text, buf[:n]...)
		if strings.HasSuffix(string(text), "}") {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// withHooks sets what a Config needs.
func withHooks(config Config) Config {
	if config.Catalog == nil {
		config.Catalog = catalog.New()
	}
	config.Codec = codec.New(config.Catalog)
	config.RestartWait = cmp.Or(config.RestartWait, 1) // none, in tests of something else
	return config
}

func newREST(t testing.TB, config Config) *REST {
	t.Helper()
	r := NewREST(withHooks(config))
	t.Cleanup(r.Close)
	return r
}

// newCall returns a call of BeforeClusterCreate to the handler v of the ExtensionConfig acme.
func newCall(cc registry.ClientConfig) Call {
	h, _ := catalog.New().ByName("BeforeClusterCreate")
	handler := registry.Handler{Name: "v", Hook: h.GroupVersionHook, Timeout: limits.Timeout, FailurePolicy: hook.Fail}
	return Call{
		Hook: h,
		Handler: &registry.Entry{
			Name:         "v.acme",
			Handler:      handler,
			Registration: &registry.Registration{Name: "acme", ClientConfig: cc, Handlers: []registry.Handler{handler}},
		},
		Request: &hooksv1alpha1.BeforeClusterCreateRequest{
			Settings: map[string]string{"k": "v"},
			Cluster:  &hooksv1alpha1.RawExtension{Raw: []byte(`{"kind":"Cluster"}`)},
		},
	}
}

// mustCall makes a call that succeeds.
func mustCall(t testing.TB, r *REST, cc registry.ClientConfig) *hooksv1alpha1.BeforeClusterCreateResponse {
	t.Helper()
	result, err := r.Call(t.Context(), newCall(cc))
	if err != nil {
		t.Fatalf("Call: %v (%v)", err, errors.Unwrap(err))
	}
	return result.Response.(*hooksv1alpha1.BeforeClusterCreateResponse)
}

// wantError checks kind and text of a failed call, and that there is no answer beside it.
func wantError(t testing.TB, reason string, answer any, err error, kind hook.Kind, message string) {
	t.Helper()
	var e *hook.Error
	if !errors.As(err, &e) {
		t.Fatalf("%s: got %v, %v; want a hook.Error", reason, answer, err)
	}
	if e.Kind != kind || e.Error() != message {
		t.Errorf("%s: got %s: %s\n(cause: %v)\nwant %s: %s", reason, e.Kind, e, e.Cause, kind, message)
	}
	if answer != nil {
		t.Errorf("%s: got the answer %v beside the error", reason, answer)
	}
}

// call makes a call and returns its answer as any, so that no answer is nil.
func call(ctx context.Context, r *REST, c Call) (any, error) {
	result, err := r.Call(ctx, c)
	if result.Response == nil {
		return nil, err
	}
	return result.Response, err
}

func answer(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, req *http.Request) {
		// What is left of the request would keep the connection from being used again.
		_, _ = io.Copy(io.Discard, req.Body)
		_, _ = io.WriteString(w, text)
	}
}
