// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"crypto/tls"
	"encoding/json"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"

	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"

	"github.com/hookgate/hookgate/test/process"
)

// readyHandler is a handler that every stub has, so that a test can see in the gateway's discovery that it knows the
// stub: aggregates of lifecycle hooks are always listed.
const readyHandler = "ready"

// stub is an extension in this process, for answers that a real one would not give. Its discovery is well-behaved
// unless a test changes it.
type stub struct {
	server *httptest.Server

	mu       sync.Mutex
	handlers []runtimehooksv1.ExtensionHandler
	answers  map[string]http.HandlerFunc // by path
	bodies   map[string][]byte           // last request, by path
}

func startStub(t testing.TB, a *authority) *stub {
	t.Helper()
	s := &stub{answers: map[string]http.HandlerFunc{}, bodies: map[string][]byte{}}
	s.serve("DiscoverVariables", readyHandler, handlerOptions{},
		say(`{"kind":"DiscoverVariablesResponse","status":"Success"}`))
	s.answers[path("Discovery", "")] = s.discover
	s.server = httptest.NewUnstartedServer(s)
	s.server.EnableHTTP2 = true
	s.server.TLS = &tls.Config{Certificates: []tls.Certificate{a.certificate(t)}}
	s.server.Config.ErrorLog = log.New(io.Discard, "", 0) // broken connections are what some stubs are for
	s.server.StartTLS()
	t.Cleanup(func() {
		s.server.CloseClientConnections()
		s.server.Close()
	})
	return s
}

// startStubs starts a gateway with a single stub named "s", which prepare configures.
func startStubs(t *testing.T, prepare func(*stub), flags ...string) (*gateway, *stub) {
	t.Helper()
	process.Program(t, gatewayVariable)
	a := newAuthority(t)
	s := startStub(t, a)
	prepare(s)
	g := startGateway(t, a, map[string]string{"s.yaml": registration{name: "s", url: s.server.URL}.manifest(a)},
		flags...)
	g.awaitHandler(t, "ready--s")
	return g, s
}

// handlerOptions holds what discovery reports about a handler besides its name.
type handlerOptions struct {
	timeout int32 // seconds; 0 leaves it out
}

// serve adds a handler, or replaces its answer.
func (s *stub) serve(hook, name string, o handlerOptions, answer http.HandlerFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := runtimehooksv1.ExtensionHandler{Name: name,
		RequestHook: runtimehooksv1.GroupVersionHook{APIVersion: runtimehooksv1.GroupVersion.String(), Hook: hook}}
	if o.timeout != 0 {
		h.TimeoutSeconds = new(o.timeout)
	}
	if !slices.ContainsFunc(s.handlers, func(e runtimehooksv1.ExtensionHandler) bool { return e.Name == name }) {
		s.handlers = append(s.handlers, h)
	}
	s.answers[path(hook, name)] = answer
}

// ServeHTTP answers as the test configured, and records the request.
func (s *stub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	answer := s.answers[r.URL.Path]
	s.bodies[r.URL.Path] = body
	s.mu.Unlock()
	if answer == nil {
		http.NotFound(w, r)
		return
	}
	answer(w, r)
}

func (s *stub) discover(w http.ResponseWriter, _ *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = json.NewEncoder(w).Encode(runtimehooksv1.DiscoveryResponse{
		CommonResponse: runtimehooksv1.CommonResponse{Status: runtimehooksv1.ResponseStatusSuccess},
		Handlers:       s.handlers,
	})
}

// last returns the body of the last request for a handler.
func (s *stub) last(hook, handler string) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.bodies[path(hook, handler)]
}

// say answers 200 with a body.
func say(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, body) }
}

// success is the answer of a lifecycle hook that does not block.
func success(message string) http.HandlerFunc {
	text, _ := json.Marshal(message) // strings can always be written
	return say(`{"status":"Success","message":` + string(text) + `,"retryAfterSeconds":0}`)
}
