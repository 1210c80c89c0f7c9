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
	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/internal/contract/codec"
	"github.com/hookgate/hookgate/internal/network/devcert"
	"github.com/hookgate/hookgate/test/process"
)

// messageLimit is the message size that every example and the gateway accept and send.
const messageLimit = 20 << 20

// gatewayPath returns the path of the gateway.
func gatewayPath(t *testing.T) string {
	t.Helper()
	return process.Program(t, "HOOKGATE_BIN")
}

// example is a running extension.
type example struct {
	*process.Process
	address string
}

func startExample(t *testing.T, language, address string) *example {
	t.Helper()
	p := process.Run(t, language, exec.Command(filepath.Join(folder, language, "run"), address))
	if said := p.Expect(t, `listening on ([^"\n]*)["\n]`)[1]; said != address {
		t.Errorf("%s says that it listens on %q, want %q", language, said, address)
	}
	return &example{Process: p, address: address}
}

// dial returns a connection to the example itself. The client has no limits, so the server's apply.
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
	*process.Gateway
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
	args := append([]string{"serve", "--extension-configs", configs, "--cert-dir", certs, "--resync", "1s"},
		process.AnyPorts()...)
	g.Gateway = process.RunGateway(t, exec.Command(path, args...))
	config := &tls.Config{RootCAs: pair.ClientTLS().RootCAs}
	transport := &http.Transport{TLSClientConfig: config}
	t.Cleanup(transport.CloseIdleConnections)
	g.client = &http.Client{Transport: transport, Timeout: process.Patience}
	g.conn = dial(t, g.GRPC, credentials.NewTLS(config))
	g.WaitReady(t)
	return g
}

// post calls a hook over REST.
func (g *gateway) post(t *testing.T, hook, handler, request string) (int, []byte) {
	t.Helper()
	h, ok := g.catalog.ByName(hook)
	if !ok {
		t.Fatalf("no hook %s", hook)
	}
	response, err := g.client.Post("https://"+g.HTTPS+h.Path(handler), "application/json",
		bytes.NewReader([]byte(request)))
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

// call calls a hook over gRPC, and returns the answer as canonical JSON.
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
	process.Eventually(t, "the gateway has discovered the extension", func() bool {
		out := new(hooksv1alpha1.DiscoveryResponse)
		if err := g.conn.Invoke(soon(t), hooksv1alpha1.DiscoveryService_Discovery_FullMethodName, new(hooksv1alpha1.DiscoveryRequest), out); err != nil {
			t.Fatal(err)
		}
		return slices.ContainsFunc(out.GetHandlers(),
			func(h *hooksv1alpha1.ExtensionHandler) bool { return h.GetName() == "image-repository--acme" })
	})
}

// awaitAnswer waits until the gateway has found the example again.
func (g *gateway) awaitAnswer(t *testing.T) {
	t.Helper()
	e := exchanges["approved upgrade"]
	process.Eventually(t, "the gateway has found the extension again", func() bool {
		code, _ := g.post(t, e.hook, e.handler+".acme", e.request)
		return code == http.StatusOK
	})
}

// runScript runs a script to its end.
func runScript(t *testing.T, path string, args ...string) (code int, output string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), process.Patience)
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

// soon returns a context that ends with the test, or once any call should be over.
func soon(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), process.Patience)
	t.Cleanup(cancel)
	return ctx
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
	return fmt.Sprintf("127.0.0.1:%d", process.FreePort(t))
}

// shortDir returns a new folder whose path fits into the 108 bytes that a Unix socket's may have.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "x") //nolint:usetesting // the path of t.TempDir is too long
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}
