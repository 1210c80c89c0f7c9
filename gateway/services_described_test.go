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
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/hookgate/hookgate/catalog"
	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/calls/extension"
	"github.com/hookgate/hookgate/internal/calls/outcome"
	"github.com/hookgate/hookgate/internal/contract/codec"
	"github.com/hookgate/hookgate/internal/contract/convert"
	"github.com/hookgate/hookgate/internal/seeing/observe"
	"github.com/hookgate/hookgate/registry"
)

// fromDescriptors returns Cluster API's services as they are made from their descriptors.
func fromDescriptors(d *Dispatcher) GroupServices {
	return DescribedServices(d, catalog.Source{Files: []protoreflect.FileDescriptor{
		hooksv1alpha1.File_hookgate_hooks_v1alpha1_discovery_proto,
		hooksv1alpha1.File_hookgate_hooks_v1alpha1_lifecycle_hooks_proto,
		hooksv1alpha1.File_hookgate_hooks_v1alpha1_topology_mutation_proto,
		hooksv1alpha1.File_hookgate_hooks_v1alpha1_in_place_update_proto,
		hooksv1alpha1.File_hookgate_hooks_v1alpha1_upgrade_plan_proto,
	}})
}

// generated returns Cluster API's services as protoc's plugins generate them.
func generated(d *Dispatcher) GroupServices { return NewServices(d) }

// newFrontOf returns a REST front of services, with one extension that has a handler of DiscoverVariables. It answers with
// the handler and the setting "id" that it was asked with.
func newFrontOf(t *testing.T, services func(*Dispatcher) GroupServices) *httptest.Server {
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
		Catalog: hooks, Versions: versions, Codec: mandated, Registry: r, Namespaces: fixedNamespaces{}, Observer: observer,
		Transport: func(ctx context.Context, c extension.Call) (extension.Result, error) {
			request, _ := c.Request.(*hooksv1alpha1.DiscoverVariablesRequest)
			id := request.GetSettings()["id"]
			if id == "slow" {
				<-ctx.Done()
				return extension.Result{}, hook.Errorf(hook.Timeout, "the deadline passed")
			}
			return extension.Result{Response: outcome.New(c.Hook, 1, c.Handler.Name+" of "+id)}, nil
		},
	})
	front, err := NewREST(d, services(d))
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

// TestDescribedServices compares services that were generated with those that are made from their descriptors: every
// answer is the same, header and all.
func TestDescribedServices(t *testing.T) {
	one, other := newFrontOf(t, generated), newFrontOf(t, fromDescriptors)
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
			want := wholeAnswer(t, one, prefix+tt.path, tt.body, tt.header)
			got := wholeAnswer(t, other, prefix+tt.path, tt.body, tt.header)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("-generated +described:\n%s", diff)
			}
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

// TestDescribedMethods compares the methods over gRPC, and the files that server reflection reads.
func TestDescribedMethods(t *testing.T) {
	d := NewDispatcher(Config{Catalog: catalog.New()})
	want, got := registered{}, registered{}
	generated(d).RegisterGRPC(want)
	fromDescriptors(d).RegisterGRPC(got)
	if diff := cmp.Diff(want, got); diff != "" || len(want) != 17 {
		t.Errorf("%d methods, -generated +described:\n%s", len(want), diff)
	}
}
