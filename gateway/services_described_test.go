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

	infrastructurev1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/infrastructure/v1alpha1"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/codec"
	"github.com/hookgate/hookgate/internal/convert"
	"github.com/hookgate/hookgate/internal/extension"
	"github.com/hookgate/hookgate/internal/observe"
	"github.com/hookgate/hookgate/registry"
)

// newFrontOf returns a REST front of the group, with one extension that has a handler of ReconcileMachine. It answers
// with the handler and the external id that it was asked for.
func newFrontOf(t *testing.T, group Group) *httptest.Server {
	t.Helper()
	hooks, versions, err := Hooks(group)
	if err != nil {
		t.Fatal(err)
	}
	mandated := codec.New(hooks)
	r := filled(t, registrationOf("acme", registry.Handler{
		Name: "machine", Timeout: time.Second, FailurePolicy: hook.Fail,
		Hook: hook.GroupVersionHook{
			Group: hook.InfrastructureGroup, Version: hook.InfrastructureVersion, Hook: "ReconcileMachine",
		},
	}))
	observer := observe.NewObserver(observe.NewMetrics(prometheus.NewRegistry(), r, hooks, "test"), noop.NewTracerProvider(),
		slog.New(slog.DiscardHandler), convert.NewLosses(nil))
	d := NewDispatcher(Config{
		Catalog: hooks, Versions: versions, Codec: mandated, Registry: r, Namespaces: fixedNamespaces{}, Observer: observer,
		Transport: func(ctx context.Context, c extension.Call) (extension.Result, error) {
			subject := "itself"
			if about, ok := c.Request.(interface {
				GetSubject() *infrastructurev1alpha1.Subject
			}); ok {
				subject = about.GetSubject().GetExternalId()
			}
			if subject == "slow" {
				<-ctx.Done()
				return extension.Result{}, hook.Errorf(hook.Timeout, "the deadline passed")
			}
			return extension.Result{Response: newResponse(c.Hook, 1, c.Handler.Name+" of "+subject)}, nil
		},
	})
	front, err := NewREST(d, NewServices(d, group))
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

// TestDescribedServices compares the services of a group that were generated with those that are made from its
// descriptors: every answer is the same, header and all.
func TestDescribedServices(t *testing.T) {
	generated, described := Infrastructure(), Infrastructure()
	described.Services = nil
	one, other := newFrontOf(t, generated), newFrontOf(t, described)
	const prefix = "/infrastructure.hookgate.dev/v1alpha1/"
	for name, tt := range map[string]struct {
		path, body string
		header     http.Header
		want       string // in the answer
	}{
		"Handler":        {path: "reconcilemachine/machine.acme", body: `{"subject":{"externalId":"m-1"}}`, want: "machine.acme of m-1"},
		"Only":           {path: "reconcilemachine", body: `{"subject":{"externalId":"m-2"}}`, want: "machine.acme of m-2"},
		"Discovery":      {path: "discoverinfrastructure", body: `{}`, want: "machine--acme"},
		"DiscoveryOfOne": {path: "discoverinfrastructure/acme", body: `{}`, want: "acme of itself"},
		"EscapedHandler": {path: "reconcilemachine/machine%2eacme", body: `{"subject":{"externalId":"m-3"}}`, want: "machine.acme of m-3"},
		"EscapedSlash":   {path: "reconcilemachine/a%2Fb", body: `{}`, want: "UnknownHook"},
		"Unknown":        {path: "reconcilemachine/nowhere.acme", body: `{"subject":{"externalId":"m-4"}}`, want: "UnknownHandler"},
		"NoHandler":      {path: "deletemachine", body: `{"subject":{"externalId":"m-5"}}`, want: "UnknownHandler"},
		"Empty":          {path: "reconcilemachine", body: "", want: "body is empty"},
		"HalfJSON":       {path: "reconcilemachine", body: `{"subject":`, want: "400 Bad Request"},
		"WrongKind":      {path: "reconcilemachine", body: `{"kind":"Machine"}`, want: "want ReconcileMachineRequest"},
		"NoSubject":      {path: "reconcilemachine", body: `{}`, want: "subject.externalId: required"},
		"Timeout":        {path: "reconcilemachine?timeout=10ms", body: `{"subject":{"externalId":"slow"}}`, want: "504 Gateway Timeout"},
		"GRPCTimeout": {
			path: "reconcilemachine", body: `{"subject":{"externalId":"slow"}}`,
			header: http.Header{"Grpc-Timeout": {"10m"}}, want: "504 Gateway Timeout",
		},
		"WrongGRPCTimeout": {
			path: "reconcilemachine", body: `{"subject":{"externalId":"slow"}}`,
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
	group := Infrastructure()
	hooks, _, err := Hooks(group)
	if err != nil {
		t.Fatal(err)
	}
	d := NewDispatcher(Config{Catalog: hooks})
	want, got := registered{}, registered{}
	group.Services(d).RegisterGRPC(want)
	DescribedServices(d, group.Versions...).RegisterGRPC(got)
	if diff := cmp.Diff(want, got); diff != "" || len(want) != 7 {
		t.Errorf("%d methods, -generated +described:\n%s", len(want), diff)
	}
}
