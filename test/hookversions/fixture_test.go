// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package hookversions

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace/noop"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/gateway"
	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/calls/extension"
	"github.com/hookgate/hookgate/internal/contract/codec"
	"github.com/hookgate/hookgate/internal/contract/convert"
	"github.com/hookgate/hookgate/internal/network/devcert"
	"github.com/hookgate/hookgate/internal/seeing/observe"
	"github.com/hookgate/hookgate/internal/serving/servers"
	"github.com/hookgate/hookgate/internal/serving/shared"
	"github.com/hookgate/hookgate/registry"
	"github.com/hookgate/hookgate/test/certificates"
)

// protocols lists the protocols of callers and of extensions.
var protocols = []registry.Protocol{registry.REST, registry.GRPC}

// fixture is a gateway of the test group, as it serves the product's: both fronts with TLS, and a registry that
// discovery fills.
type fixture struct {
	catalog    *catalog.Catalog
	codec      *codec.Codec
	certs      *devcert.Pair
	registry   *registry.Registry
	transports *extension.Protocols
	metrics    *prometheus.Registry
	losses     *convert.Losses
	extensions map[string]*server // by the name of the ExtensionConfig

	http   string
	client *http.Client
	conn   *grpc.ClientConn
}

type namespaces struct{}

func (namespaces) NamespaceLabels(name string) (map[string]string, bool) {
	return map[string]string{"kubernetes.io/metadata.name": name}, true
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	certs := certificates.New(t)
	w := &fixture{
		catalog: New(), certs: certs, registry: registry.New(), metrics: prometheus.NewRegistry(),
		losses: convert.NewLosses(nil), extensions: map[string]*server{},
	}
	w.codec = codec.New(w.catalog)
	w.transports = extension.NewProtocols(
		extension.Config{Catalog: w.catalog, Codec: w.codec, Propagator: gateway.Propagator()},
	)
	t.Cleanup(w.transports.Close)
	observer := observe.NewObserver(
		observe.NewMetrics(w.metrics, w.registry, w.catalog, "test"), noop.NewTracerProvider(),
		slog.New(slog.DiscardHandler), w.losses,
	)
	dispatcher := gateway.NewDispatcher(gateway.Config{
		Catalog: w.catalog, Versions: NewConverter(w.catalog), Registry: w.registry,
		Namespaces: namespaces{},
		Parts:      shared.Parts{Codec: w.codec, Transport: w.transports.Call, Observer: observer},
	})
	services := gateway.NewServices(dispatcher)
	front, err := gateway.NewREST(dispatcher, services)
	if err != nil {
		t.Fatal(err)
	}
	config := certificates.Server(t, certs)
	config.NextProtos = []string{"h2", "http/1.1"}

	var http1, grpc1 net.Addr
	listening := make(chan struct{})
	served := make(chan error, 1)
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	gate := servers.NewServer(servers.Config{
		HTTPAddress: "127.0.0.1:0", GRPCAddress: "127.0.0.1:0", DiagnosticsAddress: "127.0.0.1:0",
		TLS: config, REST: front, GRPCOptions: gateway.GRPCOptions(),
		Register: func(server grpc.ServiceRegistrar) {
			gateway.RegisterGRPC(server, dispatcher, services)
		},
		Metrics: http.NotFoundHandler(), Ready: w.registry.Ready(),
		Unready:   func() string { return w.registry.Snapshot().Unready() },
		Listening: func(http, grpc, _, _ net.Addr) { http1, grpc1 = http, grpc; close(listening) },
		Logger:    slog.New(slog.DiscardHandler),
	})
	go func() { served <- gate.Run(ctx) }()
	select {
	case <-listening:
	case err := <-served:
		t.Fatal(err)
	}
	w.http = "https://" + http1.String()
	w.client = &http.Client{Transport: &http.Transport{TLSClientConfig: certs.ClientTLS(), ForceAttemptHTTP2: true}}
	w.conn, err = grpc.NewClient(grpc1.String(), grpc.WithTransportCredentials(credentials.NewTLS(certs.ClientTLS())))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = w.conn.Close()
		w.client.CloseIdleConnections()
		stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return w
}

// server is an extension: it implements one version of the hooks, and knows nothing of the others.
type server struct {
	version string
	codec   *codec.Codec
	catalog *catalog.Catalog
	config  registry.ClientConfig

	mu       sync.Mutex
	requests []proto.Message
	bodies   [][]byte // of requests in JSON
	// respond answers in place of responseOf.
	respond func(req proto.Message) (proto.Message, error)
	// announce is the hook that discovery names for all handlers, in place of theirs.
	announce *hooksv1alpha1.GroupVersionHook
}

// answer is what both forms of the extension answer.
func (s *server) answer(req proto.Message) (proto.Message, error) {
	h, ok := s.catalog.ByRequest(req)
	if !ok || h.Version != s.version {
		return nil, hook.Errorf(hook.Internal, "the extension of %s was asked %T", s.version, req)
	}
	if h.Singleton() {
		return s.discovery(h), nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, req)
	if s.respond != nil {
		return s.respond(req)
	}
	return responseOf(s.version, h.Hook), nil
}

func (s *server) discovery(h *catalog.Hook) proto.Message {
	m := h.Response.New()
	catalog.SetStatus(m.Interface(), catalog.Success, "")
	list := m.Mutable(m.Descriptor().Fields().ByName("handlers")).List()
	for hookName, name := range handlersOf(s.version) {
		handler := &hooksv1alpha1.ExtensionHandler{
			Name: name, RequestHook: &hooksv1alpha1.GroupVersionHook{ApiVersion: h.APIVersion(), Hook: hookName},
		}
		if s.announce != nil {
			handler.RequestHook = s.announce
		}
		catalog.CopySame(list.AppendMutable().Message(), handler.ProtoReflect())
	}
	return m.Interface()
}

// handlersOf returns the name of the handler of each hook that a version has.
func handlersOf(version string) map[string]string {
	if version == "v1alpha1" {
		return map[string]string{BeforeNodeDrain: "drain"}
	}
	return map[string]string{BeforeNodeDrain: "drain", PlanDrains: "plan"}
}

// ServeHTTP is the extension's side of the REST form.
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h, rest, ok := s.catalog.ByPath(r.URL.Path)
	body, err := io.ReadAll(r.Body)
	if !ok || h.Version != s.version || err != nil {
		http.NotFound(w, r)
		return
	}
	req := h.Request.New().Interface()
	if err := s.codec.Decode(body, req); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if field := h.Request.Descriptor().Fields().ByName("handler"); field != nil {
		setString(req, "handler", strings.TrimPrefix(rest, "/"))
		s.mu.Lock()
		s.bodies = append(s.bodies, body)
		s.mu.Unlock()
	}
	answer, err := s.answer(req)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	text, err := s.codec.Append(nil, answer)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	_, _ = w.Write(text)
}

// last returns the last request, and its body if it came as JSON.
func (s *server) last() (proto.Message, []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.requests) == 0 {
		return nil, nil
	}
	var body []byte
	if len(s.bodies) > 0 {
		body = s.bodies[len(s.bodies)-1]
	}
	return s.requests[len(s.requests)-1], body
}

// answers makes the extension answer otherwise.
func (s *server) answers(f func(req proto.Message) (proto.Message, error)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.respond = f
}

// extend starts an extension of a version, and registers the handlers of its discovery.
func (w *fixture) extend(
	t *testing.T, name, version string, protocol registry.Protocol, change ...func(*registry.Registration),
) *server {
	t.Helper()
	s := &server{
		version: version, codec: w.codec, catalog: w.catalog,
		config: registry.ClientConfig{Protocol: protocol, CABundle: w.certs.CAPEM},
	}
	config := certificates.Server(t, w.certs)
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if protocol == registry.GRPC {
		g := grpc.NewServer(grpc.Creds(credentials.NewTLS(config)), grpc.UnknownServiceHandler(s.serveGRPC))
		go func() { _ = g.Serve(l) }() // until it is stopped
		t.Cleanup(g.Stop)
		s.config.URL = "grpcs://" + l.Addr().String()
	} else {
		h := &http.Server{
			Handler: s, TLSConfig: config, ReadHeaderTimeout: time.Minute,
			ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError),
		}
		go func() { _ = h.ServeTLS(l, "", "") }()
		t.Cleanup(func() { _ = h.Close() })
		s.config.URL = "https://" + l.Addr().String()
	}
	found, err := w.transports.Discover(t.Context(), s.config)
	if err != nil {
		t.Fatalf("discover the extension of %s over %s: %v", version, protocol, err)
	}
	if len(found.Handlers) != len(handlersOf(version)) || len(found.Skipped) != 0 {
		t.Fatalf("the extension of %s has %+v", version, found)
	}
	reg := registry.Registration{Name: name, ClientConfig: s.config, Handlers: found.Handlers}
	for _, f := range change {
		f(&reg)
	}
	if err := w.registry.Apply(reg); err != nil {
		t.Fatal(err)
	}
	w.registry.SetReady()
	w.extensions[name] = s
	return s
}

func setString(m proto.Message, name, value string) {
	r := m.ProtoReflect()
	field := r.Descriptor().Fields().ByTextName(name)
	if value == "" {
		r.Clear(field)
		return
	}
	r.Set(field, protoString(value))
}

// answered is what a caller gets.
type answered struct {
	message  proto.Message // nil with an error
	kind     string        // of the error
	text     string        // of the error
	warnings []string
}

// call calls a hook of a version with a request of it; over REST the handler is the request's, but in the path.
func (w *fixture) call(t *testing.T, protocol registry.Protocol, h *catalog.Hook, req proto.Message) answered {
	t.Helper()
	if protocol == registry.GRPC {
		return w.callGRPC(t, h, req)
	}
	text, err := w.codec.Append(nil, req)
	if err != nil {
		t.Fatal(err)
	}
	handler := ""
	if r, ok := req.(interface{ GetHandler() string }); ok {
		handler = r.GetHandler()
	}
	return w.post(t, h, handler, text)
}

func (w *fixture) post(t *testing.T, h *catalog.Hook, handler string, text []byte) answered {
	t.Helper()
	resp, err := w.client.Post(w.http+h.Path(handler), "application/json", bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	a := answered{warnings: resp.Header.Values("Warning")}
	if resp.StatusCode != http.StatusOK {
		var failure struct{ APIVersion, Message string }
		if err := json.Unmarshal(body, &failure); err != nil {
			t.Fatalf("%s: %v", body, err)
		}
		if failure.APIVersion != h.APIVersion() {
			t.Errorf("the error of a call of %s is one of %s", h, failure.APIVersion)
		}
		a.kind, a.text = resp.Header.Get(gateway.ErrorKindHeader), failure.Message
		return a
	}
	a.message = h.Response.New().Interface()
	if err := w.codec.Decode(body, a.message); err != nil {
		t.Fatalf("answer %s: %v", body, err)
	}
	return a
}

// raw posts nothing to a path, and returns the status code and the message of the answer.
func (w *fixture) raw(t *testing.T, path string) (int, string) {
	t.Helper()
	resp, err := w.client.Post(w.http+path, "application/json", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var failure struct{ Message string }
	if err := json.NewDecoder(resp.Body).Decode(&failure); err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, failure.Message
}

func (w *fixture) callGRPC(t *testing.T, h *catalog.Hook, req proto.Message) answered {
	t.Helper()
	var trailer metadata.MD
	out := h.Response.New().Interface()
	err := w.conn.Invoke(t.Context(), h.Method, req, out, grpc.Trailer(&trailer))
	a := answered{warnings: trailer.Get("warning")}
	if err == nil {
		a.message = out
		return a
	}
	st := status.Convert(err)
	a.text = st.Message()
	for _, d := range st.Details() {
		if info, ok := d.(*errdetails.ErrorInfo); ok {
			a.kind = info.GetReason()
		}
	}
	return a
}

// hook returns a hook of the group in a version.
func (w *fixture) hook(t *testing.T, version, name string) *catalog.Hook {
	t.Helper()
	h, ok := w.catalog.Lookup(hook.GroupVersionHook{Group: Group, Version: version, Hook: name})
	if !ok {
		t.Fatalf("no hook %s of %s", name, version)
	}
	return h
}
