// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/codec"
	"github.com/hookgate/hookgate/extension"
	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/hookversion"
	"github.com/hookgate/hookgate/registry"
)

const (
	success = hooksv1alpha1.ResponseStatus_RESPONSE_STATUS_SUCCESS
	failure = hooksv1alpha1.ResponseStatus_RESPONSE_STATUS_FAILURE
)

// fixedNamespaces are the labels of namespaces by name.
type fixedNamespaces map[string]map[string]string

func (n fixedNamespaces) NamespaceLabels(name string) map[string]string {
	if l, ok := n[name]; ok {
		return l
	}
	return map[string]string{"kubernetes.io/metadata.name": name}
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
func newDispatcher(r Snapshots, n Namespaces, c caller) *Dispatcher {
	cat := catalog.New()
	return NewDispatcher(Config{
		Catalog: cat, Versions: hookversion.New(cat), Codec: mandated, Registry: r, Namespaces: n, Transport: transportOf(c),
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
	m, err := d.Discover(hookOf(t, hook.Discovery))
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
		Name: name, Hook: hook.GroupVersionHook{Group: hook.Group, Version: hook.Version, Hook: hookName},
		Timeout: 10 * time.Second, FailurePolicy: policy,
	}
}

func registrationOf(name string, handlers ...registry.Handler) registry.Registration {
	return registry.Registration{Name: name, ClientConfig: registry.ClientConfig{URL: "https://" + name + ".example"}, Handlers: handlers}
}

// mandated is the JSON codec of all tests: it has no state.
var mandated = codec.New(catalog.New())

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
	h, ok := catalog.New().ByName(name)
	if !ok {
		t.Fatalf("no hook %s", name)
	}
	return h
}

func clusterIn(namespace string) *hooksv1alpha1.RawExtension {
	return &hooksv1alpha1.RawExtension{Raw: fmt.Appendf(nil, `{"kind":"Cluster","metadata":{"name":"c","namespace":%q}}`, namespace)}
}

func TestDispatchOfLifecycleHooks(t *testing.T) {
	refused := errors.New("dial tcp 10.0.0.7:443: connect: connection refused")
	unreachable := hook.Errorf(hook.Unreachable, "call extension: connection refused").WithCause(refused)
	ok := func(message string, retry int32) func(context.Context, extension.Call) (proto.Message, error) {
		return says(&hooksv1alpha1.BeforeClusterCreateResponse{Status: success, Message: message, RetryAfterSeconds: retry})
	}
	no := func(message string) func(context.Context, extension.Call) (proto.Message, error) {
		return says(&hooksv1alpha1.BeforeClusterCreateResponse{Status: failure, Message: message, RetryAfterSeconds: 3})
	}
	const hookName = "BeforeClusterCreate"
	two := []registry.Registration{
		registrationOf("b", handlerOf("v", hookName, hook.Fail)),
		registrationOf("a", handlerOf("v", hookName, hook.Fail)),
	}
	lenient := []registry.Registration{registrationOf("a", handlerOf("v", hookName, hook.Ignore)), registrationOf("b", handlerOf("v", hookName, hook.Fail))}

	tests := map[string]struct {
		reason        string
		registrations []registry.Registration
		answers       answers
		handler       string
		want          *hooksv1alpha1.BeforeClusterCreateResponse
		wantKind      hook.Kind
		wantError     string
	}{
		"Nobody": {
			reason: "without handlers there is nothing to wait for",
			want:   &hooksv1alpha1.BeforeClusterCreateResponse{Status: success},
		},
		"All": {
			reason:        "messages are joined in the order of names, and the least hold that is not zero wins",
			registrations: two,
			answers:       answers{"v.b": ok("from b", 7), "v.a": ok("from a", 0)},
			want:          &hooksv1alpha1.BeforeClusterCreateResponse{Status: success, Message: "from a, from b", RetryAfterSeconds: 7},
		},
		"AllByTheNameOfTheHook": {
			reason:        "the name that the gateway's discovery gives the aggregate stands for all",
			registrations: two,
			answers:       answers{"v.b": ok("from b", 7), "v.a": ok("from a", 5)},
			handler:       "beforeclustercreate",
			want:          &hooksv1alpha1.BeforeClusterCreateResponse{Status: success, Message: "from a, from b", RetryAfterSeconds: 5},
		},
		"One": {
			reason:        "a named handler answers alone, and as it is",
			registrations: two,
			answers:       answers{"v.b": no("not yet")},
			handler:       "v.b",
			want:          &hooksv1alpha1.BeforeClusterCreateResponse{Status: failure, Message: "not yet", RetryAfterSeconds: 3},
		},
		"OneByLabelInUpperCase": {
			reason:        "a label is a name too, in any case",
			registrations: two,
			answers:       answers{"v.b": ok("from b", 0)},
			handler:       "V--B",
			want:          &hooksv1alpha1.BeforeClusterCreateResponse{Status: success, Message: "from b"},
		},
		"Failure": {
			reason:        "one Failure fails the answer and names its handler; what others hold for does not matter then",
			registrations: two,
			answers:       answers{"v.b": no("not yet"), "v.a": ok("from a", 5)},
			want:          &hooksv1alpha1.BeforeClusterCreateResponse{Status: failure, Message: `handler "v.b": not yet`},
		},
		"Error": {
			reason:        "one error is the call's error and names its handler",
			registrations: two,
			answers:       answers{"v.b": fails(unreachable), "v.a": ok("from a", 5)},
			wantKind:      hook.Unreachable,
			wantError:     `handler "v.b": call extension: connection refused`,
		},
		"ErrorAndFailure": {
			reason:        "an error weighs more than a Failure; both are named, in the order of names",
			registrations: two,
			answers:       answers{"v.b": fails(unreachable), "v.a": no("not yet")},
			wantKind:      hook.Unreachable,
			wantError:     `handler "v.a": not yet; handler "v.b": call extension: connection refused`,
		},
		"IgnoredError": {
			reason:        "Ignore hides a call that could not be completed",
			registrations: lenient,
			answers:       answers{"v.a": fails(unreachable), "v.b": ok("from b", 4)},
			want:          &hooksv1alpha1.BeforeClusterCreateResponse{Status: success, Message: "from b", RetryAfterSeconds: 4},
		},
		"FailureIsNotIgnored": {
			reason:        "Ignore never hides what an extension answered",
			registrations: lenient,
			answers:       answers{"v.a": no("not yet"), "v.b": ok("from b", 4)},
			want:          &hooksv1alpha1.BeforeClusterCreateResponse{Status: failure, Message: `handler "v.a": not yet`},
		},
		"ConversionIsNotIgnored": {
			reason:        "Ignore hides only what it may",
			registrations: lenient,
			answers:       answers{"v.a": fails(hook.Errorf(hook.Conversion, "convert request: no")), "v.b": ok("", 0)},
			wantKind:      hook.Conversion,
			wantError:     `handler "v.a": convert request: no`,
		},
		"PanicIsNotIgnored": {
			reason:        "a panic is its own call's error, and does not end the process",
			registrations: lenient,
			answers: answers{
				"v.a": func(context.Context, extension.Call) (proto.Message, error) { panic("out of cheese") },
				"v.b": ok("", 0),
			},
			wantKind:  hook.Internal,
			wantError: `handler "v.a": internal error: see the gateway's log`,
		},
		"UnknownHandler": {
			reason:        "the text says which there are",
			registrations: two,
			handler:       "w.a",
			wantKind:      hook.UnknownHandler,
			wantError:     `no handler "w.a": the handlers of BeforeClusterCreate are v.a, v.b`,
		},
		"HandlerOfAnotherHook": {
			reason:        "a handler answers its own hook only",
			registrations: []registry.Registration{registrationOf("a", handlerOf("v", "BeforeClusterDelete", hook.Fail))},
			handler:       "v.a",
			wantKind:      hook.UnknownHandler,
			wantError:     `handler "v.a" serves the hook BeforeClusterDelete, not BeforeClusterCreate`,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			d := newDispatcher(filled(t, tc.registrations...), fixedNamespaces{}, tc.answers)
			// Again and again, because order must not depend on chance.
			for range 20 {
				got, err := d.dispatch(t.Context(), hookOf(t, hookName), tc.handler, &hooksv1alpha1.BeforeClusterCreateRequest{Cluster: clusterIn("n")})
				if tc.wantError != "" {
					if err == nil || err.Error() != tc.wantError || hook.KindOf(err) != tc.wantKind {
						t.Fatalf("%s: got error %v (%v), want %s (%v)", tc.reason, err, hook.KindOf(err), tc.wantError, tc.wantKind)
					}
					continue
				}
				if err != nil {
					t.Fatalf("%s: %v", tc.reason, err)
				}
				if diff := cmp.Diff(proto.Message(tc.want), got, protocmp.Transform()); diff != "" {
					t.Fatalf("%s: -want +got:\n%s", tc.reason, diff)
				}
			}
		})
	}
}

func TestDispatchOfHooksWithOneHandler(t *testing.T) {
	patches := &hooksv1alpha1.GeneratePatchesResponse{Status: success, Message: "two patches"}
	one := []registry.Registration{registrationOf("a", handlerOf("p", "GeneratePatches", hook.Fail))}
	several := append(one, registrationOf("b", handlerOf("p", "GeneratePatches", hook.Fail)))
	tests := map[string]struct {
		reason        string
		registrations []registry.Registration
		handler       string
		wantKind      hook.Kind
		wantError     string
	}{
		"Named":   {reason: "a name decides", registrations: several, handler: "p.a"},
		"OnlyOne": {reason: "one that matches needs no name", registrations: one},
		"Several": {
			reason: "answers with results of their own are never merged", registrations: several,
			wantKind: hook.Ambiguous, wantError: "GeneratePatches needs one handler and 2 match, say which: p.a, p.b",
		},
		"None": {
			reason: "there is no empty result to make up", wantKind: hook.UnknownHandler, wantError: "no handler of GeneratePatches matches",
		},
		"NameOfTheHook": {
			reason: "only hooks whose answers can be merged have an aggregate", registrations: several, handler: "generatepatches",
			wantKind: hook.UnknownHandler, wantError: `no handler "generatepatches": the handlers of GeneratePatches are p.a, p.b`,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			d := newDispatcher(filled(t, tc.registrations...), fixedNamespaces{}, answers{"p.a": says(patches)})
			got, err := d.dispatch(t.Context(), hookOf(t, "GeneratePatches"), tc.handler, &hooksv1alpha1.GeneratePatchesRequest{})
			if tc.wantError != "" {
				if err == nil || err.Error() != tc.wantError || hook.KindOf(err) != tc.wantKind {
					t.Fatalf("%s: got error %v (%v), want %s (%v)", tc.reason, err, hook.KindOf(err), tc.wantError, tc.wantKind)
				}
				return
			}
			if err != nil {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			if diff := cmp.Diff(proto.Message(patches), got, protocmp.Transform()); diff != "" {
				t.Fatalf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestDispatchSelectsByNamespace(t *testing.T) {
	selector, err := labels.Parse("team in (red)")
	if err != nil {
		t.Fatal(err)
	}
	byName, err := labels.Parse("kubernetes.io/metadata.name=blue-1")
	if err != nil {
		t.Fatal(err)
	}
	red := registrationOf("red", handlerOf("v", "BeforeClusterCreate", hook.Fail), handlerOf("u", "CanUpdateMachine", hook.Fail),
		handlerOf("p", "GeneratePatches", hook.Fail), handlerOf("d", "DiscoverVariables", hook.Fail))
	red.NamespaceSelector = selector
	blue := registrationOf("blue", handlerOf("v", "BeforeClusterCreate", hook.Fail))
	blue.NamespaceSelector = byName
	r := filled(t, red, blue)
	namespaces := fixedNamespaces{"red-1": {"team": "red"}}
	item := func(namespace string) *hooksv1alpha1.GeneratePatchesRequestItem {
		return &hooksv1alpha1.GeneratePatchesRequestItem{HolderReference: &hooksv1alpha1.HolderReference{Namespace: namespace}}
	}
	machine := func(namespace string) *hooksv1alpha1.CanUpdateMachineRequest {
		return &hooksv1alpha1.CanUpdateMachineRequest{Current: &hooksv1alpha1.CanUpdateMachineRequestObjects{Machine: clusterIn(namespace)}}
	}
	tests := map[string]struct {
		reason  string
		hook    string
		handler string
		request proto.Message
		called  string
		kind    hook.Kind
	}{
		"ByLabel":         {"labels come from the source", "BeforeClusterCreate", "", &hooksv1alpha1.BeforeClusterCreateRequest{Cluster: clusterIn("red-1")}, "v.red", 0},
		"ByName":          {"the name is a label of every namespace", "BeforeClusterCreate", "", &hooksv1alpha1.BeforeClusterCreateRequest{Cluster: clusterIn("blue-1")}, "v.blue", 0},
		"Nobody":          {"nothing matches, so nothing holds", "BeforeClusterCreate", "", &hooksv1alpha1.BeforeClusterCreateRequest{Cluster: clusterIn("green")}, "", 0},
		"NamedButNotFor":  {"a name does not get round the selector", "BeforeClusterCreate", "v.red", &hooksv1alpha1.BeforeClusterCreateRequest{Cluster: clusterIn("green")}, "", hook.UnknownHandler},
		"Machine":         {"the object is where the hook has it", "CanUpdateMachine", "u.red", machine("red-1"), "u.red", 0},
		"MachineNotFor":   {"the object is where the hook has it", "CanUpdateMachine", "u.red", machine("green"), "", hook.UnknownHandler},
		"Templates":       {"templates say who holds them", "GeneratePatches", "p.red", &hooksv1alpha1.GeneratePatchesRequest{Items: []*hooksv1alpha1.GeneratePatchesRequestItem{item("red-1")}}, "p.red", 0},
		"TemplatesNotAll": {"every namespace must match", "GeneratePatches", "p.red", &hooksv1alpha1.GeneratePatchesRequest{Items: []*hooksv1alpha1.GeneratePatchesRequestItem{item("red-1"), item("green")}}, "", hook.UnknownHandler},
		"NoObject":        {"a request without an object cannot be selected by", "DiscoverVariables", "d.red", &hooksv1alpha1.DiscoverVariablesRequest{}, "d.red", 0},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var mu sync.Mutex
			var called []string
			caller := callerFunc(func(_ context.Context, c extension.Call) (proto.Message, error) {
				mu.Lock()
				defer mu.Unlock()
				called = append(called, c.Handler.Name)
				return newSuccess(c.Hook), nil
			})
			_, err := newDispatcher(r, namespaces, caller).dispatch(t.Context(), hookOf(t, tc.hook), tc.handler, tc.request)
			if tc.kind != 0 {
				if hook.KindOf(err) != tc.kind || err == nil {
					t.Fatalf("%s: got error %v, want kind %v", tc.reason, err, tc.kind)
				}
			} else if err != nil {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			if got := strings.Join(called, " "); got != tc.called {
				t.Errorf("%s: called %q, want %q", tc.reason, got, tc.called)
			}
		})
	}
}

func TestDispatchMergesSettings(t *testing.T) {
	reg := registrationOf("a", handlerOf("v", "BeforeClusterCreate", hook.Fail))
	reg.Settings = map[string]string{"region": "north", "size": "small"}
	var got proto.Message
	caller := callerFunc(func(_ context.Context, c extension.Call) (proto.Message, error) {
		got = c.Request
		return newSuccess(c.Hook), nil
	})
	req := &hooksv1alpha1.BeforeClusterCreateRequest{
		Cluster:        clusterIn("n"),
		Settings:       map[string]string{"size": "large"},
		UnknownMembers: map[string]*hooksv1alpha1.JSON{"new": {Raw: []byte("1")}},
	}
	before := proto.Clone(req)
	if _, err := newDispatcher(filled(t, reg), fixedNamespaces{}, caller).dispatch(t.Context(), hookOf(t, "BeforeClusterCreate"), "", req); err != nil {
		t.Fatal(err)
	}
	want := proto.CloneOf(req)
	want.Settings = map[string]string{"region": "north", "size": "large"}
	if diff := cmp.Diff(proto.Message(want), got, protocmp.Transform()); diff != "" {
		t.Errorf("the request's settings win, everything else stays: -want +got:\n%s", diff)
	}
	if diff := cmp.Diff(before, proto.Message(req), protocmp.Transform()); diff != "" {
		t.Errorf("the caller's request was changed: -want +got:\n%s", diff)
	}
}

func TestDispatchBoundsTime(t *testing.T) {
	tests := map[string]struct {
		reason  string
		handler time.Duration
		caller  time.Duration
		want    time.Duration
		text    string
	}{
		"Handler":          {"the handler's timeout is the least", 2 * time.Second, 0, 2 * time.Second, `handler "v.a": no answer within its timeout of 2s`},
		"HandlerBelow":     {"the handler's timeout is less than the caller's", 2 * time.Second, 10 * time.Second, 2 * time.Second, `handler "v.a": no answer within its timeout of 2s`},
		"Caller":           {"a margin of the caller's deadline is kept for the answer", 10 * time.Second, 8 * time.Second, 7500 * time.Millisecond, `handler "v.a": no answer before the caller's deadline`},
		"CallerInAHurry":   {"the margin is at most a tenth", 10 * time.Second, time.Second, 900 * time.Millisecond, `handler "v.a": no answer before the caller's deadline`},
		"OuterNotSmaller":  {"a caller that waits as long as discovery says never cuts the handler short", 30 * time.Second, 31 * time.Second, 30 * time.Second, `handler "v.a": no answer within its timeout of 30s`},
		"NobodyIsInAHurry": {"no call takes more than 30 s", 30 * time.Second, time.Hour, 30 * time.Second, `handler "v.a": no answer within its timeout of 30s`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := handlerOf("v", "BeforeClusterCreate", hook.Fail)
				h.Timeout = tc.handler
				caller := callerFunc(func(ctx context.Context, _ extension.Call) (proto.Message, error) {
					<-ctx.Done()
					return nil, hook.Errorf(hook.Timeout, "whatever").WithCause(ctx.Err())
				})
				ctx := t.Context()
				if tc.caller > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, tc.caller)
					defer cancel()
				}
				start := time.Now()
				_, err := newDispatcher(filled(t, registrationOf("a", h)), fixedNamespaces{}, caller).
					dispatch(ctx, hookOf(t, "BeforeClusterCreate"), "", &hooksv1alpha1.BeforeClusterCreateRequest{Cluster: clusterIn("n")})
				if took := time.Since(start); took != tc.want {
					t.Errorf("%s: took %s, want %s", tc.reason, took, tc.want)
				}
				if err == nil || err.Error() != tc.text || hook.KindOf(err) != hook.Timeout {
					t.Errorf("%s: got error %v, want %s", tc.reason, err, tc.text)
				}
			})
		})
	}
}

func TestDispatchCallsHandlersAtTheSameTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var registrations []registry.Registration
		for i := range 10 {
			registrations = append(registrations, registrationOf(fmt.Sprintf("e%d", i), handlerOf("v", "BeforeClusterDelete", hook.Fail)))
		}
		caller := callerFunc(func(_ context.Context, c extension.Call) (proto.Message, error) {
			time.Sleep(20 * time.Millisecond)
			return newSuccess(c.Hook), nil
		})
		start := time.Now()
		_, err := newDispatcher(filled(t, registrations...), fixedNamespaces{}, caller).
			dispatch(t.Context(), hookOf(t, "BeforeClusterDelete"), "", &hooksv1alpha1.BeforeClusterDeleteRequest{Cluster: clusterIn("n")})
		if err != nil {
			t.Fatal(err)
		}
		if took := time.Since(start); took != 20*time.Millisecond {
			t.Errorf("10 handlers of 20 ms took %s of the bubble's time, want 20 ms", took)
		}
	})
}

func TestDispatchRefuses(t *testing.T) {
	tests := map[string]struct {
		reason  string
		hook    string
		request proto.Message
		want    string
	}{
		"NoCluster":     {"a lifecycle hook is about a Cluster", "BeforeClusterCreate", &hooksv1alpha1.BeforeClusterCreateRequest{}, "cluster: required"},
		"NullCluster":   {"null is no Cluster", "GenerateUpgradePlan", &hooksv1alpha1.GenerateUpgradePlanRequest{Cluster: &hooksv1alpha1.RawExtension{Raw: []byte(" null")}}, "cluster: required"},
		"StringCluster": {"an object is an object", "BeforeClusterDelete", &hooksv1alpha1.BeforeClusterDeleteRequest{Cluster: &hooksv1alpha1.RawExtension{Raw: []byte(`"c"`)}}, "cluster: want a Kubernetes object"},
		"NoMachine":     {"an in-place hook is about a Machine", "UpdateMachine", &hooksv1alpha1.UpdateMachineRequest{}, "desired.machine: required"},
		"NoMachineSet":  {"an in-place hook is about a MachineSet", "CanUpdateMachineSet", &hooksv1alpha1.CanUpdateMachineSetRequest{}, "current.machineSet: required"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := newDispatcher(filled(t), fixedNamespaces{}, answers{}).dispatch(t.Context(), hookOf(t, tc.hook), "", tc.request)
			if err == nil || err.Error() != tc.want || hook.KindOf(err) != hook.InvalidRequest {
				t.Errorf("%s: got %v, want %s", tc.reason, err, tc.want)
			}
		})
	}
	t.Run("NotReady", func(t *testing.T) {
		_, err := newDispatcher(registry.New(), fixedNamespaces{}, answers{}).
			dispatch(t.Context(), hookOf(t, "BeforeClusterCreate"), "", &hooksv1alpha1.BeforeClusterCreateRequest{Cluster: clusterIn("n")})
		if hook.KindOf(err) != hook.NotReady {
			t.Errorf("got %v, want NotReady", err)
		}
	})
	t.Run("AnotherVersion", func(t *testing.T) {
		h := handlerOf("v", "BeforeClusterCreate", hook.Ignore)
		h.Hook.Version = "v1alpha2"
		_, err := newDispatcher(filled(t, registrationOf("a", h)), fixedNamespaces{}, answers{}).
			dispatch(t.Context(), hookOf(t, "BeforeClusterCreate"), "", &hooksv1alpha1.BeforeClusterCreateRequest{Cluster: clusterIn("n")})
		if hook.KindOf(err) != hook.Conversion {
			t.Errorf("got %v, want Conversion", err)
		}
	})
}

// Trap 2: what a half-decoded answer left behind must not get past Ignore.
func TestTrap02IgnoredAnswersLeaveNothingBehind(t *testing.T) {
	half := callerFunc(func(context.Context, extension.Call) (proto.Message, error) {
		return &hooksv1alpha1.BeforeClusterCreateResponse{RetryAfterSeconds: 30, Message: "half"}, hook.Errorf(hook.BadResponse, "answer: JSON ends early")
	})
	d := newDispatcher(filled(t, registrationOf("a", handlerOf("v", "BeforeClusterCreate", hook.Ignore))), fixedNamespaces{}, half)
	got, err := d.dispatch(t.Context(), hookOf(t, "BeforeClusterCreate"), "", &hooksv1alpha1.BeforeClusterCreateRequest{Cluster: clusterIn("n")})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(proto.Message(&hooksv1alpha1.BeforeClusterCreateResponse{Status: success}), got, protocmp.Transform()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestDiscoverIsStable(t *testing.T) {
	empty := newDispatcher(filled(t), fixedNamespaces{}, answers{}).discover(t)
	if len(empty.GetHandlers()) != 9 {
		t.Fatalf("got %d handlers without extensions, want the 9 lifecycle hooks", len(empty.GetHandlers()))
	}
	slow := handlerOf("p", "GeneratePatches", hook.Ignore)
	slow.Timeout = 20 * time.Second
	r := filled(t, registrationOf("acme", handlerOf("v", "BeforeClusterCreate", hook.Fail), slow))
	full := newDispatcher(r, fixedNamespaces{}, answers{}).discover(t)
	var added []*hooksv1alpha1.ExtensionHandler
	for _, h := range full.GetHandlers() {
		if h.GetRequestHook().GetHook() == "GeneratePatches" {
			added = append(added, h)
		}
	}
	want := []*hooksv1alpha1.ExtensionHandler{{
		Name:           "p--acme",
		RequestHook:    &hooksv1alpha1.GroupVersionHook{ApiVersion: hook.APIVersion, Hook: "GeneratePatches"},
		TimeoutSeconds: proto.Int32(21),
		FailurePolicy:  hooksv1alpha1.FailurePolicy_FAILURE_POLICY_FAIL,
	}}
	if diff := cmp.Diff(want, added, protocmp.Transform()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if len(full.GetHandlers()) != 10 {
		t.Errorf("got %d handlers, want 10: a lifecycle handler adds none", len(full.GetHandlers()))
	}
}

// Trap 6: a caller that is turned away because of its namespace is told which one, and by what.
func TestTrap06TheTextSaysWhyTheNamespaceDoesNotMatch(t *testing.T) {
	reg := registrationOf("acme", handlerOf("v", "BeforeClusterCreate", hook.Fail))
	var err error
	if reg.NamespaceSelector, err = labels.Parse("team=red"); err != nil {
		t.Fatal(err)
	}
	_, err = newDispatcher(filled(t, reg), fixedNamespaces{}, answers{}).
		dispatch(t.Context(), hookOf(t, "BeforeClusterCreate"), "v.acme", &hooksv1alpha1.BeforeClusterCreateRequest{Cluster: clusterIn("blue")})
	if want := `handler "v.acme" is not for namespace "blue": the namespaceSelector of ExtensionConfig "acme" does not match`; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
