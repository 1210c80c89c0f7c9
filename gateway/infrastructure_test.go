// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"testing"
	"time"

	infrastructurev1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/infrastructure/v1alpha1"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/status"
	"github.com/hookgate/hookgate/internal/calls/extension"
	"github.com/hookgate/hookgate/internal/calls/outcome"
	"github.com/hookgate/hookgate/internal/contract/codec"
	"github.com/hookgate/hookgate/internal/seeing/observe"
	"github.com/hookgate/hookgate/internal/serving/shared"
	"github.com/hookgate/hookgate/registry"
)

// A discovery that names an extension, by a handler of its group or by its ExtensionConfig, is answered by the extension.
// One that no extension answers says that infrastructure is wanted.
func TestDiscoveryOfOneExtension(t *testing.T) {
	hooks, versions, err := Hooks(Infrastructure())
	if err != nil {
		t.Fatal(err)
	}
	machine := registry.Handler{
		Name: "machine", Timeout: time.Second, FailurePolicy: hook.Fail,
		Hook: hook.GroupVersionHook{
			Group: hook.InfrastructureGroup, Version: hook.InfrastructureVersion, Hook: "ReconcileMachine",
		},
	}
	other := registry.Handler{
		Name: "create", Timeout: time.Second, FailurePolicy: hook.Fail,
		Hook: hook.GroupVersionHook{Group: hook.Group, Version: hook.Version, Hook: "BeforeClusterCreate"},
	}
	var called, wanted string
	d := NewDispatcher(Config{
		Catalog: hooks, Versions: versions, Namespaces: fixedNamespaces{},
		Registry: filled(t, registrationOf("acme", machine, other), registrationOf("plain", other)),
		Want:     func(group string) { wanted = group },
		Parts: shared.Parts{Codec: codec.New(hooks), Transport: func(_ context.Context, c extension.Call) (extension.Result, error) {
			called = c.Hook.Hook + " of " + c.Handler.Name
			return extension.Result{Response: outcome.Success(c.Hook)}, nil
		}},
	})
	discovery, _ := hooks.ByName("DiscoverInfrastructure")
	for handler, want := range map[string]string{
		"machine.acme":  "DiscoverInfrastructure of acme",
		"machine--acme": "DiscoverInfrastructure of acme",
		"acme":          "DiscoverInfrastructure of acme",
		"ACME":          "DiscoverInfrastructure of acme",
		"create.acme":   "UnknownHandler: handler \"create.acme\" serves the hook BeforeClusterCreate, not DiscoverInfrastructure",
		"plain": "UnknownHandler: no handler of the group infrastructure.hookgate.dev is named \"plain\" or " +
			"belongs to ExtensionConfig \"plain\"",
		"nowhere": "UnknownHandler: no handler of the group infrastructure.hookgate.dev is named \"nowhere\" or " +
			"belongs to ExtensionConfig \"nowhere\"",
	} {
		called, wanted = "", ""
		_, err := d.Dispatch(t.Context(), Request{
			Hook: discovery, Handler: handler,
			Message: &infrastructurev1alpha1.DiscoverInfrastructureRequest{Handler: handler},
		})
		got := called
		if err != nil {
			got = hook.KindOf(err).String() + ": " + err.Error()
		}
		if got != want {
			t.Errorf("handler %q: %s, want %s", handler, got, want)
		}
		if isWanted := wanted == hook.InfrastructureGroup; isWanted != (err != nil) {
			t.Errorf("handler %q: wanted: %q", handler, wanted)
		}
	}
}

// What becomes of a discovery says nothing about the handler that led to the extension.
func TestDiscoveryIsNoCallToAHandler(t *testing.T) {
	r := filled(t, registrationOf("lab", registry.Handler{
		Name: "deletecluster", Timeout: time.Second, FailurePolicy: hook.Fail,
		Hook: hook.GroupVersionHook{Group: hook.InfrastructureGroup, Version: hook.InfrastructureVersion, Hook: "DeleteCluster"},
	}))
	o := newObserved(r)
	reporter := observe.Reporter{Catalog: allHooks, Registry: r, Observer: o.Observer, Namespaces: fixedNamespaces{}}
	d := NewDispatcher(Config{
		Catalog: allHooks, Versions: allVersions, Registry: r, Namespaces: fixedNamespaces{},
		Parts: shared.Parts{Codec: mandated, Observer: o.Observer, Transport: func(context.Context, extension.Call) (extension.Result, error) {
			return extension.Result{Connected: true}, hook.Errorf(hook.BadResponse, "answered 404")
		}},
	})
	for range 2 {
		_, err := d.Dispatch(t.Context(), Request{
			Hook: hookOf(t, "DiscoverInfrastructure"), Handler: "lab",
			Message: &infrastructurev1alpha1.DiscoverInfrastructureRequest{Handler: "lab"},
		})
		if want := `handler "lab": answered 404`; err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	g, _ := reporter.Extension("lab")
	if h := g.Extensions[0].Handlers[0]; h.State != status.Unknown || h.Calls.Total != 0 || len(g.Extensions[0].Failures) > 0 {
		t.Errorf("the handler that nothing has called is %+v", h)
	}
}
