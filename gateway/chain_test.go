// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace/noop"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/hookgate/hookgate/catalog"
	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/hookversion"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/calls/extension"
	"github.com/hookgate/hookgate/internal/calls/extensionstate"
	"github.com/hookgate/hookgate/internal/calls/outcome"
	"github.com/hookgate/hookgate/internal/contract/convert"
	"github.com/hookgate/hookgate/internal/network/via"
	"github.com/hookgate/hookgate/internal/seeing/observe"
	"github.com/hookgate/hookgate/internal/serving/shared"
	"github.com/hookgate/hookgate/registry"
	"github.com/hookgate/hookgate/test/hookversions"
	hookversionsv1 "github.com/hookgate/hookgate/test/hookversions/gen/hookversions/v1"
	hookversionsv1alpha1 "github.com/hookgate/hookgate/test/hookversions/gen/hookversions/v1alpha1"
)

// TestChainIsDescribed compares the links of chain.go with the table of ARCHITECTURE.md, in their order.
func TestChainIsDescribed(t *testing.T) {
	listed := func(file, begin, end, link string) (links []string) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		_, part, _ := strings.Cut(string(text), begin)
		part, _, _ = strings.Cut(part, end)
		for _, m := range regexp.MustCompile(link).FindAllStringSubmatch(part, -1) {
			links = append(links, strings.ToLower(m[1]))
		}
		return links
	}
	code := listed("chain.go", "return link(c.Transport,\n", "\n\t)\n", `(?m)^\t\t([\w.]+)`)
	page := listed("../ARCHITECTURE.md", "| link | purpose |\n", "| transport |", "(?m)^ *\\| `([\\w.]+)` \\|")
	if diff := cmp.Diff(code, page); diff != "" || len(code) < 10 {
		t.Errorf("chain.go has %d links; ARCHITECTURE.md has others:\n%s", len(code), diff)
	}
}

func TestLinksAreCalledInTheOrderInWhichTheyAreListed(t *testing.T) {
	var order []string
	named := func(name string) extension.Link {
		return func(next extension.Caller) extension.Caller {
			return func(ctx context.Context, c extension.Call) (extension.Result, error) {
				order = append(order, name)
				return next(ctx, c)
			}
		}
	}
	transport := func(context.Context, extension.Call) (extension.Result, error) {
		order = append(order, "transport")
		return extension.Result{Sent: 7}, nil
	}
	result, err := link(transport, named("outer"), named("middle"), named("inner"))(t.Context(), extension.Call{})
	if want := []string{"outer", "middle", "inner", "transport"}; err != nil || result.Sent != 7 || !slices.Equal(order, want) {
		t.Errorf("got %v (%+v, %v), want %v", order, result, err, want)
	}
}

// drains is the catalog of the test group of hooks, which have several versions.
var drains = hookversions.New()

// wholeChain is the chain with both conversions.
func wholeChain(o *observe.Observer, transport extension.Caller) extension.Caller {
	c := Config{Versions: hookversions.NewConverter(drains), Parts: shared.Parts{Observer: o, Objects: convert.NewObjects(convert.NewReferences()), Transport: transport}}
	return chain(c, extensionstate.New(registry.New()))
}

// drainCall is a call of version v1 to a handler of version v1alpha1 that understands v1beta1 objects. Each conversion
// loses something on the way there, and the hook's on the way back.
func drainCall(t *testing.T, policy hook.FailurePolicy) extension.Call {
	t.Helper()
	h, ok := drains.Lookup(hook.GroupVersionHook{Group: hookversions.Group, Version: "v1", Hook: hookversions.BeforeNodeDrain})
	if !ok {
		t.Fatal("no such hook")
	}
	handler := registry.Handler{
		Name: "drain", Hook: hook.GroupVersionHook{Group: hookversions.Group, Version: "v1alpha1", Hook: hookversions.BeforeNodeDrain},
		Timeout: limits.Timeout, FailurePolicy: policy, ClusterAPIVersion: convert.V1Beta1,
	}
	reg := registrationOf("acme", handler)
	return extension.Call{
		Hook: h, Handler: &registry.Entry{Name: "drain.acme", Handler: handler, Registration: &reg}, Body: []byte("{}"),
		Via:     via.Way("").Next("this", "drain.acme"),
		Request: &hookversionsv1.BeforeNodeDrainRequest{NodeName: "worker-1", Reason: "power", Cluster: &hooksv1alpha1.RawExtension{Raw: []byte(newCluster)}},
	}
}

// What is lost, by both conversions and in both directions, is reported whatever comes of the call, and nothing is
// written into the call or its request.
func TestLossesOfBothConversionsAreReported(t *testing.T) {
	there := []string{"reason", "cluster.spec.topology.classRef.shard"}
	unreachable := hook.Errorf(hook.Unreachable, "call extension: connection refused")
	tests := map[string]struct {
		reason  string
		policy  hook.FailurePolicy
		answer  proto.Message
		err     error
		lost    []string
		outcome []string
	}{
		"Answered": {"there and back", hook.Fail, &hookversionsv1alpha1.BeforeNodeDrainResponse{Status: success, Urgent: new(false)}, nil, append(there, "urgent"), []string{"success", ""}},
		"Refused":  {"a Failure is an answer", hook.Fail, &hookversionsv1alpha1.BeforeNodeDrainResponse{Status: failure, Urgent: new(false)}, nil, append(there, "urgent"), []string{"failure", ""}},
		"Failed":   {"only there", hook.Fail, nil, unreachable, there, []string{"error", "Unreachable"}},
		"Ignored":  {"also for an error that is ignored", hook.Ignore, nil, unreachable, there, []string{"ignored", "Unreachable"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c := drainCall(t, tc.policy)
			o := newObserved(filled(t, *c.Handler.Registration))
			before := proto.Clone(c.Request)
			transport := func(_ context.Context, got extension.Call) (extension.Result, error) {
				in, ok := got.Request.(*hookversionsv1alpha1.BeforeNodeDrainRequest)
				if !ok || in.GetNode() != "worker-1" || !strings.Contains(string(in.GetCluster().GetRaw()), "cluster.x-k8s.io/v1beta1") {
					t.Errorf("the handler got %v", got.Request)
				}
				if got.Hook.Version != "v1alpha1" || got.Handler != c.Handler || got.Body != nil || got.Via != c.Via {
					t.Errorf("the handler got hook %s, handler %s, the body %q and the way %s", got.Hook, got.Handler.Name, got.Body, got.Via)
				}
				return extension.Result{Response: tc.answer, Sent: 11, Received: 13}, tc.err
			}
			result, err := wholeChain(o.Observer, transport)(t.Context(), c)
			if (err != nil) != (tc.err != nil && tc.policy == hook.Fail) {
				t.Errorf("%s: got error %v", tc.reason, err)
			}
			if diff := cmp.Diff(tc.lost, result.Lost); diff != "" {
				t.Errorf("%s: lost -want +got:\n%s", tc.reason, diff)
			}
			if result.Sent != 11 || result.Received != 13 {
				t.Errorf("%s: got the sizes %d and %d", tc.reason, result.Sent, result.Received)
			}
			if diff := cmp.Diff(before, c.Request, protocmp.Transform()); diff != "" {
				t.Errorf("the request was changed: -want +got:\n%s", diff)
			}
			const h, handler = hookversions.BeforeNodeDrain, "drain.acme"
			wantCount(t, o.series, "hookgate_conversion_lost_members_total", float64(len(tc.lost)), h, handler)
			wantCount(t, o.series, "hookgate_handler_calls_total", 1, h, handler, tc.outcome[0], tc.outcome[1])
			wantCount(t, o.series, "hookgate_handler_sent_bytes_total", 11, h, handler)
			wantCount(t, o.series, "hookgate_handler_received_bytes_total", 13, h, handler)
			if got := strings.Count(o.log.String(), "conversion loses a member"); got != len(tc.lost) {
				t.Errorf("%s: the log has %d losses, want %d:\n%s", tc.reason, got, len(tc.lost), o.log)
			}
		})
	}
}

// A patch that an answer makes to a converted object loses on the way back, too.
func TestLossesOfPatchesAreReported(t *testing.T) {
	c := callTo(t, "CanUpdateMachine", func(h *registry.Handler) { h.ClusterAPIVersion = convert.V1Beta1 })
	c.Request = &hooksv1alpha1.CanUpdateMachineRequest{Current: &hooksv1alpha1.CanUpdateMachineRequestObjects{Machine: &hooksv1alpha1.RawExtension{Raw: []byte(
		`{"apiVersion":"cluster.x-k8s.io/v1beta2","kind":"Machine","metadata":{"name":"m","namespace":"n"},"spec":{"clusterName":"c",` +
			`"bootstrap":{"configRef":{"apiGroup":"bootstrap.cluster.x-k8s.io","kind":"KubeadmConfig","name":"b"}}}}`)}}}
	patch := &hooksv1alpha1.Patch{
		PatchType: hooksv1alpha1.PatchType_PATCH_TYPE_JSON_MERGE_PATCH,
		Patch:     []byte(`{"spec":{"version":"v1.34.1","bootstrap":{"configRef":{"fieldPath":"x"}}}}`),
	}
	transport := func(context.Context, extension.Call) (extension.Result, error) {
		return extension.Result{Response: &hooksv1alpha1.CanUpdateMachineResponse{Status: success, MachinePatch: patch}, Sent: 1}, nil
	}
	result, err := wholeChain(nil, transport)(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"machine.spec.bootstrap.configRef.fieldPath"}; !slices.Equal(result.Lost, want) || result.Sent != 1 {
		t.Errorf("got %+v, want %v lost", result, want)
	}
	// A patch that does not fit the object is the extension's error, and what is known about the call stays.
	patch.Patch = []byte(`{"spec":{"version":7}}`)
	result, err = wholeChain(nil, transport)(t.Context(), c)
	if hook.KindOf(err) != hook.BadResponse || result.Response != nil || result.Sent != 1 {
		t.Errorf("got %+v, %v; want a BadResponse", result, err)
	}
}

// A conversion that fails is an error whatever the failure policy says, and the handler is not called.
func TestConversionsThatFail(t *testing.T) {
	called := func(context.Context, extension.Call) (extension.Result, error) {
		t.Error("the handler was called")
		return extension.Result{}, nil
	}
	newer := drainCall(t, hook.Ignore)
	handler := *newer.Handler
	handler.Handler.Hook.Version = "v2"
	newer.Handler = &handler
	object := drainCall(t, hook.Ignore)
	object.Request = &hookversionsv1.BeforeNodeDrainRequest{Cluster: &hooksv1alpha1.RawExtension{
		Raw: []byte(`{"apiVersion":"cluster.x-k8s.io/v1alpha4","kind":"Cluster","metadata":{"name":"c"}}`),
	}}
	for name, c := range map[string]extension.Call{"HookVersion": newer, "Object": object} {
		result, err := wholeChain(nil, called)(t.Context(), c)
		if hook.KindOf(err) != hook.Conversion || result.Response != nil || result.Ignored != nil {
			t.Errorf("%s: got %+v, %v; want a Conversion error", name, result, err)
		}
	}
}

// A call that needs no conversion passes every link as it is.
func TestCallsThatNeedNoConversionPassUnchanged(t *testing.T) {
	c := callTo(t, "BeforeClusterCreate", func(h *registry.Handler) { h.ClusterAPIVersion = convert.V1Beta2 })
	c.Request = &hooksv1alpha1.BeforeClusterCreateRequest{Cluster: &hooksv1alpha1.RawExtension{Raw: []byte(newCluster)}}
	transport := func(_ context.Context, got extension.Call) (extension.Result, error) {
		if got.Request != c.Request || got.Hook != c.Hook || got.Handler != c.Handler || string(got.Body) != string(c.Body) {
			t.Errorf("got %+v, want %+v", got, c)
		}
		return extension.Result{Response: outcome.Success(got.Hook)}, nil
	}
	if result, err := wholeChain(nil, transport)(t.Context(), c); err != nil || len(result.Lost) > 0 {
		t.Errorf("got %+v, %v", result, err)
	}
}

// A policy that cannot be evaluated fails its call before anything is converted or sent.
func TestPolicyErrorFailsTheCall(t *testing.T) {
	for _, policy := range []hook.FailurePolicy{hook.Fail, hook.Ignore} {
		o := newObserved(registry.New())
		c := drainCall(t, policy)
		c.PolicyError = hook.Errorf(hook.Policy, "no")
		result, err := wholeChain(o.Observer, func(context.Context, extension.Call) (extension.Result, error) {
			t.Error("the handler was called")
			return extension.Result{}, nil
		})(t.Context(), c)
		if policy == hook.Fail && !errors.Is(err, c.PolicyError) || policy == hook.Ignore && (err != nil || !errors.Is(result.Ignored, c.PolicyError)) {
			t.Errorf("%s: got %+v, %v", policy, result, err)
		}
		if len(result.Lost) > 0 || result.Sent != 0 {
			t.Errorf("%s: got %+v, want nothing done", policy, result)
		}
	}
}

// A panic in any link ends its own call only, and the call does not stay counted as in flight.
func TestPanicsInLinks(t *testing.T) {
	answer := func(_ context.Context, c extension.Call) (extension.Result, error) {
		return extension.Result{Response: outcome.Success(c.Hook), Lost: []string{"a"}}, nil
	}
	tests := map[string]struct {
		objects   *convert.Objects
		transport extension.Caller
		observer  func(*observed)
		handler   func(*registry.Handler)
	}{
		"Observe": {transport: answer, observer: func(o *observed) {
			o.Observer = observe.NewObserver(o.metrics, noop.NewTracerProvider(), slog.New(slog.DiscardHandler), nil)
		}},
		"Objects":   {transport: answer, objects: convert.NewObjects(nil), handler: func(h *registry.Handler) { h.ClusterAPIVersion = convert.V1Beta1 }},
		"Transport": {transport: func(context.Context, extension.Call) (extension.Result, error) { panic("out of cheese") }},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			o := newObserved(registry.New())
			if tc.observer != nil {
				tc.observer(&o)
			}
			bad := handlerOf("v", "BeforeClusterCreate", hook.Ignore)
			if tc.handler != nil {
				tc.handler(&bad)
			}
			d := NewDispatcher(Config{
				Versions: hookversion.New(catalog.New()), Registry: filled(t, registrationOf("a", bad)), Namespaces: fixedNamespaces{},
				Parts: shared.Parts{Codec: mandated, Transport: tc.transport, Objects: tc.objects, Observer: o.Observer},
			})
			req := &hooksv1alpha1.BeforeClusterCreateRequest{Cluster: &hooksv1alpha1.RawExtension{Raw: []byte(newCluster)}}
			for _, handler := range []string{"", "v.a"} {
				_, err := d.dispatch(t.Context(), hookOf(t, "BeforeClusterCreate"), handler, req)
				if want := `handler "v.a": internal error: see the gateway's log`; err == nil || err.Error() != want || hook.KindOf(err) != hook.Internal {
					t.Errorf("got %v, want %s", err, want)
				}
				if cause := errors.Unwrap(err); cause == nil || !strings.Contains(cause.Error(), "panic: ") {
					t.Errorf("the cause is %v, want the panic, for the log", cause)
				}
			}
			if got := valueOf(t, o.series, "hookgate_handler_calls_in_flight", "BeforeClusterCreate", "v.a"); got != 0 {
				t.Errorf("%v calls are in flight after a panic", got)
			}
		})
	}
}

// A handler that implements a deprecated version is warned about, and counted, if it is called.
func TestCallsOfDeprecatedHandlersAreCounted(t *testing.T) {
	for _, policyErr := range []error{nil, hook.Errorf(hook.Policy, "no")} {
		c := drainCall(t, hook.Fail)
		o := newObserved(filled(t, *c.Handler.Registration))
		c.PolicyError = policyErr
		ctx, in := begin(t.Context(), o.Observer, "REST", "", c.Hook, propagation.MapCarrier{}, "")
		_, err := wholeChain(o.Observer, func(context.Context, extension.Call) (extension.Result, error) {
			return extension.Result{Response: &hookversionsv1alpha1.BeforeNodeDrainResponse{Status: success}}, nil
		})(ctx, c)
		if !errors.Is(err, policyErr) {
			t.Fatal(err)
		}
		want := 1
		if policyErr != nil {
			want = 0
		}
		if got := in.warnings.Values(); len(got) != want {
			t.Errorf("with the policy error %v, the caller gets the warnings %q", policyErr, got)
		}
		wantCount(t, o.series, "hookgate_deprecated_calls_total", float64(want), hookversions.Group, "v1alpha1", hookversions.BeforeNodeDrain, "drain.acme", "handler")
	}
}
