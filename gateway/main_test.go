// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/hookgate/hookgate/catalog"
	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/hookversion"
	"github.com/hookgate/hookgate/internal/calls/extension"
	"github.com/hookgate/hookgate/internal/contract/codec"
	"github.com/hookgate/hookgate/internal/network/devcert"
	"github.com/hookgate/hookgate/internal/serving/servers"
	"github.com/hookgate/hookgate/internal/serving/shared"
	"github.com/hookgate/hookgate/registry"
)

const (
	success = hooksv1alpha1.ResponseStatus_RESPONSE_STATUS_SUCCESS
	failure = hooksv1alpha1.ResponseStatus_RESPONSE_STATUS_FAILURE
)

// fixedNamespaces are the labels of namespaces by name.
type fixedNamespaces map[string]map[string]string

func (n fixedNamespaces) NamespaceLabels(name string) (map[string]string, bool) {
	if l, ok := n[name]; ok {
		return l, true
	}
	return map[string]string{"kubernetes.io/metadata.name": name}, false
}

// answers are what handlers answer, by registered name.
type answers map[string]func(ctx context.Context, c extension.Call) (proto.Message, error)

func (a answers) Call(ctx context.Context, c extension.Call) (proto.Message, error) {
	f, ok := a[c.Handler.Name]
	if !ok {
		return nil, fmt.Errorf("handler %s was called, and should not have been", c.Handler.Name)
	}
	return f(ctx, c)
}

// caller is a transport that only answers.
type caller interface {
	Call(ctx context.Context, c extension.Call) (proto.Message, error)
}

type callerFunc func(ctx context.Context, c extension.Call) (proto.Message, error)

func (f callerFunc) Call(ctx context.Context, c extension.Call) (proto.Message, error) {
	return f(ctx, c)
}

// newDispatcher returns a Dispatcher that calls c for every handler, and observes and converts nothing.
func newDispatcher(r registry.Snapshots, n Namespaces, c caller) *Dispatcher {
	return NewDispatcher(Config{
		Catalog: allHooks, Versions: allVersions, Registry: r, Namespaces: n,
		Parts: shared.Parts{Codec: mandated, Transport: transportOf(c)},
	})
}

func transportOf(c caller) extension.Caller {
	return func(ctx context.Context, call extension.Call) (extension.Result, error) {
		response, err := c.Call(ctx, call)
		return extension.Result{Response: response}, err
	}
}

// dispatch is Dispatch of a request without a body.
func (d *Dispatcher) dispatch(ctx context.Context, h *catalog.Hook, handler string, req proto.Message) (proto.Message, error) {
	return d.Dispatch(ctx, Request{Hook: h, Handler: handler, Message: req})
}

// discover returns the answer of the gateway's own Discovery.
func (d *Dispatcher) discover(t testing.TB) *hooksv1alpha1.DiscoveryResponse {
	t.Helper()
	m, err := d.dispatch(t.Context(), hookOf(t, hook.Discovery), "", nil)
	if err != nil {
		t.Fatal(err)
	}
	return m.(*hooksv1alpha1.DiscoveryResponse)
}

func says(m proto.Message) func(context.Context, extension.Call) (proto.Message, error) {
	return func(context.Context, extension.Call) (proto.Message, error) { return proto.Clone(m), nil }
}

func fails(err error) func(context.Context, extension.Call) (proto.Message, error) {
	return func(context.Context, extension.Call) (proto.Message, error) { return nil, err }
}

// handlerOf is a handler with defaults.
func handlerOf(name, hookName string, policy hook.FailurePolicy) registry.Handler {
	return registry.Handler{
		Name: name, Hook: gvhOf(hookName), Timeout: 10 * time.Second, FailurePolicy: policy,
	}
}

// gvhOf returns the hook of that name in its group, or one of Cluster API's group that does not exist.
func gvhOf(name string) hook.GroupVersionHook {
	if h, ok := allHooks.ByName(name); ok {
		return h.GroupVersionHook
	}
	return hook.GroupVersionHook{Group: hook.Group, Version: hook.Version, Hook: name}
}

func registrationOf(name string, handlers ...registry.Handler) registry.Registration {
	return registry.Registration{Name: name, ClientConfig: registry.ClientConfig{URL: "https://" + name + ".example"}, Handlers: handlers}
}

// The hooks of both groups that are served, and their JSON codec, for all tests: they have no state.
var (
	allHooks, allVersions = mustHooks(Infrastructure(), Machines())
	mandated              = codec.New(allHooks)
)

func mustHooks(groups ...Group) (*catalog.Catalog, *hookversion.Converter) {
	hooks, versions, err := Hooks(groups...)
	if err != nil {
		panic(err)
	}
	return hooks, versions
}

func filled(t testing.TB, registrations ...registry.Registration) *registry.Registry {
	t.Helper()
	r := registry.New()
	for _, reg := range registrations {
		if err := r.Apply(reg); err != nil {
			t.Fatal(err)
		}
	}
	r.SetReady()
	return r
}

func hookOf(t testing.TB, name string) *catalog.Hook {
	t.Helper()
	h, ok := allHooks.ByName(name)
	if !ok {
		t.Fatalf("no hook %s", name)
	}
	return h
}

func clusterIn(namespace string) *hooksv1alpha1.RawExtension {
	return &hooksv1alpha1.RawExtension{Raw: fmt.Appendf(nil, `{"kind":"Cluster","metadata":{"name":"c","namespace":%q}}`, namespace)}
}

// serve serves the fronts that change configures until the test ends, and returns their addresses, and how to trust
// them if change does not set another certificate.
func serve(t *testing.T, change func(*servers.Config)) (rest, grpc string, trust *tls.Config) {
	t.Helper()
	pair, err := devcert.New(time.Now().Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	serving, err := pair.ServerTLS()
	if err != nil {
		t.Fatal(err)
	}
	ready, listening := make(chan struct{}), make(chan struct{})
	close(ready)
	config := servers.Config{
		HTTPAddress: "127.0.0.1:0", GRPCAddress: "127.0.0.1:0", DiagnosticsAddress: "127.0.0.1:0", TLS: serving,
		REST: http.NotFoundHandler(), Metrics: http.NotFoundHandler(), Ready: ready, Logger: slog.New(slog.DiscardHandler),
		Listening: func(http, overGRPC, _, _ net.Addr) {
			rest, grpc = http.String(), overGRPC.String()
			close(listening)
		},
	}
	change(&config)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- servers.NewServer(config).Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	<-listening
	return rest, grpc, pair.ClientTLS()
}
