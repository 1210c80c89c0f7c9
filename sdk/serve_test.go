// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package sdk_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	reflectionv1 "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"

	hooks "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/sdk"
	"github.com/hookgate/hookgate/sdk/internal/testcert"
)

// lines is a log that several goroutines write, and which tells when it has a line.
type lines struct {
	mu      sync.Mutex
	text    bytes.Buffer
	changed chan struct{}
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case l.changed <- struct{}{}:
	default:
	}
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// server is an extension that serves.
type server struct {
	address string
	log     *lines
	stop    context.CancelFunc
	ended   chan error
}

// serve serves x until the test ends, and returns when it listens.
func serve(t *testing.T, x *sdk.Extension, config sdk.Config) *server {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	s := &server{log: &lines{changed: make(chan struct{}, 1)}, stop: cancel, ended: make(chan error, 1)}
	x.Logger = slog.New(slog.NewJSONHandler(s.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	go func() { s.ended <- x.Serve(ctx, config) }()
	t.Cleanup(cancel)
	for {
		if _, after, ok := strings.Cut(s.log.String(), `"msg":"listening on `); ok {
			s.address, _, _ = strings.Cut(after, `"`)
			return s
		}
		select {
		case <-s.log.changed:
		case err := <-s.ended:
			t.Fatalf("Serve: %v", err)
		}
	}
}

func dial(t *testing.T, address string, transport credentials.TransportCredentials) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(transport))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// holding returns an extension whose handler "hold" waits until the channel is closed, and says on the other that it
// does.
func holding() (x *sdk.Extension, running chan struct{}, release chan struct{}) {
	x, running, release = &sdk.Extension{}, make(chan struct{}, 10), make(chan struct{})
	sdk.Handle(x, "hold", func(ctx context.Context, _ *upgrade) (sdk.Answer, error) {
		running <- struct{}{}
		select {
		case <-release:
			return sdk.Done(), nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	})
	return x, running, release
}

// A server on a socket: what it serves, who may open it, and how it ends.
func TestServe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.sock")
	x, running, release := holding()
	s := serve(t, x, sdk.Config{Address: "unix://" + path})
	if info, err := os.Stat(path); err != nil || info.Mode() != fs.ModeSocket|0o600 {
		t.Errorf("the socket: %v, %v", info, err)
	}
	if err := x.Serve(t.Context(), sdk.Config{Address: "unix://" + path}); err == nil ||
		err.Error() != "listen on unix://"+path+": another server listens there: stop it, or choose another path" {
		t.Errorf("a second server: %v", err)
	}
	conn := dial(t, "unix://"+path, insecure.NewCredentials())
	out, err := hooks.NewDiscoveryServiceClient(conn).Discovery(t.Context(), &hooks.DiscoveryRequest{})
	if err != nil || len(out.GetHandlers()) != 1 || out.GetHandlers()[0].GetName() != "hold" {
		t.Errorf("Discovery: %v, %v", out, err)
	}
	_, err = hooks.NewLifecycleHooksServiceClient(conn).AfterClusterUpgrade(t.Context(), &hooks.AfterClusterUpgradeRequest{})
	if status.Code(err) != codes.Unimplemented {
		t.Errorf("a hook without a handler: %v", err)
	}
	watch, err := healthv1.NewHealthClient(conn).Watch(t.Context(), &healthv1.HealthCheckRequest{Service: "hookgate.hooks.v1alpha1.LifecycleHooksService"})
	if err != nil {
		t.Fatal(err)
	}
	if health, err := watch.Recv(); err != nil || health.GetStatus() != healthv1.HealthCheckResponse_SERVING {
		t.Fatalf("health: %v, %v", health, err)
	}
	if services := reflected(t, conn); !strings.Contains(services, "hookgate.hooks.v1alpha1.LifecycleHooksService") {
		t.Errorf("reflection lists %s", services)
	}

	answered := make(chan error, 1)
	go func() {
		_, err := hooks.NewLifecycleHooksServiceClient(conn).BeforeClusterUpgrade(t.Context(), &upgrade{})
		answered <- err
	}()
	<-running
	s.stop()
	for err == nil { // streams end, although a call is in flight
		_, err = watch.Recv()
	}
	if status.Code(err) != codes.Unavailable {
		t.Errorf("the stream of health: %v", err)
	}
	close(release)
	if err := <-answered; err != nil {
		t.Errorf("a call in flight: %v", err)
	}
	if err := <-s.ended; err != nil {
		t.Errorf("Serve: %v", err)
	}
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("the socket is left behind: %v", err)
	}
}

func reflected(t *testing.T, conn *grpc.ClientConn) string {
	t.Helper()
	stream, err := reflectionv1.NewServerReflectionClient(conn).ServerReflectionInfo(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Send(&reflectionv1.ServerReflectionRequest{
		MessageRequest: &reflectionv1.ServerReflectionRequest_FileContainingSymbol{FileContainingSymbol: "hookgate.hooks.v1alpha1.LifecycleHooksService"},
	}); err != nil {
		t.Fatal(err)
	}
	out, err := stream.Recv()
	if err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestListen(t *testing.T) {
	dir := t.TempDir()
	stale := filepath.Join(dir, "stale.sock")
	listener, err := net.Listen("unix", stale)
	if err != nil {
		t.Fatal(err)
	}
	listener.(*net.UnixListener).SetUnlinkOnClose(false)
	_ = listener.Close() // as a killed server does
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for name, tt := range map[string]struct{ address, want string }{
		"file":          {"unix://" + file, "listen on unix://" + file + ": there is a file that is not a socket"},
		"no folder":     {"unix://" + dir + "/no/x.sock", "no such file or directory"},
		"relative path": {"unix://x.sock", "listen on unix://x.sock: want unix:///path"},
		"port in use":   {taken.Addr().String(), "listen on " + taken.Addr().String() + ": the port is in use: stop the program that uses it, or choose another port"},
		"all addresses": {":9090", "listen on :9090: the address is not loopback, so other hosts could call the extension: set CertFile and KeyFile, or set Insecure if something else protects the address"},
		"other address": {"192.0.2.1:9090", "listen on 192.0.2.1:9090: the address is not loopback, so other hosts could call the extension: set CertFile and KeyFile, or set Insecure if something else protects the address"},
		"no port":       {"localhost", `listen on "localhost": want host:port or unix:///path`},
	} {
		t.Run(name, func(t *testing.T) {
			x, _, _ := holding()
			x.Logger = quiet
			if err := x.Serve(t.Context(), sdk.Config{Address: tt.address}); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %s", err, tt.want)
			}
		})
	}
	x, _, _ := holding()
	x.Logger = quiet
	t.Setenv("EXTENSION_ADDRESS", taken.Addr().String())
	if err := x.Serve(t.Context(), sdk.Config{}); err == nil || !strings.HasSuffix(err.Error(), "or choose another port with EXTENSION_ADDRESS") {
		t.Errorf("got %v, want the variable that chooses the port", err)
	}
	t.Setenv("EXTENSION_ADDRESS", "unix://"+stale)
	s := serve(t, x, sdk.Config{})
	if s.address != "unix://"+stale {
		t.Errorf("it listens on %s", s.address)
	}
	if _, err := net.Dial("unix", stale); err != nil {
		t.Errorf("the socket of a killed server: %v", err)
	}
	y, _, _ := holding()
	serve(t, y, sdk.Config{Address: "0.0.0.0:0", Insecure: true})
}

// Calls beyond the bound are refused before they reach a handler, and the place of one that has ended is free.
func TestMaxCalls(t *testing.T) {
	x, running, release := holding()
	s := serve(t, x, sdk.Config{Address: "127.0.0.1:0", MaxCalls: 2})
	client := hooks.NewLifecycleHooksServiceClient(dial(t, s.address, insecure.NewCredentials()))
	answered := make(chan error, 2)
	for range 2 {
		go func() {
			_, err := client.BeforeClusterUpgrade(t.Context(), &upgrade{})
			answered <- err
		}()
		<-running
	}
	_, err := client.BeforeClusterUpgrade(t.Context(), &upgrade{})
	if s := status.Convert(err); s.Code() != codes.ResourceExhausted || s.Message() != "the extension has 2 calls in flight, and takes no more" {
		t.Errorf("a third call: %v", err)
	}
	close(release)
	for range 2 {
		if err := <-answered; err != nil {
			t.Error(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for err = status.Error(codes.ResourceExhausted, ""); status.Code(err) == codes.ResourceExhausted; {
		_, err = client.BeforeClusterUpgrade(ctx, &upgrade{})
	}
	if err != nil {
		t.Errorf("after the others: %v", err)
	}
}

// A certificate allows any address, and a ClientCAFile asks callers for one.
func TestServeTLS(t *testing.T) {
	dir := t.TempDir()
	files := testcert.In(dir)
	pair, roots := files.Write(t, time.Now().Add(time.Hour))
	cert, key, ca := files.Cert, files.Key, files.CA
	for name, tt := range map[string]struct {
		config       sdk.Config
		certificates []tls.Certificate
		code         codes.Code
	}{
		"any caller":           {sdk.Config{CertFile: cert, KeyFile: key}, nil, codes.OK},
		"with a certificate":   {sdk.Config{CertFile: cert, KeyFile: key, ClientCAFile: ca}, []tls.Certificate{pair}, codes.OK},
		"without certificates": {sdk.Config{CertFile: cert, KeyFile: key, ClientCAFile: ca}, nil, codes.Unavailable},
	} {
		t.Run(name, func(t *testing.T) {
			x := &sdk.Extension{}
			sdk.Handle(x, "done", done)
			tt.config.Address = "0.0.0.0:0"
			s := serve(t, x, tt.config)
			_, port, _ := net.SplitHostPort(s.address)
			conn := dial(t, "127.0.0.1:"+port, credentials.NewTLS(&tls.Config{RootCAs: roots, Certificates: tt.certificates}))
			if _, err := hooks.NewLifecycleHooksServiceClient(conn).BeforeClusterUpgrade(t.Context(), &upgrade{}); status.Code(err) != tt.code {
				t.Errorf("got %v, want %s", err, tt.code)
			}
		})
	}
	for name, tt := range map[string]struct {
		config sdk.Config
		want   string
	}{
		"no file":     {sdk.Config{CertFile: cert, KeyFile: filepath.Join(dir, "missing")}, "certificate " + cert + " and its key: read " + filepath.Join(dir, "missing") + ": no such file or directory"},
		"no CA":       {sdk.Config{CertFile: cert, KeyFile: key, ClientCAFile: filepath.Join(dir, "missing")}, "read certificate authorities of callers: " + filepath.Join(dir, "missing") + ": no such file or directory"},
		"only the CA": {sdk.Config{ClientCAFile: ca}, "ClientCAFile needs a server certificate: set CertFile and KeyFile"},
	} {
		t.Run(name, func(t *testing.T) {
			x := &sdk.Extension{Logger: quiet}
			sdk.Handle(x, "done", done)
			if err := x.Serve(t.Context(), tt.config); err == nil || err.Error() != tt.want {
				t.Errorf("got %v, want %s", err, tt.want)
			}
		})
	}
}

// Options of gRPC reach calls, as an interceptor that authenticates does.
func TestInterceptor(t *testing.T) {
	x := &sdk.Extension{}
	sdk.Handle(x, "done", done)
	refuse := func(_ context.Context, _ any, info *grpc.UnaryServerInfo, _ grpc.UnaryHandler) (any, error) {
		return nil, status.Error(codes.Unauthenticated, info.FullMethod)
	}
	s := serve(t, x, sdk.Config{Address: "127.0.0.1:0", Options: []grpc.ServerOption{grpc.UnaryInterceptor(refuse)}})
	_, err := hooks.NewLifecycleHooksServiceClient(dial(t, s.address, insecure.NewCredentials())).BeforeClusterUpgrade(t.Context(), &upgrade{})
	if status.Convert(err).Message() != hooks.LifecycleHooksService_BeforeClusterUpgrade_FullMethodName {
		t.Error(err)
	}
}
