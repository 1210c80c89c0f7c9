// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"context"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"

	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/test/process"
	"github.com/hookgate/hookgate/test/samples"
)

// beside is an extension with a gateway as its sidecar: two handlers of one hook, one of which is named after the hook,
// and one whose answers cannot be merged.
type beside struct {
	hooksv1alpha1.UnimplementedDiscoveryServiceServer
	hooksv1alpha1.UnimplementedLifecycleHooksServiceServer
	hooksv1alpha1.UnimplementedTopologyMutationHooksServiceServer
	release chan struct{} // if it is not nil, ValidateTopology waits for it
}

func (beside) Discovery(context.Context, *hooksv1alpha1.DiscoveryRequest) (*hooksv1alpha1.DiscoveryResponse, error) {
	handler := func(name, hook string, seconds int32, policy hooksv1alpha1.FailurePolicy) *hooksv1alpha1.ExtensionHandler {
		return &hooksv1alpha1.ExtensionHandler{
			Name: name, RequestHook: &hooksv1alpha1.GroupVersionHook{ApiVersion: runtimehooksv1.GroupVersion.String(),
				Hook: hook},
			TimeoutSeconds: new(seconds), FailurePolicy: policy,
		}
	}
	return &hooksv1alpha1.DiscoveryResponse{Status: hooksv1alpha1.ResponseStatus_RESPONSE_STATUS_SUCCESS, Handlers: []*hooksv1alpha1.ExtensionHandler{
		handler("validate", "ValidateTopology", 30, hooksv1alpha1.FailurePolicy_FAILURE_POLICY_FAIL),
		handler("audit", "BeforeClusterCreate", 20, hooksv1alpha1.FailurePolicy_FAILURE_POLICY_IGNORE),
		handler("beforeclustercreate", "BeforeClusterCreate", 30, hooksv1alpha1.FailurePolicy_FAILURE_POLICY_FAIL),
	}}, nil
}

func (beside) BeforeClusterCreate(_ context.Context,
	in *hooksv1alpha1.BeforeClusterCreateRequest) (*hooksv1alpha1.BeforeClusterCreateResponse, error) {
	return &hooksv1alpha1.BeforeClusterCreateResponse{
		Status: hooksv1alpha1.ResponseStatus_RESPONSE_STATUS_SUCCESS, Message: "asked as " + in.GetHandler(),
		RetryAfterSeconds: 7,
	}, nil
}

func (b beside) ValidateTopology(ctx context.Context,
	_ *hooksv1alpha1.ValidateTopologyRequest) (*hooksv1alpha1.ValidateTopologyResponse, error) {
	if b.release != nil {
		select {
		case <-b.release:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return &hooksv1alpha1.ValidateTopologyResponse{Status: hooksv1alpha1.ResponseStatus_RESPONSE_STATUS_SUCCESS}, nil
}

// startBeside starts the extension and stops it at the end of the test.
func startBeside(t testing.TB, network, address string, b beside) *grpc.Server {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), network, address)
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	hooksv1alpha1.RegisterDiscoveryServiceServer(server, b)
	hooksv1alpha1.RegisterLifecycleHooksServiceServer(server, b)
	hooksv1alpha1.RegisterTopologyMutationHooksServiceServer(server, b)
	go func() { _ = server.Serve(l) }() // until it is stopped
	t.Cleanup(server.Stop)
	return server
}

// startSidecar starts a gateway for the extension at url without waiting until it is ready.
func startSidecar(t testing.TB, url string) *gateway {
	t.Helper()
	path := process.Program(t, gatewayVariable)
	a := newAuthority(t)
	g := &gateway{authority: a, certs: a.dir(t)}
	g.Gateway = process.RunGateway(t, exec.Command(path, "serve", "--sidecar", url, "--cert-dir", g.certs,
		"--http-address=127.0.0.1:0", "--diagnostics-address=127.0.0.1:0"))
	if g.GRPC != "" { // The extension speaks it, often on the default port.
		t.Fatalf("a sidecar listens for gRPC on %s", g.GRPC)
	}
	g.client = newClient(t, a)
	return g
}

// Cluster API sees the extension as if it answered JSON over HTTPS itself, whichever of the two starts first, and again
// after the extension was down.
func TestSidecar(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "x.sock")
	for name, tc := range map[string]struct{ network, address, url, away string }{
		"Unix socket": {"unix", socket, "unix://" + socket, "there is no such socket"},
		"loopback":    {"tcp", freeAddress(t), "grpc://", "connection refused"},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.network == "tcp" {
				tc.url += tc.address
			}
			g := startSidecar(t, tc.url)
			const asked = `{"apiVersion":"hooks.runtime.cluster.x-k8s.io/v1alpha1","kind":"DiscoveryRequest"}`

			// Before the extension starts, discovery fails with the cause; it does not report an empty list.
			process.Eventually(t, "Discovery says why there is no answer", func() bool {
				got := g.post(t, path("Discovery", ""), []byte(asked))
				text := checkFailure(t, "Discovery", got, http.StatusServiceUnavailable)
				return strings.HasPrefix(text, "the extension beside the gateway has not answered yet: ") &&
					strings.Contains(text, tc.away)
			})
			if code := g.Ready(t.Context()); code != http.StatusServiceUnavailable {
				t.Errorf("/readyz answers %d before the extension has started", code)
			}

			for range 2 {
				server := startBeside(t, tc.network, tc.address, beside{})
				process.Eventually(t, "/readyz answers 200",
					func() bool { return g.Ready(t.Context()) == http.StatusOK })
				process.Eventually(t, "a call is answered", func() bool {
					return g.post(t, path("BeforeClusterCreate", "beforeclustercreate"),
						samples.S()).code == http.StatusOK
				})
				_, handlers := g.discovery(t)
				var got []string
				for _, h := range handlers {
					got = append(got, h.Name+" "+h.RequestHook.Hook+" "+string(*h.FailurePolicy))
				}
				want := []string{"audit BeforeClusterCreate Ignore", "beforeclustercreate BeforeClusterCreate Fail",
					"validate ValidateTopology Fail"}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("handlers: -want +got\n%s", diff)
				}
				for _, handler := range []string{"audit", "beforeclustercreate"} {
					got := g.post(t, path("BeforeClusterCreate", handler), samples.S())
					want := `{"apiVersion":"hooks.runtime.cluster.x-k8s.io/v1alpha1","kind":"BeforeClusterCreateResponse","status":"Success",` +
						`"message":"asked as ` + handler + `","retryAfterSeconds":7}`
					if diff := cmp.Diff(decodeMembers(t, []byte(want)), decodeMembers(t, got.body)); got.code != http.StatusOK || diff != "" {
						t.Errorf("%s answers %d, -want +got\n%s", handler, got.code, diff)
					}
				}
				checkFailure(t, "BeforeClusterCreate",
					g.post(t, path("BeforeClusterCreate", "audit.sidecar"), samples.S()), http.StatusNotFound)

				// While it is down again, the known handlers stay, and the answer comes long before the caller gives
				// up.
				server.Stop()
				client := *g.client
				client.Timeout = process.Patience
				down := post(t, &client, "https://"+g.HTTPS+path("BeforeClusterCreate",
					"beforeclustercreate")+"?timeout=25s", samples.S())
				if text := checkFailure(t, "BeforeClusterCreate", down, http.StatusServiceUnavailable); !strings.Contains(text, `handler "beforeclustercreate"`) {
					t.Errorf("the message does not name the handler: %s", text)
				}
				if code := g.Ready(t.Context()); code != http.StatusOK {
					t.Errorf("/readyz answers %d while the extension is away", code)
				}
			}
		})
	}
}

// soonerThanTheMaximum bounds calls with a short deadline: it is below the 30 s maximum of a handler, yet long enough
// on a busy machine.
const soonerThanTheMaximum = 25 * time.Second

// The gateway waits for a slow extension as long as the caller waits, and no longer.
func TestSidecarKeepsTheCallersDeadline(t *testing.T) {
	release := make(chan struct{})
	defer close(release)
	address := freeAddress(t)
	startBeside(t, "tcp", address, beside{release: release})
	g := startSidecar(t, "grpc://"+address)
	process.Eventually(t, "/readyz answers 200", func() bool { return g.Ready(t.Context()) == http.StatusOK })
	began := time.Now()
	got := g.post(t, path("ValidateTopology", "validate")+"?timeout=1s", []byte(`{}`))
	checkFailure(t, "ValidateTopology", got, http.StatusGatewayTimeout)
	if took := time.Since(began); took > soonerThanTheMaximum {
		t.Errorf("the answer came after %s, though the caller waits for 1s", took)
	}
}

// freeAddress returns an address on loopback that nothing listens on.
func freeAddress(t testing.TB) string {
	t.Helper()
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(process.FreePort(t)))
}
