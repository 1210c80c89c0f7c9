// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package commandtest

import (
	"crypto/tls"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/gateway"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/contract/codec"
	"github.com/hookgate/hookgate/internal/network/devcert"
	"github.com/hookgate/hookgate/test/certificates"
)

const testCallID = "0123456789abcdef"

// FakeReply is a FakeServer's reply to one hook: a body with status 200, or an error.
type FakeReply struct {
	Body   string // JSON of the answer, or the body of an error
	Status int    // of HTTP; 0 means 200
	Code   codes.Code
	Kind   hook.Kind
	// Warnings go into the header, or the trailer, Warning.
	Warnings []string
	// Unhandled says that the gateway has answered alone.
	Unhandled bool
}

// FakeServer imitates a gateway: it gives configured replies over HTTPS JSON and over gRPC, and records requests. It is
// safe for concurrent use.
type FakeServer struct {
	t       *testing.T
	catalog *catalog.Catalog
	codec   *codec.Codec
	pair    *devcert.Pair
	CAFile  string
	HTTP    *httptest.Server
	GRPCS   string // addresses
	GRPC    string

	mu      sync.Mutex
	Replies map[string]FakeReply // by hook
	path    string               // of the last request over HTTP
	Query   string
	request []byte // the last request, as JSON
	handler string // the field of the last request over gRPC
	Bearer  string // of the last request
}

// AllHooks are the hooks that the commands know.
var AllHooks, _, _ = gateway.Hooks(gateway.Infrastructure())

// NewFakeServer starts a server that gives these replies.
func NewFakeServer(t *testing.T, replies map[string]FakeReply) *FakeServer {
	t.Helper()
	pair := certificates.New(t)
	return NewFakeServerWith(t, replies, pair, func(*tls.Config) {})
}

// NewFakeServerWith is NewFakeServer with a certificate, and with changes of what the server asks for.
func NewFakeServerWith(t *testing.T, replies map[string]FakeReply, pair *devcert.Pair, change func(*tls.Config)) *FakeServer {
	t.Helper()
	f := &FakeServer{t: t, catalog: AllHooks, codec: codec.New(AllHooks), pair: pair, Replies: replies, CAFile: filepath.Join(t.TempDir(), "dev-ca.crt")}
	if err := os.WriteFile(f.CAFile, pair.CAPEM, 0o600); err != nil {
		t.Fatal(err)
	}
	config := certificates.Server(t, pair)
	change(config)
	f.HTTP = httptest.NewUnstartedServer(http.HandlerFunc(f.serveHTTP))
	f.HTTP.TLS = config.Clone()
	f.HTTP.Config.ErrorLog = log.New(io.Discard, "", 0) // handshakes that tests make fail
	f.HTTP.EnableHTTP2 = true
	f.HTTP.StartTLS()
	t.Cleanup(f.HTTP.Close)
	f.GRPCS = f.startGRPC(grpc.Creds(credentials.NewTLS(config.Clone())))
	f.GRPC = f.startGRPC()
	return f
}

func (f *FakeServer) startGRPC(options ...grpc.ServerOption) string {
	f.t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		f.t.Fatal(err)
	}
	server := grpc.NewServer(append(options, grpc.UnknownServiceHandler(f.serveGRPC), grpc.MaxRecvMsgSize(gateway.BodyBytes))...)
	done := make(chan struct{})
	go func() { defer close(done); _ = server.Serve(listener) }()
	f.t.Cleanup(func() { server.Stop(); <-done })
	return listener.Addr().String()
}

// has reports whether the server has a hook: those of Cluster API, and others that it has a reply to.
func (f *FakeServer) has(h *catalog.Hook) bool {
	_, ok := f.Replies[h.Hook]
	return ok || h.Group == hook.Group
}

func (f *FakeServer) serveHTTP(w http.ResponseWriter, r *http.Request) {
	h, _, ok := f.catalog.ByPath(r.URL.Path)
	if !ok || !f.has(h) {
		http.NotFound(w, r)
		return
	}
	body, _ := io.ReadAll(r.Body)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.path, f.Query, f.request, f.handler = r.URL.Path, r.URL.RawQuery, body, ""
	f.Bearer = strings.Join(r.Header.Values("Authorization"), ",")
	reply := f.Replies[h.Hook]
	w.Header().Set(gateway.CallIDHeader, testCallID)
	w.Header()[gateway.WarningHeader] = reply.Warnings
	if reply.Unhandled {
		w.Header().Set(gateway.HandlersHeader, "0")
	}
	if reply.Status != 0 {
		w.Header().Set(gateway.ErrorKindHeader, reply.Kind.String())
		w.WriteHeader(reply.Status)
	}
	_, _ = io.WriteString(w, reply.Body)
}

func (f *FakeServer) serveGRPC(_ any, stream grpc.ServerStream) error {
	method, _ := grpc.MethodFromServerStream(stream)
	h, ok := f.catalog.ByName(path.Base(method))
	if !ok || h.Method != method || !f.has(h) {
		return status.Errorf(codes.Unimplemented, "unknown method %s", method)
	}
	request := h.Request.New().Interface()
	if err := stream.RecvMsg(request); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.path, f.Query = "", ""
	md, _ := metadata.FromIncomingContext(stream.Context())
	f.Bearer = strings.Join(md.Get("authorization"), ",")
	if named, ok := request.(interface{ GetHandler() string }); ok {
		f.handler = named.GetHandler()
	}
	var err error
	if f.request, err = f.codec.Append(nil, request); err != nil {
		return err
	}
	if err := stream.SetHeader(metadata.Pairs(gateway.CallIDHeader, testCallID)); err != nil {
		return err
	}
	reply := f.Replies[h.Hook]
	if reply.Unhandled {
		if err := stream.SetHeader(metadata.Pairs(gateway.HandlersHeader, "0")); err != nil {
			return err
		}
	}
	stream.SetTrailer(metadata.MD{strings.ToLower(gateway.WarningHeader): reply.Warnings})
	if reply.Code != codes.OK {
		var body struct{ Message string }
		st, err := status.New(reply.Code, DecodeInto(f.t, reply.Body, &body).Message).WithDetails(&errdetails.ErrorInfo{Reason: reply.Kind.String()})
		if err != nil {
			return err
		}
		return st.Err()
	}
	answer := h.Response.New().Interface()
	if reply.Body != "" {
		if err := f.codec.Decode([]byte(reply.Body), answer); err != nil {
			return err
		}
	}
	return stream.SendMsg(answer)
}

// Asked returns path, handler and body of the last request.
func (f *FakeServer) Asked() (path, handler, body string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.path, f.handler, string(f.request)
}

// Servers returns the flags for each way to call the server.
func (f *FakeServer) Servers() map[string][]string {
	return map[string][]string{
		"https": {"--server", f.HTTP.URL, "--ca", f.CAFile},
		"grpcs": {"--server", "grpcs://" + f.GRPCS, "--ca", f.CAFile},
		"grpc":  {"--server", "grpc://" + f.GRPC},
	}
}
