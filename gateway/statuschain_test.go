// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"google.golang.org/protobuf/proto"

	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/status"
	"github.com/hookgate/hookgate/internal/calls/extension"
	"github.com/hookgate/hookgate/internal/calls/policy"
	"github.com/hookgate/hookgate/internal/contract/convert"
	"github.com/hookgate/hookgate/internal/kinds"
	"github.com/hookgate/hookgate/internal/kinds/handlerchain"
	"github.com/hookgate/hookgate/internal/seeing/observe"
	"github.com/hookgate/hookgate/internal/serving/shared"
	"github.com/hookgate/hookgate/registry"
)

// newReportedChains returns a gateway with the chains updates, of CanUpdateMachine, and patches and gates, whose steps
// are handlers of the extension e, and its Reporter.
func newReportedChains(t *testing.T, spans *tracetest.SpanRecorder) (*Dispatcher, *observe.Reporter) {
	t.Helper()
	r := filled(t, registrationOf("e", handlerOf("a", "CanUpdateMachine", hook.Fail), handlerOf("b", "CanUpdateMachine", hook.Fail),
		handlerOf("p", "GeneratePatches", hook.Fail), handlerOf("q", "GeneratePatches", hook.Fail), handlerOf("g", "BeforeClusterCreate", hook.Fail)))
	chains := handlerchain.NewSet(r, func() {}, slog.New(slog.DiscardHandler))
	items := []kinds.Item{{Name: "typo", Mistake: "spec.hook: Required value"}}
	for _, c := range []registry.Chain{
		{
			Name: "updates", Hook: hookOf(t, "CanUpdateMachine").GroupHook(), OneHandler: true, Strict: true, Block: true,
			Steps: []registry.ChainStep{{Handler: "a.e", Allow: []string{"/machine/spec"}}},
		},
		{
			Name: "patches", Hook: hookOf(t, "GeneratePatches").GroupHook(),
			Steps: []registry.ChainStep{{Handler: "q.e", Settings: map[string]string{"b": "1", "a": "2"}}, {Handler: "p.e"}, {Handler: "x.none", Optional: true}},
		},
		{Name: "gates", Hook: hookOf(t, "BeforeClusterCreate").GroupHook(), Steps: []registry.ChainStep{{Handler: "g.e", OnHold: registry.StopOnHold}, {Handler: "y.none"}}},
	} {
		items = append(items, kinds.Item{Name: c.Name, Compiled: c})
	}
	chains.Use(items)
	chains.Report(chains.Verdicts(), nil)

	o := newObserved(r)
	o.Observer = observe.NewObserver(o.metrics, sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans)), slog.New(slog.DiscardHandler), convert.NewLosses(nil))
	answers := answers{}
	for _, name := range []string{"p.e", "q.e"} {
		answers[name] = func(context.Context, extension.Call) (proto.Message, error) {
			return &hooksv1alpha1.GeneratePatchesResponse{Status: success}, nil
		}
	}
	d := newObservedDispatcher(o, r, answers)
	return d, &observe.Reporter{
		Catalog: allHooks, Registry: r, Observer: o.Observer, Namespaces: fixedNamespaces{}, Objects: chains.List,
	}
}

// The status has the chains with their steps, and at each handler the chains that it is a step of, and the name under
// which it is offered.
func TestStatusOfChains(t *testing.T) {
	d, r := newReportedChains(t, tracetest.NewSpanRecorder())
	series := prometheus.NewRegistry()
	observe.NewMetrics(series, r.Registry, allHooks, "test").Report(r)
	wantCount(t, series, "hookgate_handler_chain_ready", 1, "GeneratePatches", "patches")
	if got := testutil.CollectAndCount(series, "hookgate_handler_chain_ready"); got != 4 {
		t.Errorf("%d series of chains, want 4", got)
	}
	if _, err := d.dispatch(t.Context(), hookOf(t, "GeneratePatches"), "patches", &hooksv1alpha1.GeneratePatchesRequest{}); err != nil {
		t.Fatal(err)
	}
	g := r.Gateway()
	for i := range g.Chains {
		if c := &g.Chains[i]; c.Name == "patches" && c.Calls.Total != 1 {
			t.Errorf("the chain was called once, counted %d", c.Calls.Total)
		}
		g.Chains[i].Calls = status.Calls{}
	}
	want := []status.Chain{
		{Name: "gates", Hook: "BeforeClusterCreate", OfferedAs: "beforeclustercreate", Reason: "StepMissing", Message: `Calls fail: step 2: no handler "y.none" is registered`, Steps: []status.ChainStep{{Handler: "g.e", Registered: true, OnHold: "Stop"}, {Handler: "y.none"}}},
		{Name: "patches", Hook: "GeneratePatches", OfferedAs: "patches", Ready: true, Reason: "Ready", Message: "Calls go to 2 handlers, and skip 1 that are not registered", Steps: []status.ChainStep{{Handler: "q.e", Registered: true}, {Handler: "p.e", Registered: true}, {Handler: "x.none", Optional: true}}},
		{Name: "typo", Reason: "Invalid", Message: "spec.hook: Required value"},
		{Name: "updates", Hook: "CanUpdateMachine", OfferedAs: "updates", Ready: true, Reason: "SeveralOffered", Message: "Cluster API accepts only one handler of CanUpdateMachine, but 2 are offered: b--e, updates; put them into one HandlerChain", OnPartialCoverage: "Block", Steps: []status.ChainStep{{Handler: "a.e", Registered: true}}},
	}
	if diff := cmp.Diff(want, g.Chains); diff != "" {
		t.Errorf("chains (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]status.Notice{{Name: "CanUpdateMachine", Text: want[3].Message}}, g.Notices); diff != "" {
		t.Errorf("notices (-want +got):\n%s", diff)
	}
	one, ok := r.Extension("e")
	if !ok || len(one.Chains) != 3 {
		t.Errorf("the extension alone has the chains %+v", one.Chains)
	}
	type of struct {
		OfferedAs string
		Chains    []string
	}
	got := map[string]of{}
	for _, h := range g.Extensions[0].Handlers {
		got[h.Name] = of{h.OfferedAs, h.Chains}
	}
	if diff := cmp.Diff(map[string]of{
		"a.e": {"updates", []string{"updates"}}, "b.e": {"b--e", nil}, "g.e": {"beforeclustercreate", []string{"gates"}},
		"p.e": {"p--e", []string{"patches"}}, "q.e": {"q--e", []string{"patches"}},
	}, got); diff != "" {
		t.Errorf("handlers (-want +got):\n%s", diff)
	}
}

// The handlers of a Cluster are those that an explanation of a call about it has, with the same turns.
func TestRoutesOfACluster(t *testing.T) {
	_, r := newReportedChains(t, tracetest.NewSpanRecorder())
	reg, _ := r.Registry.(*registry.Registry)
	for _, err := range reg.ApplyAll([]registry.Registration{
		registrationOf("none", handlerOf("y", "BeforeClusterCreate", hook.Fail)),
		registrationOf("last", handlerOf("x", "BeforeClusterCreate", hook.Fail)),
		registrationOf("first", handlerOf("x", "BeforeClusterCreate", hook.Fail), handlerOf("y", "BeforeClusterCreate", hook.Fail)),
		registrationOf("other", handlerOf("v", "ValidateTopology", hook.Fail), handlerOf("w", "ValidateTopology", hook.Fail)),
	}) {
		if err != nil {
			t.Fatal(err)
		}
	}
	order := int32(7)
	reg.SetPolicies("first", forHandler("y", policy.Policy{Order: &order}))
	c, known := r.Cluster("n", "c")
	if known || c.LastCall != nil {
		t.Errorf("nobody has called about it, and it is known: %+v", c)
	}
	var routes []string
	for _, h := range c.Hooks {
		var text strings.Builder
		text.WriteString(h.Name + " " + h.Called + ":")
		for _, of := range h.Handlers {
			fmt.Fprintf(&text, " %d=%s", of.Turn, of.Name)
			for _, s := range of.Steps {
				fmt.Fprintf(&text, " (%d=%s)", s.Turn, s.Name)
			}
		}
		routes = append(routes, text.String())
	}
	want := []string{
		"BeforeClusterCreate All: 1=y.first 2=gates (1=g.e) (2=y.none) 2=x.first 2=x.last",
		"CanUpdateMachine One: 0=b.e 0=updates (1=a.e)",
		"GeneratePatches One: 0=p.e 0=patches (1=q.e) (2=p.e) 0=q.e",
		"ValidateTopology One: 0=v.other 0=w.other",
	}
	if diff := cmp.Diff(want, routes); diff != "" {
		t.Errorf("routes (-want +got):\n%s", diff)
	}
	d := NewDispatcher(Config{Catalog: allHooks, Versions: allVersions, Registry: reg, Namespaces: fixedNamespaces{}, Parts: shared.Parts{Codec: mandated}})
	explained, err := d.Explain(t.Context(), Request{Hook: hookOf(t, "BeforeClusterCreate"), Message: &hooksv1alpha1.BeforeClusterCreateRequest{
		Cluster: &hooksv1alpha1.RawExtension{Raw: []byte(`{"metadata":{"namespace":"n","name":"c"}}`)},
	}})
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range explained.Handlers {
		for _, of := range c.Hooks[0].Handlers {
			if of.Name == x.Name && of.Turn != x.Turn {
				t.Errorf("%s has the turn %d, and an explanation says %d", of.Name, of.Turn, x.Turn)
			}
		}
	}
}

// A chain that is asked for has all that is known of its steps.
func TestStatusOfOneChain(t *testing.T) {
	_, r := newReportedChains(t, tracetest.NewSpanRecorder())
	for name, want := range map[string][]status.ChainStep{
		"gates":   {{Handler: "g.e", Registered: true, OnHold: "Stop"}, {Handler: "y.none", Problem: `no handler "y.none" is registered`}},
		"patches": {{Handler: "q.e", Registered: true, Settings: []string{"a", "b"}}, {Handler: "p.e", Registered: true}, {Handler: "x.none", Optional: true}},
		"updates": {{Handler: "a.e", Registered: true, Allow: []string{"/machine/spec"}}},
		"typo":    nil,
	} {
		g, ok := r.Object("chain", name)
		if !ok || len(g.Chains) != 1 || len(g.Extensions) != 0 {
			t.Fatalf("%s: got %+v", name, g)
		}
		steps := g.Chains[0].Steps
		for i := range steps {
			if details := steps[i].Details; steps[i].Registered && (details == nil || details.Name != steps[i].Handler || details.Extension != "e") {
				t.Errorf("%s: the details of %s are %+v", name, steps[i].Handler, details)
			}
			steps[i].Details = nil
		}
		if diff := cmp.Diff(want, steps); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	for target, want := range map[string]string{
		"/status?chain=patch":       "there is no HandlerChain \"patch\"\n",
		"/status?chain=patchess":    "there is no HandlerChain \"patchess\": did you mean \"patches\"?\n",
		"/status?extension=patches": "\"patches\" is a HandlerChain: use \"hookgate describe chain patches\"\n",
	} {
		w := httptest.NewRecorder()
		r.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, target, http.NoBody))
		if w.Code != http.StatusNotFound || w.Body.String() != want {
			t.Errorf("%s: %d %s, want %s", target, w.Code, w.Body, want)
		}
	}
}

// Each step's span is a child of the chain's.
func TestSpansOfAChain(t *testing.T) {
	spans := tracetest.NewSpanRecorder()
	d, _ := newReportedChains(t, spans)
	if _, err := d.dispatch(t.Context(), hookOf(t, "GeneratePatches"), "patches", &hooksv1alpha1.GeneratePatchesRequest{}); err != nil {
		t.Fatal(err)
	}
	parents, names := map[string]string{}, map[string]string{}
	for _, s := range spans.Ended() {
		names[s.SpanContext().SpanID().String()] = s.Name()
	}
	for _, s := range spans.Ended() {
		parents[s.Name()] = names[s.Parent().SpanID().String()]
	}
	if diff := cmp.Diff(map[string]string{"chain patches": "", "handler q.e": "chain patches", "handler p.e": "chain patches"}, parents); diff != "" {
		t.Errorf("parents of spans (-want +got):\n%s", diff)
	}
}
