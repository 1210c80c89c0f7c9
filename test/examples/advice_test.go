// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package examples

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/test/certificates"
	"github.com/hookgate/hookgate/test/process"
)

// curlLine matches a call of the guide: its path and its body.
var curlLine = regexp.MustCompile(`(?s)^curl .*https://127\.0\.0\.1:9443(/\S+) .*-d '(.*)'\n$`)

// adviser is the guide's extension, after some of its advice.
type adviser struct {
	hooksv1alpha1.UnimplementedDiscoveryServiceServer
	hooksv1alpha1.UnimplementedLifecycleHooksServiceServer
	objects string // the version of objects that it states
}

func (a *adviser) Discovery(context.Context, *hooksv1alpha1.DiscoveryRequest) (*hooksv1alpha1.DiscoveryResponse, error) {
	return &hooksv1alpha1.DiscoveryResponse{
		Status: hooksv1alpha1.ResponseStatus_RESPONSE_STATUS_SUCCESS,
		Handlers: []*hooksv1alpha1.ExtensionHandler{{
			Name: "require-team", ClusterApiVersion: a.objects, RequestHook: &hooksv1alpha1.GroupVersionHook{
				ApiVersion: "hooks.runtime.cluster.x-k8s.io/v1alpha1", Hook: "BeforeClusterCreate",
			},
		}},
	}, nil
}

func (*adviser) BeforeClusterCreate(
	_ context.Context, in *hooksv1alpha1.BeforeClusterCreateRequest,
) (*hooksv1alpha1.BeforeClusterCreateResponse, error) {
	cluster, out := &unstructured.Unstructured{}, &hooksv1alpha1.BeforeClusterCreateResponse{
		Status: hooksv1alpha1.ResponseStatus_RESPONSE_STATUS_SUCCESS,
	}
	if err := cluster.UnmarshalJSON(in.GetCluster().GetRaw()); err != nil {
		return nil, err
	}
	if cluster.GetLabels()["team"] == "" {
		out.Message = fmt.Sprintf("Cluster %s waits for the label team", cluster.GetName())
		out.RetryAfterSeconds = 30
	}
	return out, nil
}

// The curl lines of the guide print what it says also after each piece of its advice that changes what the gateway
// does: to state the version of objects, and to serve the health service.
func TestGuidesCallsAfterItsAdvice(t *testing.T) {
	gateway := gatewayPath(t)
	for name, advice := range map[string]struct {
		objects string
		health  bool
	}{
		"none": {}, "states v1beta2": {objects: "v1beta2"}, "states v1beta1": {objects: "v1beta1"},
		"serves health": {health: true}, "all": {objects: "v1beta1", health: true},
	} {
		t.Run(name, func(t *testing.T) {
			listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			server, x := grpc.NewServer(), &adviser{objects: advice.objects}
			hooksv1alpha1.RegisterDiscoveryServiceServer(server, x)
			hooksv1alpha1.RegisterLifecycleHooksServiceServer(server, x)
			if advice.health {
				healthv1.RegisterHealthServer(server, health.NewServer())
			}
			served := make(chan error, 1)
			go func() { served <- server.Serve(listener) }()
			t.Cleanup(func() {
				server.Stop()
				if err := <-served; err != nil {
					t.Errorf("serve: %v", err)
				}
			})

			client, address := startSidecar(t, gateway, listener.Addr().String())
			calls := 0
			for _, s := range readGuide(t, guide) {
				for i, b := range s.blocks {
					call := curlLine.FindStringSubmatch(b.text)
					if call == nil {
						continue
					}
					calls++
					if got, want := post(t, client, "https://"+address+call[1], call[2]), strings.TrimSpace(s.blocks[i+1].text); got != want {
						t.Errorf("%s\nprints\n%s\nand the guide says\n%s", b.text, got, want)
					}
				}
			}
			if calls != 2 {
				t.Errorf("the guide has %d calls, want 2", calls)
			}
		})
	}
}

// startSidecar starts a gateway beside an extension, and returns a client of it and its address when it is ready.
func startSidecar(t *testing.T, gateway, extension string) (client *http.Client, address string) {
	t.Helper()
	dir := t.TempDir()
	pair := certificates.In(t, dir)
	g := process.RunGateway(t, exec.Command(gateway, "serve", "--sidecar", "grpc://"+extension, "--cert-dir", dir,
		"--http-address=127.0.0.1:0", "--diagnostics-address=127.0.0.1:0"))
	g.WaitReady(t)
	g.Expect(t, "extension discovered") // it is ready once it has tried
	transport := &http.Transport{TLSClientConfig: pair.ClientTLS()}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: process.Patience}, g.HTTPS
}

func post(t *testing.T, client *http.Client, url, body string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(answer))
}
