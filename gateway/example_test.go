// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/gateway"
	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/hookversion"
	"github.com/hookgate/hookgate/internal/calls/extension"
	"github.com/hookgate/hookgate/internal/contract/codec"
	"github.com/hookgate/hookgate/internal/contract/convert"
	"github.com/hookgate/hookgate/internal/seeing/observe"
	"github.com/hookgate/hookgate/registry"
)

// noNamespaces knows no labels of namespaces, so that only empty namespaceSelectors match.
type noNamespaces struct{}

func (noNamespaces) NamespaceLabels(string) (map[string]string, bool) { return nil, true }

// A program that embeds the gateway registers handlers itself, and chooses how they are called. Here, the handlers are
// functions of the program; extension.NewProtocols calls extensions over REST and gRPC.
func Example() {
	hooks := catalog.New()
	mandated := codec.New(hooks)
	reg := registry.New()
	err := reg.Apply(registry.Registration{
		Name:         "acme",
		ClientConfig: registry.ClientConfig{URL: "https://extension.acme.example"},
		Handlers: []registry.Handler{{
			Name:    "quota",
			Hook:    hook.GroupVersionHook{Group: hook.Group, Version: hook.Version, Hook: "BeforeClusterCreate"},
			Timeout: 10 * time.Second, FailurePolicy: hook.Fail,
		}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	reg.SetReady()

	transport := func(_ context.Context, c extension.Call) (extension.Result, error) {
		return extension.Result{Response: &hooksv1alpha1.BeforeClusterCreateResponse{
			Status:            hooksv1alpha1.ResponseStatus_RESPONSE_STATUS_SUCCESS,
			Message:           c.Handler.Name + " waits for quota",
			RetryAfterSeconds: 30,
		}}, nil
	}
	metrics := observe.NewMetrics(prometheus.NewRegistry(), reg, hooks, "example")
	observer := observe.NewObserver(metrics, noop.NewTracerProvider(), slog.New(slog.DiscardHandler), convert.NewLosses(nil))
	dispatcher := gateway.NewDispatcher(gateway.Config{
		Catalog: hooks, Versions: hookversion.New(hooks), Codec: mandated, Registry: reg, Namespaces: noNamespaces{},
		Transport: transport, Observer: observer,
	})
	front, err := gateway.NewREST(dispatcher, gateway.NewServices(dispatcher))
	if err != nil {
		fmt.Println(err)
		return
	}

	server := httptest.NewServer(front)
	defer server.Close()
	response, err := http.Post(server.URL+"/hooks.runtime.cluster.x-k8s.io/v1alpha1/beforeclustercreate", "application/json",
		strings.NewReader(`{"cluster": {"kind": "Cluster", "metadata": {"name": "c1", "namespace": "default"}}}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	fmt.Println(response.Status, err)
	fmt.Println(strings.ReplaceAll(string(body), ",", ",\n "))
	// Output:
	// 200 OK <nil>
	// {"kind":"BeforeClusterCreateResponse",
	//  "apiVersion":"hooks.runtime.cluster.x-k8s.io/v1alpha1",
	//  "status":"Success",
	//  "message":"quota.acme waits for quota",
	//  "retryAfterSeconds":30}
}
