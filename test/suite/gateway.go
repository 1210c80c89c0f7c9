// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"

	"github.com/hookgate/hookgate/test/process"
)

// The environment variables with the paths of the programs.
const (
	gatewayVariable   = "HOOKGATE_BIN"
	extensionVariable = "HOOKGATE_TEST_EXTENSION"
)

// bodyLimit is the largest body of requests and responses, over REST and gRPC.
const bodyLimit = 20 << 20

// gateway is a running `hookgate serve` with its manifests.
type gateway struct {
	*process.Gateway
	authority *authority
	configs   string // --extension-configs
	certs     string // --cert-dir
	client    *http.Client
}

// startGateway runs a gateway with the manifests, by file name, and waits until it is ready. flags come last.
func startGateway(t testing.TB, a *authority, manifests map[string]string, flags ...string) *gateway {
	t.Helper()
	return startGatewayWith(t, a, a.dir(t), manifests, flags...)
}

// startGatewayWith is startGateway with certs as the directory of certificates.
func startGatewayWith(t testing.TB, a *authority, certs string, manifests map[string]string, flags ...string) *gateway {
	t.Helper()
	path := process.Program(t, gatewayVariable)
	g := &gateway{authority: a, configs: t.TempDir(), certs: certs}
	for file, text := range manifests {
		g.write(t, file, text)
	}
	args := append([]string{"serve", "--extension-configs", g.configs, "--cert-dir", g.certs}, process.AnyPorts()...)
	g.Gateway = process.RunGateway(t, exec.Command(path, append(args, flags...)...))
	g.client = newClient(t, a)
	g.WaitReady(t)
	return g
}

// write creates or replaces a manifest.
func (g *gateway) write(t testing.TB, file, text string) {
	t.Helper()
	writeFile(t, filepath.Join(g.configs, file), []byte(text))
}

// newClient returns a client with connections of its own that trusts the authority.
func newClient(t testing.TB, a *authority) *http.Client {
	t.Helper()
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: a.pool}, ForceAttemptHTTP2: true,
		DisableCompression: true, MaxIdleConnsPerHost: 64}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: 60 * time.Second}
}

// http11 returns a client limited to HTTP/1.1.
func http11(t testing.TB, a *authority) *http.Client {
	t.Helper()
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: a.pool, NextProtos: []string{"http/1.1"}},
		DisableCompression: true}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: 60 * time.Second}
}

// metrics returns the text of /metrics.
func (g *gateway) metrics(t testing.TB) string {
	t.Helper()
	request, err := http.NewRequest(http.MethodGet, "http://"+g.Diagnostics+"/metrics", nil)
	if err != nil {
		t.Fatalf("create request: %v", err)
	}
	got, err := do(http.DefaultClient, request)
	if err != nil || got.code != http.StatusOK {
		t.Fatalf("get /metrics: status %d, %v", got.code, err)
	}
	return string(got.body)
}

// answer is an HTTP response, read to its end.
type answer struct {
	code   int
	header http.Header
	body   []byte
}

// do sends a request and reads the answer to its end.
func do(client *http.Client, request *http.Request) (answer, error) {
	response, err := client.Do(request)
	if err != nil {
		return answer{}, err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	return answer{code: response.StatusCode, header: response.Header, body: body}, err
}

// path returns the path of a hook and, unless it is empty, a handler.
func path(hook, handler string) string {
	p := "/" + runtimehooksv1.GroupVersion.String() + "/" + strings.ToLower(hook)
	if handler != "" {
		p += "/" + handler
	}
	return p
}

// post calls the gateway as Cluster API does: POST without a Content-Type.
func (g *gateway) post(t testing.TB, path string, body []byte) answer {
	t.Helper()
	return post(t, g.client, "https://"+g.HTTPS+path, body)
}

func post(t testing.TB, client *http.Client, url string, body []byte) answer {
	t.Helper()
	got, err := try(client, url, body)
	if err != nil {
		t.Fatalf("call: %v", err)
	}
	return got
}

// try is post for goroutines other than the test's own.
func try(client *http.Client, url string, body []byte) (answer, error) {
	request, err := http.NewRequest(http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	return do(client, request)
}

// discovery returns the answer of the gateway's Discovery and its handlers.
func (g *gateway) discovery(t testing.TB) (answer, []runtimehooksv1.ExtensionHandler) {
	t.Helper()
	got := g.post(t, path("Discovery", ""), []byte(`{"apiVersion":"hooks.runtime.cluster.x-k8s.io/v1alpha1","kind":"DiscoveryRequest"}`))
	if got.code != http.StatusOK {
		t.Fatalf("Discovery answers %d: %s", got.code, got.body)
	}
	var response runtimehooksv1.DiscoveryResponse
	if err := json.Unmarshal(got.body, &response); err != nil {
		t.Fatalf("decode answer of Discovery: %v", err)
	}
	return got, response.Handlers
}

// offers reports whether the gateway's discovery has a handler of that name.
func (g *gateway) offers(t testing.TB, name string) bool {
	t.Helper()
	_, handlers := g.discovery(t)
	return slices.ContainsFunc(handlers, func(h runtimehooksv1.ExtensionHandler) bool { return h.Name == name })
}

// awaitHandler waits until the gateway has discovered a handler.
func (g *gateway) awaitHandler(t testing.TB, name string) {
	t.Helper()
	process.Eventually(t, "Discovery offers handler "+name, func() bool { return g.offers(t, name) })
}

// dial returns a gRPC connection to the gateway, with the same limits as over REST.
func (g *gateway) dial(t testing.TB) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient(g.GRPC,
		grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{RootCAs: g.authority.pool})),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(bodyLimit), grpc.MaxCallSendMsgSize(64<<20)))
	if err != nil {
		t.Fatalf("create gRPC client: %v", err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// soon returns a context that ends with the test, or once any call should be over.
func soon(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	t.Cleanup(cancel)
	return ctx
}
