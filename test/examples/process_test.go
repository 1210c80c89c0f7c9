// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package examples

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/codec"
	"github.com/hookgate/hookgate/devcert"
	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/test/process"
)

const (
	// patience is how long a test waits for something that has no deadline of its own before it fails.
	patience = 30 * time.Second
	// messageLimit is what every example and the gateway take and give.
	messageLimit = 20 << 20
)

// gatewayPath returns the path of the gateway, and skips the test where it is not given.
func gatewayPath(t *testing.T) string {
	t.Helper()
	path := os.Getenv("HOOKGATE_BIN")
	if path == "" {
		t.Skip("HOOKGATE_BIN does not name a program: run `make test-examples`, which builds it and the examples")
	}
	return path
}

// program is a process that ends with its test, and whose log is shown when that fails.
type program struct {
	*process.Process
	name string
}

// start starts a program and returns the rest of the line that begins with prefix.
func start(t *testing.T, name, prefix, path string, args ...string) (program, string) {
	t.Helper()
	p, line, err := process.Start(t.Context(), t.TempDir(), name, prefix, exec.Command(path, args...))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("%s printed:%s", name, p.LogTail())
		}
		p.Kill()
	})
	return program{Process: p, name: name}, line
}

// awaitExit waits for an end that was asked for.
func (p program) awaitExit(t *testing.T) {
	t.Helper()
	if code, err := p.ExitStatus(patience); err != nil || code != 0 {
		t.Errorf("%s: exit status %d, %v; want 0", p.name, code, err)
	}
}

// stop asks the program to end.
func (p program) stop(t *testing.T) {
	t.Helper()
	if err := p.Terminate(); err != nil {
		t.Fatal(err)
	}
	p.awaitExit(t)
}

// example is an extension that runs.
type example struct {
	program
	address string
}

func startExample(t *testing.T, language, address string) *example {
	t.Helper()
	p, said := start(t, language, "listening on ", filepath.Join(folder, language, "run"), address)
	if said != address {
		t.Errorf("%s says that it listens on %q, want %q", language, said, address)
	}
	return &example{program: p, address: address}
}

// dial returns a connection to the example itself. The client has no limits, so that the server's are seen.
func (x *example) dial(t *testing.T) *grpc.ClientConn {
	t.Helper()
	return dial(t, x.address, insecure.NewCredentials())
}

func dial(t *testing.T, target string, c credentials.TransportCredentials) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient(target, grpc.WithTransportCredentials(c), grpc.WithAuthority("localhost"),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(2*messageLimit), grpc.MaxCallSendMsgSize(2*messageLimit)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// gateway is a `hookgate serve` with one ExtensionConfig.
type gateway struct {
	program
	https   string
	client  *http.Client
	conn    *grpc.ClientConn
	catalog *catalog.Catalog
	codec   *codec.Codec
}

func startGateway(t *testing.T, manifest string) *gateway {
	t.Helper()
	path := gatewayPath(t)
	configs, certs := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(configs, "acme.yaml"), []byte(manifest), 0o600); err != nil {
		t.Fatal(err)
	}
	pair, err := devcert.New(time.Now().Add(24*time.Hour), "127.0.0.1", "localhost")
	if err != nil {
		t.Fatal(err)
	}
	if err := pair.WriteDir(certs); err != nil {
		t.Fatal(err)
	}
	g := &gateway{catalog: catalog.New()}
	g.codec = codec.New(g.catalog)
	var line string
	g.program, line = start(t, "gateway", "hookgate serving ", path, "serve", "--extension-configs", configs, "--cert-dir", certs, "--resync", "1s",
		"--http-address", "127.0.0.1:0", "--grpc-address", "127.0.0.1:0", "--diagnostics-address", "127.0.0.1:0")
	var overGRPC, diagnostics string
	if _, err := fmt.Sscanf(line, "https=%s grpc=%s diagnostics=%s", &g.https, &overGRPC, &diagnostics); err != nil {
		t.Fatalf("read addresses %q: %v", line, err)
	}
	config := &tls.Config{RootCAs: pair.ClientTLS().RootCAs}
	transport := &http.Transport{TLSClientConfig: config}
	t.Cleanup(transport.CloseIdleConnections)
	g.client = &http.Client{Transport: transport, Timeout: patience}
	g.conn = dial(t, overGRPC, credentials.NewTLS(config))
	awaitReady(t, diagnostics)
	return g
}

// awaitReady waits until the gateway with these diagnostics says that it is ready.
func awaitReady(t *testing.T, diagnostics string) {
	t.Helper()
	eventually(t, "the gateway is ready", func() bool {
		response, err := http.Get("http://" + diagnostics + "/readyz")
		if err != nil {
			return false
		}
		_ = response.Body.Close()
		return response.StatusCode == http.StatusOK
	})
}

// post asks over REST.
func (g *gateway) post(t *testing.T, hook, handler, request string) (int, []byte) {
	t.Helper()
	h, ok := g.catalog.ByName(hook)
	if !ok {
		t.Fatalf("no hook %s", hook)
	}
	response, err := g.client.Post("https://"+g.https+h.Path(handler), "application/json", bytes.NewReader([]byte(request)))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, body
}

// call asks over gRPC, and returns the answer as the mandated JSON.
func (g *gateway) call(t *testing.T, hook, handler, request string) ([]byte, error) {
	t.Helper()
	h, ok := g.catalog.ByName(hook)
	if !ok {
		t.Fatalf("no hook %s", hook)
	}
	in, out := h.Request.New(), h.Response.New()
	if err := g.codec.Decode([]byte(request), in.Interface()); err != nil {
		t.Fatal(err)
	}
	in.Set(in.Descriptor().Fields().ByName("handler"), protoreflect.ValueOfString(handler))
	if err := g.conn.Invoke(soon(t), h.Method, in.Interface(), out.Interface()); err != nil {
		return nil, err
	}
	return g.codec.Append(nil, out.Interface())
}

// awaitHandlers waits until the gateway has discovered the example.
func (g *gateway) awaitHandlers(t *testing.T) {
	t.Helper()
	eventually(t, "the gateway has discovered the extension", func() bool {
		out := new(hooksv1alpha1.DiscoveryResponse)
		if err := g.conn.Invoke(soon(t), hooksv1alpha1.DiscoveryService_Discovery_FullMethodName, new(hooksv1alpha1.DiscoveryRequest), out); err != nil {
			t.Fatal(err)
		}
		return slices.ContainsFunc(out.GetHandlers(), func(h *hooksv1alpha1.ExtensionHandler) bool { return h.GetName() == "image-repository--acme" })
	})
}

// awaitAnswer waits until the gateway has found the example again.
func (g *gateway) awaitAnswer(t *testing.T) {
	t.Helper()
	e := exchanges["approved upgrade"]
	eventually(t, "the gateway has found the extension again", func() bool {
		code, _ := g.post(t, e.hook, e.handler+".acme", e.request)
		return code == http.StatusOK
	})
}

// runScript runs a script to its end.
func runScript(t *testing.T, path string, args ...string) (code int, output string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	text, err := exec.CommandContext(ctx, path, args...).CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	if exit != nil {
		code = exit.ExitCode()
	}
	return code, string(text)
}

// soon returns a context that ends with the test, or when a call should long be done.
func soon(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// eventually waits until check holds.
func eventually(t *testing.T, what string, check func() bool) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for !check() {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not so after %s", what, patience)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// takenAddress returns an address on loopback that another program listens on.
func takenAddress(t *testing.T) string {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l.Addr().String()
}

// freeAddress returns an address on loopback that nothing listens on.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = l.Close()
	return l.Addr().String()
}

// shortDir returns a new folder whose path fits into the 108 bytes that a Unix socket's may have.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "x")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}
