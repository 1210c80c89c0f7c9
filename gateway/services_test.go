// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace/noop"
	"google.golang.org/grpc"

	"github.com/hookgate/hookgate/catalog"
	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/calls/extension"
	"github.com/hookgate/hookgate/internal/calls/outcome"
	"github.com/hookgate/hookgate/internal/contract/codec"
	"github.com/hookgate/hookgate/internal/contract/convert"
	"github.com/hookgate/hookgate/internal/seeing/observe"
	"github.com/hookgate/hookgate/internal/serving/shared"
	"github.com/hookgate/hookgate/registry"
)

// newServicesFront returns a REST front of the services, with one extension that has a handler of DiscoverVariables. It answers with
// the handler and the setting "id" that it was asked with.
func newServicesFront(t *testing.T) *httptest.Server {
	t.Helper()
	hooks, versions, err := Hooks()
	if err != nil {
		t.Fatal(err)
	}
	mandated := codec.New(hooks)
	r := filled(t, registrationOf("acme", registry.Handler{
		Name: "machine", Timeout: time.Second, FailurePolicy: hook.Fail,
		Hook: hook.GroupVersionHook{Group: hook.Group, Version: "v1alpha1", Hook: "DiscoverVariables"},
	}))
	observer := observe.NewObserver(observe.NewMetrics(prometheus.NewRegistry(), r, hooks, "test"), noop.NewTracerProvider(),
		slog.New(slog.DiscardHandler), convert.NewLosses(nil))
	d := NewDispatcher(Config{
		Catalog: hooks, Versions: versions, Registry: r, Namespaces: fixedNamespaces{},
		Parts: shared.Parts{Codec: mandated, Observer: observer, Transport: func(ctx context.Context, c extension.Call) (extension.Result, error) {
			request, _ := c.Request.(*hooksv1alpha1.DiscoverVariablesRequest)
			id := request.GetSettings()["id"]
			if id == "slow" {
				<-ctx.Done()
				return extension.Result{}, hook.Errorf(hook.Timeout, "the deadline passed")
			}
			return extension.Result{Response: outcome.New(c.Hook, 1, c.Handler.Name+" of "+id)}, nil
		}},
	})
	front, err := NewREST(d, NewServices(d))
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(front)
	t.Cleanup(server.Close)
	return server
}

// wholeAnswer returns what a front writes, without what differs in each call.
func wholeAnswer(t *testing.T, server *httptest.Server, path, body string, header http.Header) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header = header
	resp, err := server.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var b strings.Builder
	if _, err := io.Copy(&b, resp.Body); err != nil {
		t.Fatal(err)
	}
	resp.Header.Del("Date")
	resp.Header.Del(CallIDHeader)
	header = resp.Header
	b.WriteString("\n" + resp.Status + "\n")
	if err := header.Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestServices calls the services over REST, by the paths, headers and bodies that the gateway answers itself.
func TestServices(t *testing.T) {
	front := newServicesFront(t)
	const prefix = "/hooks.runtime.cluster.x-k8s.io/v1alpha1/"
	for name, tt := range map[string]struct {
		path, body string
		header     http.Header
		want       string // in the answer
	}{
		"Handler":        {path: "discovervariables/machine.acme", body: `{"settings":{"id":"m-1"}}`, want: "machine.acme of m-1"},
		"Only":           {path: "discovervariables", body: `{"settings":{"id":"m-2"}}`, want: "machine.acme of m-2"},
		"Discovery":      {path: "discovery", body: `{}`, want: "machine--acme"},
		"DiscoveryOfOne": {path: "discovery/acme", body: `{}`, want: "UnknownHook"},
		"EscapedHandler": {path: "discovervariables/machine%2eacme", body: `{"settings":{"id":"m-3"}}`, want: "machine.acme of m-3"},
		"Colon":          {path: "discovervariables/machine.acme:x", body: `{}`, want: `machine.acme:x`},
		"EscapedSlash":   {path: "discovervariables/a%2Fb", body: `{}`, want: "UnknownHook"},
		"Unknown":        {path: "discovervariables/nowhere.acme", body: `{"settings":{"id":"m-4"}}`, want: "UnknownHandler"},
		"NoHandler":      {path: "generatepatches", body: `{"settings":{"id":"m-5"}}`, want: "UnknownHandler"},
		"Empty":          {path: "discovervariables", body: "", want: "body is empty"},
		"HalfJSON":       {path: "discovervariables", body: `{"settings":`, want: "400 Bad Request"},
		"WrongKind":      {path: "discovervariables", body: `{"kind":"Machine"}`, want: "want DiscoverVariablesRequest"},
		"NoMachine":      {path: "updatemachine", body: `{}`, want: "desired.machine: required"},
		"Timeout":        {path: "discovervariables?timeout=10ms", body: `{"settings":{"id":"slow"}}`, want: "504 Gateway Timeout"},
		"GRPCTimeout": {
			path: "discovervariables", body: `{"settings":{"id":"slow"}}`,
			header: http.Header{"Grpc-Timeout": {"10m"}}, want: "504 Gateway Timeout",
		},
		"WrongGRPCTimeout": {
			path: "discovervariables", body: `{"settings":{"id":"slow"}}`,
			header: http.Header{"Grpc-Timeout": {"soon"}}, want: "400 Bad Request",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := wholeAnswer(t, front, prefix+tt.path, tt.body, tt.header)
			if !strings.Contains(got, tt.want) {
				t.Errorf("want %q in:\n%s", tt.want, got)
			}
		})
	}
}

// registered collects the names of services and methods.
type registered map[string]string

func (r registered) RegisterService(desc *grpc.ServiceDesc, _ any) {
	for _, m := range desc.Methods {
		r["/"+desc.ServiceName+"/"+m.MethodName], _ = desc.Metadata.(string)
	}
}

// TestServicesOverGRPC compares the methods over gRPC, and the files that server reflection reads, with the generated
// stubs.
func TestServicesOverGRPC(t *testing.T) {
	want, got := registered{}, registered{}
	hooksv1alpha1.RegisterDiscoveryServiceServer(want, nil)
	hooksv1alpha1.RegisterLifecycleHooksServiceServer(want, nil)
	hooksv1alpha1.RegisterTopologyMutationHooksServiceServer(want, nil)
	hooksv1alpha1.RegisterInPlaceUpdateHooksServiceServer(want, nil)
	hooksv1alpha1.RegisterUpgradePlanHooksServiceServer(want, nil)
	NewServices(NewDispatcher(Config{Catalog: catalog.New()})).RegisterGRPC(got)
	if diff := cmp.Diff(want, got); diff != "" || len(want) != 17 {
		t.Errorf("%d methods, -stubs +services:\n%s", len(want), diff)
	}
}
