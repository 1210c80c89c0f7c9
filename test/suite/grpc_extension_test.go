// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/reflection"

	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/test/process"
)

// generated is an extension of generated stubs, which implements one hook and leaves discovery to reflection.
type generated struct {
	hooksv1alpha1.UnimplementedTopologyMutationHooksServiceServer
}

func (generated) ValidateTopology(_ context.Context,
	in *hooksv1alpha1.ValidateTopologyRequest) (*hooksv1alpha1.ValidateTopologyResponse, error) {
	return &hooksv1alpha1.ValidateTopologyResponse{
		Status:  hooksv1alpha1.ResponseStatus_RESPONSE_STATUS_SUCCESS,
		Message: fmt.Sprintf("%s saw %d items", in.GetHandler(), len(in.GetItems())),
	}, nil
}

// An extension on a Unix socket is discovered once it starts, called from both fronts, and called again after a
// restart.
func TestExtensionOnAUnixSocket(t *testing.T) {
	process.Program(t, gatewayVariable)
	a := newAuthority(t)
	socket := filepath.Join(t.TempDir(), "acme.sock")
	manifest := "apiVersion: runtime.cluster.x-k8s.io/v1beta2\nkind: ExtensionConfig\nmetadata: {name: acme}\nspec: {clientConfig: {url: \"unix://" + socket + "\"}}\n"
	g := startGateway(t, a, map[string]string{"acme.yaml": manifest}, "--resync", "1s")
	g.Expect(t, "there is no such socket")
	for range 2 {
		l, err := new(net.ListenConfig).Listen(t.Context(), "unix", socket)
		if err != nil {
			t.Fatal(err)
		}
		server := grpc.NewServer()
		hooksv1alpha1.RegisterTopologyMutationHooksServiceServer(server, generated{})
		reflection.Register(server)
		go func() { _ = server.Serve(l) }() // until it is stopped
		t.Cleanup(server.Stop)
		g.awaitHandler(t, "validatetopology--acme")

		process.Eventually(t, "REST is answered", func() bool {
			got := g.post(t, path("ValidateTopology", "validatetopology.acme"),
				[]byte(`{"items":[{"uid":"1","object":{}}]}`))
			return got.code == http.StatusOK && strings.Contains(string(got.body),
				`"message":"validatetopology saw 1 items"`)
		})
		// A hook that the service has but the extension does not implement.
		got := g.post(t, path("DiscoverVariables", "discovervariables.acme"), []byte(`{}`))
		if want := "answered Unimplemented: it has no hookgate.hooks.v1alpha1.TopologyMutationHooksService/DiscoverVariables"; got.code != http.StatusBadGateway || !strings.Contains(string(got.body), want) {
			t.Errorf("status %d: %s, want %s", got.code, got.body, want)
		}
		server.Stop()
		down := g.post(t, path("ValidateTopology", "validatetopology.acme"), []byte(`{}`))
		if down.code != http.StatusServiceUnavailable {
			t.Errorf("while it is away: status %d: %s", down.code, down.body)
		}
	}
}
