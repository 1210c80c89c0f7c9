// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package caller_test

import (
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/hookgate/hookgate/caller"
	hooks "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	infrastructure "github.com/hookgate/hookgate/gen/go/hookgate/infrastructure/v1alpha1"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/test/process"
)

const success = hooks.ResponseStatus_RESPONSE_STATUS_SUCCESS

// server answers BeforeControlPlaneUpgrade over gRPC.
type server struct {
	hooks.UnimplementedLifecycleHooksServiceServer

	answer func(ctx context.Context, in *hooks.BeforeControlPlaneUpgradeRequest) (*hooks.BeforeControlPlaneUpgradeResponse, error)
}

func (s *server) BeforeControlPlaneUpgrade(
	ctx context.Context, in *hooks.BeforeControlPlaneUpgradeRequest,
) (*hooks.BeforeControlPlaneUpgradeResponse, error) {
	return s.answer(ctx, in)
}

// overGRPC returns the URL of a server on a socket.
func overGRPC(t *testing.T, answer func(ctx context.Context, in *hooks.BeforeControlPlaneUpgradeRequest) (*hooks.BeforeControlPlaneUpgradeResponse, error)) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "x.sock")
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	s := grpc.NewServer()
	hooks.RegisterLifecycleHooksServiceServer(s, &server{answer: answer})
	go func() { _ = s.Serve(listener) }()
	t.Cleanup(s.Stop)
	return "unix://" + path
}

// overJSON returns the URL of a server with TLS, and the file of its authority.
func overJSON(t *testing.T, answer http.HandlerFunc) (url, ca string) {
	t.Helper()
	s := httptest.NewTLSServer(answer)
	t.Cleanup(s.Close)
	ca = filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(ca, pemOf(s), 0o600); err != nil {
		t.Fatal(err)
	}
	return s.URL, ca
}

func newClient(t *testing.T, config caller.Config) *caller.Client {
	t.Helper()
	c, err := caller.New(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// withKind returns the error of a gateway over gRPC.
func withKind(t *testing.T, kind hook.Kind, message string, after time.Duration) error {
	t.Helper()
	s, err := status.New(kind.GRPCCode(), message).WithDetails(
		&errdetails.ErrorInfo{Reason: kind.String(), Domain: "hookgate.dev"}, &errdetails.RetryInfo{RetryDelay: durationpb.New(after)})
	if err != nil {
		t.Fatal(err)
	}
	return s.Err()
}

// What a server answers over each protocol, and what the caller gets.
func TestCall(t *testing.T) {
	type answered = hooks.BeforeControlPlaneUpgradeResponse
	const busy = `handler "a.acme": the extension has no capacity`
	for name, tt := range map[string]struct {
		grpc       *answered
		grpcErr    error
		code       int
		header     http.Header
		body       string
		want       *answered
		kind       hook.Kind
		retryAfter time.Duration
		text       string // of the error, without the protocol
		failure    bool
	}{
		"success": {
			grpc: &answered{Status: success, Message: "m"}, code: 200, body: `{"status":"Success","message":"m"}`,
			want: &answered{Status: success, Message: "m"},
		},
		"held": {
			grpc: &answered{Status: success, RetryAfterSeconds: 7, Message: "waits"}, code: 200,
			body: `{"status":"Success","retryAfterSeconds":7,"message":"waits"}`,
			want: &answered{Status: success, RetryAfterSeconds: 7, Message: "waits"},
		},
		"failure": {
			grpc: &answered{Status: hooks.ResponseStatus_RESPONSE_STATUS_FAILURE, Message: "quota"}, code: 200,
			header: http.Header{"Hookgate-Call-Id": {"c-1"}},
			body:   `{"status":"Failure","message":"quota"}`, failure: true, text: "BeforeControlPlaneUpgrade answered Failure: quota",
		},
		"failure without a message": {
			grpc: &answered{Status: hooks.ResponseStatus_RESPONSE_STATUS_FAILURE}, code: 200,
			body: `{"status":"Failure"}`, failure: true, text: "BeforeControlPlaneUpgrade answered Failure: it does not say why",
		},
		"no status": {
			grpc: &answered{}, code: 200, body: `{}`, kind: hook.BadResponse, text: "call BeforeControlPlaneUpgrade of gateway URL: the answer has no status",
		},
		"error of the gateway": {
			grpcErr: withKind(t, hook.Overloaded, busy, 3*time.Second), code: 503,
			header: http.Header{"Hookgate-Error-Kind": {"Overloaded"}, "Retry-After": {"3"}, "Hookgate-Call-Id": {"c-1"}},
			body:   `{"kind":"Status","message":"` + strings.ReplaceAll(busy, `"`, `\"`) + `"}`,
			kind:   hook.Overloaded, retryAfter: 3 * time.Second, text: busy,
		},
		"not a gateway": {
			grpcErr: status.Error(codes.Unimplemented, "unknown service"), code: 404, body: "404 page not found", kind: hook.BadResponse,
			text: "call BeforeControlPlaneUpgrade: URL answers STATUS, which is not a gateway's answer: check that the URL is right and that the gateway was built with this hook",
		},
	} {
		t.Run(name, func(t *testing.T) {
			url, ca := overJSON(t, func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				if !strings.Contains(string(body), `"toKubernetesVersion":"v1.36.1"`) || !strings.HasSuffix(r.URL.Path, "/beforecontrolplaneupgrade/a--acme") {
					t.Errorf("the request is %s %s", r.URL.Path, body)
				}
				maps.Copy(w.Header(), tt.header)
				w.WriteHeader(tt.code)
				_, _ = io.WriteString(w, tt.body)
			})
			socket := overGRPC(t, func(_ context.Context, in *hooks.BeforeControlPlaneUpgradeRequest) (*answered, error) {
				if in.GetToKubernetesVersion() != "v1.36.1" || in.GetHandler() != "a--acme" {
					t.Errorf("the request is %v", in)
				}
				return tt.grpc, tt.grpcErr
			})
			for _, config := range []caller.Config{{URL: url, CAFile: ca}, {URL: socket}} {
				got, err := newClient(t, config).BeforeControlPlaneUpgrade(t.Context(), &hooks.BeforeControlPlaneUpgradeRequest{
					Handler: "a--acme", ToKubernetesVersion: "v1.36.1",
				})
				if tt.want != nil {
					if diff := cmp.Diff(tt.want, got, protocmp.Transform()); diff != "" || err != nil {
						t.Errorf("%s: %v (-want +got):\n%s", config.URL, err, diff)
					}
					continue
				}
				if got := strings.NewReplacer(url, "URL", socket, "URL", "HTTP 404 Not Found", "STATUS", "gRPC Unimplemented", "STATUS").Replace(fmt.Sprint(err)); got != tt.text {
					t.Errorf("%s: got\n%s\nwant\n%s", config.URL, got, tt.text)
				}
				var failure *caller.Failure
				var failed *hook.Error
				switch {
				case errors.As(err, &failure):
					if !tt.failure {
						t.Errorf("%s: it is a Failure", config.URL)
					}
					if config.URL == url && failure.CallID != tt.header.Get("Hookgate-Call-Id") {
						t.Errorf("%s: the call ID is %q", config.URL, failure.CallID)
					}
				case name == "error of the gateway" && config.URL == url && !strings.Contains(fmt.Sprint(errors.Unwrap(err)), `call id "c-1"`):
					t.Errorf("the cause is %v", errors.Unwrap(err))
				case !errors.As(err, &failed) || failed.Kind != tt.kind || failed.RetryAfter != tt.retryAfter:
					t.Errorf("%s: got %#v, want kind %s and %s", config.URL, err, tt.kind, tt.retryAfter)
				}
			}
		})
	}
}

// Each call has a deadline, which the server is told: that of the context, or else the Timeout.
func TestDeadline(t *testing.T) {
	left := make(chan time.Duration, 1)
	c := newClient(t, caller.Config{URL: overGRPC(t, func(ctx context.Context, _ *hooks.BeforeControlPlaneUpgradeRequest) (*hooks.BeforeControlPlaneUpgradeResponse, error) {
		deadline, _ := ctx.Deadline()
		left <- time.Until(deadline)
		<-ctx.Done()
		return nil, ctx.Err()
	}), Timeout: time.Hour})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		if d := <-left; d < 50*time.Minute || d > time.Hour {
			t.Errorf("without a deadline, the server has %s", d)
		}
		cancel()
	}()
	_, err := c.BeforeControlPlaneUpgrade(ctx, &hooks.BeforeControlPlaneUpgradeRequest{})
	if hook.KindOf(err) != hook.Canceled {
		t.Errorf("a caller that leaves: %v", err)
	}
	ctx, cancel = context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err = c.BeforeControlPlaneUpgrade(ctx, &hooks.BeforeControlPlaneUpgradeRequest{})
	if d := <-left; hook.KindOf(err) != hook.Timeout || d > time.Second {
		t.Errorf("a call whose time is up: %v, with %s at the server", err, d)
	}
}

// A gateway that is not there when its time is up is Unreachable, with a text that is the same each time.
func TestUnreachable(t *testing.T) {
	for _, url := range []string{"unix:///nonexistent/x.sock", "grpc://127.0.0.1:1"} {
		c := newClient(t, caller.Config{URL: url, Timeout: time.Second})
		var texts []string
		for range 2 {
			_, err := c.BeforeControlPlaneUpgrade(t.Context(), &hooks.BeforeControlPlaneUpgradeRequest{})
			if hook.KindOf(err) != hook.Unreachable || !strings.HasPrefix(err.Error(), "call BeforeControlPlaneUpgrade of gateway "+url+": ") {
				t.Errorf("%s: %v", url, err)
			}
			texts = append(texts, err.Error())
		}
		if texts[0] != texts[1] {
			t.Errorf("the texts differ: %q", texts)
		}
	}
}

// A call over gRPC waits for a gateway that listens only when the channel pauses after a refusal, and not for one whose
// certificate is not trusted.
func TestWaitsForAGateway(t *testing.T) {
	address := fmt.Sprintf("127.0.0.1:%d", process.FreePort(t))
	c := newClient(t, caller.Config{URL: "grpc://" + address})
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if _, err := c.BeforeControlPlaneUpgrade(ctx, &hooks.BeforeControlPlaneUpgradeRequest{}); hook.KindOf(err) != hook.Unreachable {
		t.Fatalf("nothing listens: %v", err)
	}
	called := make(chan error, 1)
	go func() {
		_, err := c.BeforeControlPlaneUpgrade(t.Context(), &hooks.BeforeControlPlaneUpgradeRequest{})
		called <- err
	}()
	listener, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	s := grpc.NewServer()
	hooks.RegisterLifecycleHooksServiceServer(s, &server{answer: func(
		context.Context, *hooks.BeforeControlPlaneUpgradeRequest,
	) (*hooks.BeforeControlPlaneUpgradeResponse, error) {
		return &hooks.BeforeControlPlaneUpgradeResponse{Status: hooks.ResponseStatus_RESPONSE_STATUS_SUCCESS}, nil
	}})
	go func() { _ = s.Serve(listener) }()
	t.Cleanup(s.Stop)
	if err := <-called; err != nil {
		t.Errorf("it listens now: %v", err)
	}

	secure := httptest.NewUnstartedServer(nil)
	secure.EnableHTTP2 = true
	secure.StartTLS()
	t.Cleanup(secure.Close)
	c = newClient(t, caller.Config{URL: "grpcs" + strings.TrimPrefix(secure.URL, "https"), Timeout: time.Hour})
	_, err = c.BeforeControlPlaneUpgrade(t.Context(), &hooks.BeforeControlPlaneUpgradeRequest{})
	if hook.KindOf(err) != hook.Unreachable || !strings.Contains(err.Error(), "certificate not trusted") {
		t.Errorf("a certificate that is not trusted: %v", err)
	}
}

// The error of a call to a server of another protocol has the URL to use; its cause does not.
func TestWrongScheme(t *testing.T) {
	overTLS := httptest.NewUnstartedServer(nil)
	overTLS.Config.ErrorLog = log.New(io.Discard, "", 0)
	overTLS.StartTLS()
	t.Cleanup(overTLS.Close)
	json := overTLS.Listener.Addr().String()
	ca := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(ca, pemOf(overTLS), 0o600); err != nil {
		t.Fatal(err)
	}
	serve := func(options ...grpc.ServerOption) (address string) {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		s := grpc.NewServer(options...)
		go func() { _ = s.Serve(listener) }()
		t.Cleanup(s.Stop)
		return listener.Addr().String()
	}
	plain, secure := serve(), serve(grpc.Creds(credentials.NewServerTLSFromCert(&overTLS.TLS.Certificates[0])))
	for name, tt := range map[string]struct{ address, scheme, want, use string }{
		"gRPC without TLS to gRPC with":  {secure, "grpc://", "the server does not speak gRPC without TLS", "grpcs://"},
		"gRPC with TLS to gRPC without":  {plain, "grpcs://", "the server does not speak TLS", "grpc://"},
		"JSON with TLS to gRPC without":  {plain, "https://", "the server does not speak TLS", "grpc://"},
		"JSON with TLS to gRPC with TLS": {secure, "https://", "the server speaks gRPC", "grpcs://"},
		"gRPC with TLS to JSON with TLS": {json, "grpcs://", "the server does not speak HTTP/2, as gRPC does", "https://"},
	} {
		t.Run(name, func(t *testing.T) {
			config := caller.Config{URL: tt.scheme + tt.address}
			if tt.scheme != "grpc://" {
				config.CAFile = ca
			}
			_, err := newClient(t, config).BeforeControlPlaneUpgrade(t.Context(), &hooks.BeforeControlPlaneUpgradeRequest{})
			want := "call BeforeControlPlaneUpgrade of gateway " + config.URL + ": " + tt.want + "; use " + tt.use + tt.address
			if fmt.Sprint(err) != want {
				t.Errorf("got\n%v\nwant\n%s", err, want)
			}
			if cause := errors.Unwrap(err); fmt.Sprint(cause) != tt.want {
				t.Errorf("the cause is %v", cause)
			}
		})
	}
}

// Hooks without a method of Client are called by the clients of their stubs, and what is no hook is refused.
func TestInvoke(t *testing.T) {
	c := newClient(t, caller.Config{URL: overGRPC(t, nil)})
	_, err := infrastructure.NewMachineHooksServiceClient(c).DeleteMachine(t.Context(), &infrastructure.DeleteMachineRequest{})
	if hook.KindOf(err) != hook.BadResponse || !strings.Contains(err.Error(), "Unimplemented") {
		t.Errorf("a hook of another group: %v", err)
	}
	var header metadata.MD
	_, err = c.BeforeClusterCreate(t.Context(), &hooks.BeforeClusterCreateRequest{}, grpc.Header(&header))
	if hook.KindOf(err) != hook.InvalidRequest {
		t.Errorf("an option of gRPC: %v", err)
	}
	if err := c.Invoke(t.Context(), "/a.B/C", &hooks.DiscoveryRequest{}, &hooks.DiscoveryResponse{}); hook.KindOf(err) != hook.UnknownHook {
		t.Errorf("no hook: %v", err)
	}
	if _, err := c.NewStream(t.Context(), nil, "/a.B/C"); hook.KindOf(err) != hook.UnknownHook {
		t.Errorf("a stream: %v", err)
	}
}

func TestMistakes(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		config caller.Config
		want   string
	}{
		"no URL":         {caller.Config{}, `gateway "": `},
		"no port":        {caller.Config{URL: "grpcs://hookgate"}, `gateway "grpcs://hookgate": must have a port, as in grpcs://hookgate:9090`},
		"not loopback":   {caller.Config{URL: "grpc://hookgate:9090"}, `gateway "grpc://hookgate:9090": must be on loopback, because grpc:// has no TLS; use grpcs://hookgate:9090`},
		"CA without TLS": {caller.Config{URL: "unix:///x", CAFile: "ca"}, `gateway "unix:///x": there is no TLS, so CAFile, CertFile and KeyFile have no effect`},
		"no CA":          {caller.Config{URL: "https://a", CAFile: "missing"}, "gateway https://a: read CAFile: open missing: no such file or directory"},
		"empty CA":       {caller.Config{URL: "https://a", CAFile: empty}, "gateway https://a: read CAFile: " + empty + " has no certificate in PEM"},
		"half a pair":    {caller.Config{URL: "https://a", CertFile: "a"}, "gateway https://a: CertFile and KeyFile are needed together"},
		"bad pair":       {caller.Config{URL: "https://a", CertFile: empty, KeyFile: empty}, "gateway https://a: read CertFile and KeyFile: "},
		"empty token":    {caller.Config{URL: "https://a", TokenFile: empty}, "gateway https://a: read TokenFile: " + empty + " has no token"},
		"two tokens":     {caller.Config{URL: "https://a", TokenFile: empty, Token: "a"}, "gateway https://a: want Token or TokenFile, got both"},
		"token too long": {caller.Config{URL: "https://a", TokenFile: large(t)}, "bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := caller.New(tt.config); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %s", err, tt.want)
			}
		})
	}
}

func large(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "large")
	if err := os.WriteFile(file, make([]byte, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// The token goes with each call, over both protocols.
func TestToken(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("t0k3n\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	seen := make(chan string, 2)
	url, ca := overJSON(t, func(w http.ResponseWriter, r *http.Request) {
		seen <- r.Header.Get("Authorization")
		_, _ = io.WriteString(w, `{"status":"Success"}`)
	})
	socket := overGRPC(t, func(ctx context.Context, _ *hooks.BeforeControlPlaneUpgradeRequest) (*hooks.BeforeControlPlaneUpgradeResponse, error) {
		seen <- strings.Join(metadata.ValueFromIncomingContext(ctx, "authorization"), ",")
		return &hooks.BeforeControlPlaneUpgradeResponse{Status: success}, nil
	})
	for _, config := range []caller.Config{{URL: url, CAFile: ca, TokenFile: file}, {URL: socket, TokenFile: file}, {URL: socket, Token: "t0k3n"}} {
		if _, err := newClient(t, config).BeforeControlPlaneUpgrade(t.Context(), &hooks.BeforeControlPlaneUpgradeRequest{}); err != nil {
			t.Error(err)
		}
		if got := <-seen; got != "Bearer t0k3n" {
			t.Errorf("%s: sent %q", config.URL, got)
		}
	}
}

func TestObject(t *testing.T) {
	for name, tt := range map[string]struct {
		object any
		want   string
	}{
		"cleaned": {
			map[string]any{
				"apiVersion": "a/v1", "kind": "A", "status": map[string]any{"x": 1}, "spec": map[string]any{"n": int64(9007199254740993)},
				"metadata": map[string]any{"name": "a", "managedFields": []any{1}, "annotations": map[string]any{"kubectl.kubernetes.io/last-applied-configuration": "{}", "b": "<&>"}},
			},
			`{"apiVersion":"a/v1","kind":"A","metadata":{"annotations":{"b":"\u003c\u0026\u003e"},"name":"a"},"spec":{"n":9007199254740993}}`,
		},
		"no TypeMeta":   {map[string]any{"metadata": map[string]any{}}, "object map[string]interface {} must have apiVersion and kind: set both, or the TypeMeta of a typed object"},
		"no metadata":   {map[string]any{"apiVersion": "v1", "kind": "A"}, "object map[string]interface {}: it has no metadata"},
		"not an object": {[]string{}, "object []string is not a JSON object: json: cannot unmarshal array into Go value of type map[string]json.RawMessage"},
		"not JSON":      {func() {}, "object func(): json: unsupported type: func()"},
	} {
		t.Run(name, func(t *testing.T) {
			raw, err := caller.Object(tt.object)
			got := string(raw.GetRaw())
			if err != nil {
				got = err.Error()
			}
			if got != tt.want {
				t.Errorf("got\n%s\nwant\n%s", got, tt.want)
			}
		})
	}
}

func ExampleHold() {
	wait, why, held := caller.Hold(&hooks.BeforeControlPlaneUpgradeResponse{Status: success, RetryAfterSeconds: 30, Message: "waits for an approval"})
	fmt.Println(held, wait, why)
	// Output: true 30s waits for an approval
}

func pemOf(s *httptest.Server) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
}
