// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"context"
	"crypto/tls"
	"flag"
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
	"time"

	"github.com/google/go-cmp/cmp"
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

// run is the whole program.
func run(
	ctx context.Context, args []string, in io.Reader, out, errOut io.Writer, lookupEnv func(string) (string, bool),
) int {
	return runAs(ctx, "hookgate", args, in, out, errOut, lookupEnv)
}

var update = flag.Bool("update", false, "write the golden files")

const testCallID = "0123456789abcdef"

// fakeReply is a fakeServer's reply to one hook: a body with status 200, or an error.
type fakeReply struct {
	body   string // JSON of the answer, or the body of an error
	status int    // of HTTP; 0 means 200
	code   codes.Code
	kind   hook.Kind
	// warnings go into the header, or the trailer, Warning.
	warnings []string
}

// fakeServer imitates a gateway: it gives configured replies over HTTPS JSON and over gRPC, and records requests. It is
// safe for concurrent use.
type fakeServer struct {
	t       *testing.T
	catalog *catalog.Catalog
	codec   *codec.Codec
	pair    *devcert.Pair
	caFile  string
	http    *httptest.Server
	grpcs   string // addresses
	grpc    string

	mu      sync.Mutex
	replies map[string]fakeReply // by hook
	path    string               // of the last request over HTTP
	query   string
	request []byte // the last request, as JSON
	handler string // the field of the last request over gRPC
	bearer  string // of the last request
}

// allHooks are the hooks that the commands know.
var allHooks, _, _ = gateway.Hooks(gateway.Infrastructure())

func newFakeServer(t *testing.T, replies map[string]fakeReply) *fakeServer {
	t.Helper()
	pair := certificates.New(t)
	return newFakeServerWith(t, replies, pair, func(*tls.Config) {})
}

func newFakeServerWith(t *testing.T, replies map[string]fakeReply, pair *devcert.Pair, change func(*tls.Config)) *fakeServer {
	t.Helper()
	f := &fakeServer{t: t, catalog: allHooks, codec: codec.New(allHooks), pair: pair, replies: replies, caFile: filepath.Join(t.TempDir(), "dev-ca.crt")}
	if err := os.WriteFile(f.caFile, pair.CAPEM, 0o600); err != nil {
		t.Fatal(err)
	}
	config := certificates.Server(t, pair)
	change(config)
	f.http = httptest.NewUnstartedServer(http.HandlerFunc(f.serveHTTP))
	f.http.TLS = config.Clone()
	f.http.Config.ErrorLog = log.New(io.Discard, "", 0) // handshakes that tests make fail
	f.http.EnableHTTP2 = true
	f.http.StartTLS()
	t.Cleanup(f.http.Close)
	f.grpcs = f.startGRPC(grpc.Creds(credentials.NewTLS(config.Clone())))
	f.grpc = f.startGRPC()
	return f
}

func (f *fakeServer) startGRPC(options ...grpc.ServerOption) string {
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
func (f *fakeServer) has(h *catalog.Hook) bool {
	_, ok := f.replies[h.Hook]
	return ok || h.Group == hook.Group
}

func (f *fakeServer) serveHTTP(w http.ResponseWriter, r *http.Request) {
	h, _, ok := f.catalog.ByPath(r.URL.Path)
	if !ok || !f.has(h) {
		http.NotFound(w, r)
		return
	}
	body, _ := io.ReadAll(r.Body)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.path, f.query, f.request, f.handler = r.URL.Path, r.URL.RawQuery, body, ""
	f.bearer = strings.Join(r.Header.Values("Authorization"), ",")
	reply := f.replies[h.Hook]
	w.Header().Set(gateway.CallIDHeader, testCallID)
	w.Header()[gateway.WarningHeader] = reply.warnings
	if reply.status != 0 {
		w.Header().Set(gateway.ErrorKindHeader, reply.kind.String())
		w.WriteHeader(reply.status)
	}
	_, _ = io.WriteString(w, reply.body)
}

func (f *fakeServer) serveGRPC(_ any, stream grpc.ServerStream) error {
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
	f.path, f.query = "", ""
	md, _ := metadata.FromIncomingContext(stream.Context())
	f.bearer = strings.Join(md.Get("authorization"), ",")
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
	reply := f.replies[h.Hook]
	stream.SetTrailer(metadata.MD{strings.ToLower(gateway.WarningHeader): reply.warnings})
	if reply.code != codes.OK {
		var body struct{ Message string }
		st, err := status.New(reply.code, decodeInto(f.t, reply.body, &body).Message).WithDetails(&errdetails.ErrorInfo{Reason: reply.kind.String()})
		if err != nil {
			return err
		}
		return st.Err()
	}
	answer := h.Response.New().Interface()
	if reply.body != "" {
		if err := f.codec.Decode([]byte(reply.body), answer); err != nil {
			return err
		}
	}
	return stream.SendMsg(answer)
}

// asked returns path, handler and body of the last request.
func (f *fakeServer) asked() (path, handler, body string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.path, f.handler, string(f.request)
}

// servers returns the flags for each way to call the server.
func (f *fakeServer) servers() map[string][]string {
	return map[string][]string{
		"https": {"--server", f.http.URL, "--ca", f.caFile},
		"grpcs": {"--server", "grpcs://" + f.grpcs, "--ca", f.caFile},
		"grpc":  {"--server", "grpc://" + f.grpc},
	}
}

// outcome is the result of a run of the program.
type outcome struct {
	code   int
	out    string
	errOut string
}

// programPatience bounds a run of the program. Nothing takes nearly as long, even on a busy machine.
const programPatience = 2 * time.Minute

func hookgate(t *testing.T, in string, args ...string) outcome {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), programPatience)
	defer cancel()
	var out, errOut bytes.Buffer
	code := run(ctx, args, strings.NewReader(in), &out, &errOut, func(string) (string, bool) { return "", false })
	return outcome{code, out.String(), errOut.String()}
}

// golden compares with a file below testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll(filepath.Dir(file), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got; -update writes it):\n%s", file, diff)
	}
}

func writeFile(t *testing.T, name, content string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}
