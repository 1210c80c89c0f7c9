// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"golang.org/x/net/http2"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/reflection"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/network/devcert"
	"github.com/hookgate/hookgate/internal/network/wire"
	"github.com/hookgate/hookgate/registry"
)

// author is an extension of the kind that people write from generated stubs.
type author struct {
	hooksv1alpha1.UnimplementedDiscoveryServiceServer
	hooksv1alpha1.UnimplementedLifecycleHooksServiceServer

	discover func() (*hooksv1alpha1.DiscoveryResponse, error) // nil leaves discovery out
	create   func(context.Context, *hooksv1alpha1.BeforeClusterCreateRequest) (*hooksv1alpha1.BeforeClusterCreateResponse, error)
}

func (a *author) Discovery(ctx context.Context, in *hooksv1alpha1.DiscoveryRequest) (*hooksv1alpha1.DiscoveryResponse, error) {
	if a.discover == nil {
		return a.UnimplementedDiscoveryServiceServer.Discovery(ctx, in)
	}
	return a.discover()
}

func (a *author) BeforeClusterCreate(ctx context.Context, in *hooksv1alpha1.BeforeClusterCreateRequest) (
	*hooksv1alpha1.BeforeClusterCreateResponse, error,
) {
	if a.create == nil {
		return fine(), nil
	}
	return a.create(ctx, in)
}

func fine() *hooksv1alpha1.BeforeClusterCreateResponse {
	return &hooksv1alpha1.BeforeClusterCreateResponse{
		Status: hooksv1alpha1.ResponseStatus_RESPONSE_STATUS_SUCCESS, Message: "fine", RetryAfterSeconds: 7,
	}
}

// says makes every call be answered in one way.
func says(m *hooksv1alpha1.BeforeClusterCreateResponse, err error) *author {
	return &author{create: func(context.Context, *hooksv1alpha1.BeforeClusterCreateRequest) (*hooksv1alpha1.BeforeClusterCreateResponse, error) {
		return m, err
	}}
}

// serveGRPC serves on l until the test ends.
func serveGRPC(t testing.TB, l net.Listener, a *author, register func(*grpc.Server), options ...grpc.ServerOption) *grpc.Server {
	t.Helper()
	s := grpc.NewServer(append([]grpc.ServerOption{grpc.MaxRecvMsgSize(64 << 20), grpc.MaxSendMsgSize(64 << 20)}, options...)...)
	if a != nil {
		hooksv1alpha1.RegisterDiscoveryServiceServer(s, a)
		hooksv1alpha1.RegisterLifecycleHooksServiceServer(s, a)
	}
	if register != nil {
		register(s)
	}
	var running sync.WaitGroup
	running.Go(func() { _ = s.Serve(l) })
	t.Cleanup(func() {
		s.Stop()
		running.Wait()
	})
	return s
}

func listen(t testing.TB, network, address string) net.Listener {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), network, address)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// newAuthor starts an extension with TLS.
func newAuthor(t testing.TB, ca *devcert.Authority, a *author, register func(*grpc.Server)) registry.ClientConfig {
	t.Helper()
	certificate := issue(t, ca, time.Now().Add(time.Hour))
	l := listen(t, "tcp", "127.0.0.1:0")
	serveGRPC(t, l, a, register, grpc.Creds(credentials.NewServerTLSFromCert(&certificate)))
	return registry.ClientConfig{Protocol: registry.GRPC, URL: "grpcs://" + l.Addr().String(), CABundle: ca.PEM}
}

func newGRPC(t testing.TB, config Config) *GRPC {
	t.Helper()
	g := NewGRPC(withHooks(config))
	t.Cleanup(g.Close)
	return g
}

func callGRPC(ctx context.Context, g *GRPC, c Call) (any, error) {
	result, err := g.Call(ctx, c)
	if result.Response == nil {
		return nil, err
	}
	return result.Response, err
}

func TestGRPCCall(t *testing.T) {
	var got *hooksv1alpha1.BeforeClusterCreateRequest
	var md metadata.MD
	a := &author{create: func(ctx context.Context, in *hooksv1alpha1.BeforeClusterCreateRequest) (*hooksv1alpha1.BeforeClusterCreateResponse, error) {
		got = in
		md, _ = metadata.FromIncomingContext(ctx)
		return fine(), nil
	}}
	plain := listen(t, "tcp", "127.0.0.1:0")
	serveGRPC(t, plain, a, nil)
	socket := listen(t, "unix", filepath.Join(t.TempDir(), "extension.sock"))
	serveGRPC(t, socket, a, nil)
	overTLS := newAuthor(t, newAuthority(t), a, nil)
	asHTTPS := overTLS
	asHTTPS.URL = strings.Replace(asHTTPS.URL, "grpcs://", "https://", 1)

	for name, tc := range map[string]struct {
		reason    string
		cc        registry.ClientConfig
		authority string
	}{
		"TLS":         {"an extension elsewhere", overTLS, strings.TrimPrefix(overTLS.URL, "grpcs://")},
		"https":       {"what an ExtensionConfig of a cluster can say", asHTTPS, strings.TrimPrefix(overTLS.URL, "grpcs://")},
		"plain":       {"an extension beside the gateway", registry.ClientConfig{Protocol: registry.GRPC, URL: "grpc://" + plain.Addr().String()}, plain.Addr().String()},
		"unix socket": {"servers that are not Go's refuse a path as :authority", registry.ClientConfig{Protocol: registry.GRPC, URL: "unix://" + socket.Addr().String()}, "localhost"},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGRPC(t, Config{Propagator: propagation.TraceContext{}})
			c := newCall(tc.cc)
			request := c.Request.(*hooksv1alpha1.BeforeClusterCreateRequest)
			request.Cluster.Raw = []byte(`{"kind":"Cluster","x":"` + strings.Repeat("y", 6<<20) + `"}`)
			span := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}, TraceFlags: trace.FlagsSampled})
			result, err := g.Call(trace.ContextWithSpanContext(t.Context(), span), c)
			if err != nil {
				t.Fatalf("%s: %v (%v)", tc.reason, err, errors.Unwrap(err))
			}
			if diff := cmp.Diff(fine(), result.Response, protocmp.Transform()); diff != "" {
				t.Errorf("answer: -want +got\n%s", diff)
			}
			if got.GetHandler() != "v" || request.GetHandler() != "" {
				t.Errorf("handler %q reached the extension, and %q is in the caller's request; want v and nothing", got.GetHandler(), request.GetHandler())
			}
			got.Handler = ""
			if !proto.Equal(request, got) { // the difference of megabytes takes minutes
				t.Errorf("request: got %.500s", got)
			}
			if authority := md.Get(":authority"); len(authority) != 1 || authority[0] != tc.authority {
				t.Errorf("%s: :authority %v, want %s", tc.reason, authority, tc.authority)
			}
			if parent := md.Get("traceparent"); len(parent) != 1 || !strings.HasPrefix(parent[0], "00-01") {
				t.Errorf("traceparent %v", parent)
			}
			if result.Sent < 6<<20 || result.Received == 0 || result.Received > 100 {
				t.Errorf("%d bytes sent and %d received", result.Sent, result.Received)
			}
		})
	}
}

func TestGRPCErrors(t *testing.T) {
	ca, other := newAuthority(t), newAuthority(t)
	plain := listen(t, "tcp", "127.0.0.1:0")
	serveGRPC(t, plain, &author{}, nil)
	good := newAuthor(t, ca, &author{}, nil)
	at := func(l net.Listener) registry.ClientConfig {
		return registry.ClientConfig{Protocol: registry.GRPC, URL: "grpcs://" + l.Addr().String(), CABundle: ca.PEM}
	}
	grpcOf := func(cc registry.ClientConfig) registry.ClientConfig {
		cc.Protocol = registry.GRPC
		return cc
	}
	with := func(a *author) registry.ClientConfig { return newAuthor(t, ca, a, nil) }
	notServing := func(s *grpc.Server) {
		h := health.NewServer()
		h.SetServingStatus("", healthv1.HealthCheckResponse_NOT_SERVING)
		healthv1.RegisterHealthServer(s, h)
	}
	refused := good
	refused.URL = strings.Replace(good.URL, "127.0.0.1", "127.0.0.9", 1)
	untrusted := good
	untrusted.CABundle = other.PEM
	large := fine()
	large.Message = strings.Repeat("x", 21<<20)

	for name, tc := range map[string]struct {
		reason string
		cc     registry.ClientConfig
		kind   hook.Kind
		want   string
	}{
		"refused":           {"no server listens", refused, hook.Unreachable, "connection refused"},
		"unknown authority": {"the certificate is of another CA", untrusted, hook.Unreachable, "certificate not trusted: signed by an unknown authority"},
		"no TLS":            {"the server speaks without", at(plain), hook.Unreachable, "the server does not speak TLS"},
		"only TLS":          {"the server speaks with TLS only", registry.ClientConfig{Protocol: registry.GRPC, URL: strings.Replace(good.URL, "grpcs", "grpc", 1)}, hook.Unreachable, "the server does not speak gRPC without TLS"},
		"REST without TLS": {"an extension of the other protocol", plainREST(t), hook.Unreachable,
			"the server does not speak HTTP/2, as gRPC does: is it a REST extension?"},
		"REST with HTTP/1.1": {"an extension of the other protocol", grpcOf(newServer(t, ca, answer(success), nil).cc), hook.Unreachable,
			"the server does not speak HTTP/2, as gRPC does: is it a REST extension?"},
		"REST with HTTP/2": {"an extension of the other protocol", grpcOf(newServer(t, ca, answer(success), func(s *httptest.Server) { s.EnableHTTP2 = true }).cc), hook.BadResponse,
			"the server does not speak gRPC: is it a REST extension?"},
		"REST that refuses": {"an extension of the other protocol", grpcOf(newServer(t, ca, http.NotFound, func(s *httptest.Server) { s.EnableHTTP2 = true }).cc), hook.BadResponse,
			"the server does not speak gRPC: is it a REST extension?"},
		"no socket": {"the extension has not started", registry.ClientConfig{Protocol: registry.GRPC, URL: "unix:///nowhere/extension.sock"}, hook.Unreachable, "there is no such socket"},
		"link-local": {"where clouds keep credentials", registry.ClientConfig{Protocol: registry.GRPC, URL: "grpcs://169.254.169.254:443"}, hook.Unreachable,
			"address of the host is link-local, where extensions are not allowed"},
		"other services": {"a server that is no extension", newAuthor(t, ca, nil, notServingNothing), hook.BadResponse,
			"answered Unimplemented: it has no hookgate.hooks.v1alpha1.LifecycleHooksService/BeforeClusterCreate"},
		"not serving":        {"the health service says no", newAuthor(t, ca, &author{}, notServing), hook.Unreachable, "the extension says that it is not serving"},
		"Unknown":            {"an error without a code", with(says(nil, errors.New("secret"))), hook.BadResponse, "answered Unknown"},
		"no status":          {"neither success nor failure", with(says(&hooksv1alpha1.BeforeClusterCreateResponse{RetryAfterSeconds: 30}, nil)), hook.BadResponse, `answer: status: want "Success" or "Failure", got ""`},
		"negative":           {"nobody can wait so long", with(says(&hooksv1alpha1.BeforeClusterCreateResponse{Status: patchSucceeded, RetryAfterSeconds: -1}, nil)), hook.BadResponse, "answer: retryAfterSeconds: -1 is negative"},
		"larger than 20 MiB": {"the limit of the contract", with(says(large, nil)), hook.BadResponse, "answer is larger than 20971520 bytes"},
		"relative socket":    {"a mistake in the URL", registry.ClientConfig{Protocol: registry.GRPC, URL: "unix://extension.sock"}, hook.Unreachable, "url: must be unix:// and the absolute path of a socket, for example unix:///run/extension.sock"},
		"plain elsewhere":    {"clusters are not for everyone to read", registry.ClientConfig{Protocol: registry.GRPC, URL: "grpc://192.0.2.1:9090"}, hook.Unreachable, "url: must be on loopback, because grpc:// has no TLS; use grpcs://"},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGRPC(t, Config{})
			for range 2 { // the text is the same every time
				m, err := callGRPC(t.Context(), g, newCall(tc.cc))
				wantError(t, tc.reason, m, err, tc.kind, `handler "v.acme": call extension: `+tc.want)
			}
		})
	}
}

// plainREST starts a server of HTTP/1.1 without TLS.
func plainREST(t *testing.T) registry.ClientConfig {
	s := httptest.NewServer(answer(success))
	t.Cleanup(s.Close)
	return registry.ClientConfig{Protocol: registry.GRPC, URL: strings.Replace(s.URL, "http", "grpc", 1)}
}

// notServingNothing registers services, none of them of the contract.
func notServingNothing(s *grpc.Server) {
	healthv1.RegisterHealthServer(s, health.NewServer())
	reflection.Register(s)
}

func TestGRPCTimeouts(t *testing.T) {
	ca := newAuthority(t)
	hangs := newAuthor(t, ca, &author{create: func(ctx context.Context, _ *hooksv1alpha1.BeforeClusterCreateRequest) (*hooksv1alpha1.BeforeClusterCreateResponse, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}}, nil)
	silent := listen(t, "tcp", "127.0.0.1:0") // accepts, and never says anything
	t.Cleanup(func() { _ = silent.Close() })
	for name, cc := range map[string]registry.ClientConfig{
		"handler hangs":  hangs,
		"server is mute": {Protocol: registry.GRPC, URL: "grpcs://" + silent.Addr().String(), CABundle: ca.PEM},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGRPC(t, Config{})
			c := newCall(cc)
			c.Handler.Handler.Timeout = 200 * time.Millisecond
			m, err := callGRPC(t.Context(), g, c)
			wantError(t, "the handler's timeout", m, err, hook.Timeout, `handler "v.acme": call extension: no answer within 200ms`)

			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			m, err = callGRPC(ctx, g, newCall(cc))
			wantError(t, "the caller's deadline", m, err, hook.Timeout, `handler "v.acme": call extension: no answer before the caller's deadline`)

			ctx, cancel = context.WithCancel(t.Context())
			cancel()
			m, err = callGRPC(ctx, g, newCall(cc))
			wantError(t, "the caller", m, err, hook.Canceled, `handler "v.acme": call extension: the caller left`)
		})
	}
}

// A connection that breaks in the middle of an answer has a bad answer; one that breaks earlier has none.
func TestGRPCAnswerIsCut(t *testing.T) {
	ca := newAuthority(t)
	certificate := issue(t, ca, time.Now().Add(time.Hour))
	for name, tc := range map[string]struct {
		begins bool
		kind   hook.Kind
		want   string
	}{
		"before": {false, hook.Unreachable, "connection closed without an answer"},
		"within": {true, hook.BadResponse, "answer ended early"},
	} {
		t.Run(name, func(t *testing.T) {
			l := listen(t, "tcp", "127.0.0.1:0")
			connections := &accepted{Listener: l}
			header := &headerWatch{
				TransportCredentials: credentials.NewServerTLSFromCert(&certificate), sent: make(chan struct{}),
			}
			a := &author{create: func(ctx context.Context, _ *hooksv1alpha1.BeforeClusterCreateRequest) (*hooksv1alpha1.BeforeClusterCreateResponse, error) {
				if tc.begins {
					if err := grpc.SendHeader(ctx, metadata.Pairs("a", "b")); err != nil {
						return nil, err
					}
					<-header.sent
				}
				connections.cut()
				<-ctx.Done()
				return nil, ctx.Err()
			}}
			serveGRPC(t, connections, a, nil, grpc.Creds(header))
			g := newGRPC(t, Config{})
			cc := registry.ClientConfig{Protocol: registry.GRPC, URL: "grpcs://" + l.Addr().String(), CABundle: ca.PEM}
			m, err := callGRPC(t.Context(), g, newCall(cc))
			wantError(t, name, m, err, tc.kind, `handler "v.acme": call extension: `+tc.want)
		})
	}
}

// headerWatch is the credentials of a server that tell when it has sent the header of an answer that goes on.
type headerWatch struct {
	credentials.TransportCredentials

	sent chan struct{}
	once sync.Once
}

func (h *headerWatch) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	c, info, err := h.TransportCredentials.ServerHandshake(raw)
	return watchedConn{c, h}, info, err
}

// watchedConn looks at the frames of HTTP/2 that a server writes, each with its whole header in one Write.
type watchedConn struct {
	net.Conn

	watch *headerWatch
}

func (c watchedConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	const length = 9 // of the header of a frame
	for len(p) >= length {
		ends := http2.Flags(p[4]).Has(http2.FlagHeadersEndStream) // as for the health of a server that says nothing of it
		if http2.FrameType(p[3]) == http2.FrameHeaders && !ends {
			c.watch.once.Do(func() { close(c.watch.sent) })
		}
		p = p[min(len(p), length+int(p[0])<<16+int(p[1])<<8+int(p[2])):]
	}
	return n, err
}

// accepted remembers the connections of a listener, to cut them.
type accepted struct {
	net.Listener
	mu    sync.Mutex
	conns []net.Conn
}

func (l *accepted) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err == nil {
		l.mu.Lock()
		l.conns = append(l.conns, c)
		l.mu.Unlock()
	}
	return c, err
}

func (l *accepted) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.conns {
		_ = c.Close()
	}
}

func TestGRPCInvalidJSONInAnAnswer(t *testing.T) {
	cc := newAuthor(t, newAuthority(t), says(&hooksv1alpha1.BeforeClusterCreateResponse{
		Status:         hooksv1alpha1.ResponseStatus_RESPONSE_STATUS_SUCCESS,
		UnknownMembers: map[string]*hooksv1alpha1.JSON{"later": {Raw: []byte(`{"half":`)}},
	}, nil), nil)
	g := newGRPC(t, Config{})
	m, err := callGRPC(t.Context(), g, newCall(cc))
	var e *hook.Error
	if !errors.As(err, &e) || e.Kind != hook.BadResponse || m != nil || !strings.Contains(err.Error(), "later") {
		t.Errorf("got %v, %v; want a BadResponse that names the member", m, err)
	}
}

// A compressed answer is inflated as one that counts with its full size, within the limit and the memory of its call.
func TestGRPCCompressedAnswer(t *testing.T) {
	full := hook.Errorf(hook.Overloaded, "the memory is used up")
	const limit = 2 << 20
	for name, tc := range map[string]struct {
		size   int
		memory int64
		kind   hook.Kind
		text   string
	}{
		"small":      {size: 10},
		"large":      {size: limit - 100, memory: 3 * limit},
		"too large":  {size: limit, memory: 3 * limit, kind: hook.BadResponse, text: "answer is larger than 2097152 bytes"},
		"a bomb":     {size: 60 << 20, memory: 3 * limit, kind: hook.BadResponse, text: "answer is larger than 2097152 bytes"},
		"no room":    {size: limit - 100, kind: hook.Overloaded, text: "the memory is used up"},
		"some of it": {size: limit - 100, memory: limit, kind: hook.Overloaded, text: "the memory is used up"},
	} {
		t.Run(name, func(t *testing.T) {
			answer := fine()
			answer.Message = strings.Repeat("x", tc.size)
			cc := newAuthor(t, newAuthority(t), &author{create: func(
				ctx context.Context, _ *hooksv1alpha1.BeforeClusterCreateRequest,
			) (*hooksv1alpha1.BeforeClusterCreateResponse, error) {
				return answer, grpc.SetSendCompressor(ctx, "gzip")
			}}, nil)
			g := newGRPC(t, Config{BodyBytes: limit})
			x := callRequest(newCall(cc))
			left := tc.memory
			x.reserve = func(n int64) error {
				if left -= n; left < 0 {
					return full
				}
				return nil
			}
			got, _, failed := g.invoke(t.Context(), cc, &x, wire.SizeOf(newCall(cc).Request))
			if tc.text != "" {
				wantError(t, "", got, failed, tc.kind, "call extension: "+tc.text)
				return
			}
			if failed != nil || len(got.(*hooksv1alpha1.BeforeClusterCreateResponse).GetMessage()) != tc.size {
				t.Fatalf("got %T, %v", got, failed)
			}
			if n := x.rpc.Received.Load(); n < int64(tc.size) {
				t.Errorf("%d bytes count as received", n)
			}
		})
	}
}

// A REST transport that meets a gRPC server says so.
func TestRESTMeetsGRPC(t *testing.T) {
	ca := newAuthority(t)
	cc := newAuthor(t, ca, &author{}, nil)
	cc.Protocol, cc.URL = registry.REST, strings.Replace(cc.URL, "grpcs://", "https://", 1)
	r := newREST(t, Config{})
	// Go's TLS lets a client in that has no protocol in common, and gRPC then hangs up, which a client may see in
	// several ways. If it does so before it is given the request, there is another attempt already.
	_, err := call(t.Context(), r, newCall(cc))
	if kind := hook.KindOf(err); kind != hook.Unreachable && kind != hook.BadResponse {
		t.Errorf("no protocol in common: %v, want an error of kind Unreachable or BadResponse", err)
	}
	m, err := call(t.Context(), r, newCall(cc))
	wantError(t, "the other protocol", m, err, hook.BadResponse,
		`handler "v.acme": call extension: the server speaks gRPC: set protocol GRPC`)
}

// A server that breaks off what it does not understand may speak gRPC. One that has answered does not.
func TestServerThatBreaksOffMaySpeakGRPC(t *testing.T) {
	var good atomic.Bool
	s := newServer(t, newAuthority(t), func(w http.ResponseWriter, r *http.Request) {
		if !good.Load() {
			panic(http.ErrAbortHandler)
		}
		answer(success)(w, r)
	}, func(s *httptest.Server) { s.EnableHTTP2 = true })
	r := newREST(t, Config{PreferHTTP2: true})
	m, err := call(t.Context(), r, newCall(s.cc))
	wantError(t, "it has never answered", m, err, hook.Unreachable,
		`handler "v.acme": call extension: connection broken: if the server speaks gRPC, set protocol GRPC`)
	good.Store(true)
	mustCall(t, r, s.cc)
	good.Store(false)
	m, err = call(t.Context(), r, newCall(s.cc))
	wantError(t, "it has answered", m, err, hook.Unreachable, `handler "v.acme": call extension: connection broken`)
}

func sorted(names []string) []string {
	slices.Sort(names)
	return names
}

// A server that has answered in HTTP/1.1 speaks that, whatever it does later: the text of a failure does not change.
func TestServerThatBreaksOffKeepsItsProtocol(t *testing.T) {
	var broken atomic.Bool
	s := newServer(t, newAuthority(t), func(w http.ResponseWriter, r *http.Request) {
		if broken.Load() {
			panic(http.ErrAbortHandler)
		}
		answer(success)(w, r)
	}, func(s *httptest.Server) { s.EnableHTTP2 = true }) // which then leaves HTTP/1.1 out of what it offers
	r := newREST(t, Config{})
	mustCall(t, r, s.cc)
	broken.Store(true)
	for range 3 {
		m, err := call(t.Context(), r, newCall(s.cc))
		wantError(t, "the connection breaks", m, err, hook.Unreachable, `handler "v.acme": call extension: connection closed without an answer`)
	}
}
