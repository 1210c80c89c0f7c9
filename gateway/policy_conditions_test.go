// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/extension"
	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/hookversion"
	"github.com/hookgate/hookgate/internal/limits"
	"github.com/hookgate/hookgate/policy"
	"github.com/hookgate/hookgate/registry"
)

func conditions(t testing.TB, expressions ...string) *policy.Conditions {
	t.Helper()
	c, err := policy.NewCompiler()
	if err != nil {
		t.Fatal(err)
	}
	var list []policy.Condition
	for i, e := range expressions {
		list = append(list, policy.Condition{Name: fmt.Sprintf("c%d", i), Expression: e})
	}
	compiled, errs := c.Compile(list)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	return compiled
}

func selector(t testing.TB, text string) labels.Selector {
	t.Helper()
	s, err := labels.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// forHandler is a policy for the handler of that name.
func forHandler(name string, p policy.Policy) registry.Policies {
	p.Name = "p"
	return registry.Policies{Handlers: map[string]*policy.Policy{name: &p}}
}

// labelled is a Cluster in namespace n with labels, as JSON.
func labelled(labels string) *hooksv1alpha1.RawExtension {
	return &hooksv1alpha1.RawExtension{Raw: fmt.Appendf(nil, `{"kind":"Cluster","metadata":{"name":"c","namespace":"n","labels":%s}}`, labels)}
}

func TestPolicyConditions(t *testing.T) {
	const hookName = "BeforeClusterCreate"
	success200 := func(message string) func(context.Context, extension.Call) (proto.Message, error) {
		return says(&hooksv1alpha1.BeforeClusterCreateResponse{Status: success, Message: message})
	}
	both := answers{"v.a": success200("a"), "v.b": success200("b")}
	onlyB := answers{"v.b": success200("b")}
	fails := `request.cluster.spec.size > 1`
	tests := map[string]struct {
		reason  string
		policy  policy.Policy // for v.a
		answers answers
		handler string
		want    string // the message of the answer
		kind    hook.Kind
		text    string
	}{
		"True":  {"a condition that is true lets the handler be called", policy.Policy{Conditions: conditions(t, `request.cluster.metadata.name == 'c'`, `request.settings.size == 'large'`)}, both, "", "a, b", 0, ""},
		"False": {"one that is false leaves it out", policy.Policy{Conditions: conditions(t, `true`, `request.cluster.metadata.name == 'd'`)}, onlyB, "", "b", 0, ""},
		"Kind":  {"the request has kind and apiVersion, as Cluster API sends it", policy.Policy{Conditions: conditions(t, `request.kind == 'BeforeClusterCreateRequest' && request.apiVersion == 'hooks.runtime.cluster.x-k8s.io/v1alpha1'`)}, both, "", "a, b", 0, ""},
		"Mine":  {"the settings are the caller's, without those of the ExtensionConfig", policy.Policy{Conditions: conditions(t, `!has(request.settings.region)`)}, both, "", "a, b", 0, ""},
		"Named": {
			"a name does not get round the policy", policy.Policy{Conditions: conditions(t, `false`)}, nil, "v.a", "", hook.UnknownHandler,
			`handler "v.a" is not for this request: ExtensionPolicy "p" does not match`,
		},
		"Fail": {
			"under Fail, one that fails is an error of its handler, which is not called", policy.Policy{FailurePolicy: hook.Fail, Conditions: conditions(t, fails)}, onlyB, "", "", hook.Policy,
			`handler "v.a": ExtensionPolicy "p": match condition "c0": the expression fails for this request`,
		},
		"NamedFail": {
			"also if it is called by name", policy.Policy{Conditions: conditions(t, fails)}, onlyB, "v.a", "", hook.Policy,
			`handler "v.a": ExtensionPolicy "p": match condition "c0": the expression fails for this request`,
		},
		"Ignore":      {"under Ignore, the handler has nothing to say", policy.Policy{FailurePolicy: hook.Ignore, Conditions: conditions(t, fails)}, onlyB, "", "b", 0, ""},
		"NamedIgnore": {"also if it is called by name", policy.Policy{FailurePolicy: hook.Ignore, Conditions: conditions(t, fails)}, onlyB, "v.a", "", 0, ""},
		"FalseAndFails": {
			"one that is false decides, whatever another does", policy.Policy{Conditions: conditions(t, fails, `false`)}, onlyB, "", "b", 0, "",
		},
		"Cost": {
			"one that costs too much is given up", policy.Policy{Conditions: conditions(t, `request.list.all(a, request.list.all(b, request.list.all(c, a + b + c >= 0)))`)}, onlyB, "", "", hook.Policy,
			`handler "v.a": ExtensionPolicy "p": match condition "c0": the expression costs too much for this request`,
		},
		"SelectorFirst": {"labels are looked at before conditions", policy.Policy{ObjectSelector: selector(t, "tier=silver"), Conditions: conditions(t, fails)}, onlyB, "", "b", 0, ""},
	}
	list := "[" + strings.TrimSuffix(strings.Repeat("1,", 200), ",") + "]"
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			a := registrationOf("a", handlerOf("v", hookName, hook.Fail))
			a.Settings = map[string]string{"region": "north"}
			r := filled(t, a, registrationOf("b", handlerOf("v", hookName, hook.Fail)))
			r.SetPolicies("a", forHandler("v", tc.policy))
			d := newDispatcher(r, fixedNamespaces{}, tc.answers)
			req := &hooksv1alpha1.BeforeClusterCreateRequest{
				Cluster: labelled(`{"tier":"gold"}`), Settings: map[string]string{"size": "large"},
				UnknownMembers: map[string]*hooksv1alpha1.JSON{"list": {Raw: []byte(list)}},
			}
			text, err := mandated.Append(nil, req)
			if err != nil {
				t.Fatal(err)
			}
			// A request that came as JSON is read as it came, another one as it would have come.
			for protocol, body := range map[string][]byte{"gRPC": nil, "REST": text} {
				got, err := d.Dispatch(t.Context(), Request{Hook: hookOf(t, hookName), Handler: tc.handler, Message: req, Body: body})
				if tc.text != "" {
					if err == nil || err.Error() != tc.text || hook.KindOf(err) != tc.kind {
						t.Fatalf("%s: %s: got %v (%v), want %s (%v)", protocol, tc.reason, err, hook.KindOf(err), tc.text, tc.kind)
					}
					if tc.kind == hook.Policy && errors.Unwrap(err) == nil {
						t.Errorf("%s: %s: what CEL says is missing for the log", protocol, tc.reason)
					}
					continue
				}
				if err != nil {
					t.Fatalf("%s: %s: %v", protocol, tc.reason, err)
				}
				want := &hooksv1alpha1.BeforeClusterCreateResponse{Status: success, Message: tc.want}
				if diff := cmp.Diff(proto.Message(want), got, protocmp.Transform()); diff != "" {
					t.Fatalf("%s: %s: -want +got:\n%s", protocol, tc.reason, diff)
				}
			}
		})
	}
}

func TestPolicyFailuresAreObserved(t *testing.T) {
	r := filled(t, registrationOf("a", handlerOf("v", "BeforeClusterCreate", hook.Fail)))
	r.SetPolicies("a", forHandler("v", policy.Policy{FailurePolicy: hook.Ignore, Conditions: conditions(t, `request.nothing`)}))
	o := newObserved()
	hooks := catalog.New()
	_, err := NewDispatcher(Config{
		Catalog: hooks, Versions: hookversion.New(hooks), Codec: mandated, Registry: r, Namespaces: fixedNamespaces{}, Transport: transportOf(answers{}), Observer: o.Observer,
	}).dispatch(t.Context(), hookOf(t, "BeforeClusterCreate"), "", &hooksv1alpha1.BeforeClusterCreateRequest{Cluster: clusterIn("n")})
	if err != nil {
		t.Fatal(err)
	}
	wantCount(t, o.metrics.ignoredFailures, 1, "BeforeClusterCreate", "v.a", "Policy")
	if !strings.Contains(o.log.String(), "failure ignored") {
		t.Errorf("the log does not tell of the failure that was ignored:\n%s", o.log)
	}
}

func TestPolicyConditionsEndWithTheCall(t *testing.T) {
	r := filled(t, registrationOf("a", handlerOf("v", "BeforeClusterCreate", hook.Fail)))
	r.SetPolicies("a", forHandler("v", policy.Policy{Conditions: conditions(t, `[1,2,3,4,5,6,7,8,9,10].all(a, [1,2,3,4,5,6,7,8,9,10].all(b, [1,2,3,4,5,6,7,8,9,10].all(c, size(request) + a + b + c > 0)))`)}))
	d := newDispatcher(r, fixedNamespaces{}, answers{"v.a": func(_ context.Context, c extension.Call) (proto.Message, error) {
		return newSuccess(c.Hook), nil
	}})
	req := &hooksv1alpha1.BeforeClusterCreateRequest{Cluster: clusterIn("n")}
	if _, err := d.dispatch(t.Context(), hookOf(t, "BeforeClusterCreate"), "", req); err != nil {
		t.Fatal(err)
	}
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := d.dispatch(canceled, hookOf(t, "BeforeClusterCreate"), "", req); hook.KindOf(err) != hook.Canceled {
		t.Errorf("got %v, want Canceled", err)
	}
	late, cancel := context.WithDeadline(t.Context(), time.Now())
	defer cancel()
	if _, err := d.dispatch(late, hookOf(t, "BeforeClusterCreate"), "", req); hook.KindOf(err) != hook.Timeout {
		t.Errorf("got %v, want Timeout", err)
	}
}

func TestPolicyObjectSelector(t *testing.T) {
	gold, silver := `{"tier":"gold"}`, `{"tier":"silver"}`
	builtin := func(labels string) []*hooksv1alpha1.Variable {
		return []*hooksv1alpha1.Variable{
			{Name: "other", Value: &hooksv1alpha1.JSON{Raw: []byte(`1`)}},
			{Name: "builtin", Value: &hooksv1alpha1.JSON{Raw: []byte(`{"cluster":{"name":"c","metadata":{"labels":` + labels + `}}}`)}},
		}
	}
	item := []*hooksv1alpha1.GeneratePatchesRequestItem{{Object: labelled(gold), HolderReference: &hooksv1alpha1.HolderReference{Namespace: "n"}}}
	tests := map[string]struct {
		reason   string
		hook     string
		selector string
		request  proto.Message
		want     hook.Kind // Internal, the zero value, for a call
		text     string
	}{
		"Cluster":         {"a lifecycle hook is about a Cluster", "BeforeClusterCreate", "tier=gold", &hooksv1alpha1.BeforeClusterCreateRequest{Cluster: labelled(gold)}, 0, ""},
		"ClusterNot":      {"another label", "BeforeClusterCreate", "tier=gold", &hooksv1alpha1.BeforeClusterCreateRequest{Cluster: labelled(silver)}, hook.UnknownHandler, ""},
		"NoLabels":        {"an object without labels has none", "BeforeClusterCreate", "tier", &hooksv1alpha1.BeforeClusterCreateRequest{Cluster: clusterIn("n")}, hook.UnknownHandler, ""},
		"NullLabels":      {"null is none", "BeforeClusterCreate", "!tier", &hooksv1alpha1.BeforeClusterCreateRequest{Cluster: labelled("null")}, 0, ""},
		"Everything":      {"an empty selector matches all", "BeforeClusterCreate", "", &hooksv1alpha1.BeforeClusterCreateRequest{Cluster: labelled(silver)}, 0, ""},
		"BadLabels":       {"labels are strings", "BeforeClusterCreate", "tier=gold", &hooksv1alpha1.BeforeClusterCreateRequest{Cluster: labelled(`{"tier":1}`)}, hook.InvalidRequest, `handler "h.a": cluster.metadata.labels: want an object of strings`},
		"Plan":            {"an upgrade plan is about a Cluster", "GenerateUpgradePlan", "tier=gold", &hooksv1alpha1.GenerateUpgradePlanRequest{Cluster: labelled(gold)}, 0, ""},
		"Machine":         {"an in-place hook is about a Machine", "CanUpdateMachine", "tier=gold", &hooksv1alpha1.CanUpdateMachineRequest{Current: &hooksv1alpha1.CanUpdateMachineRequestObjects{Machine: labelled(gold)}}, 0, ""},
		"MachineNot":      {"another label", "UpdateMachine", "tier=gold", &hooksv1alpha1.UpdateMachineRequest{Desired: &hooksv1alpha1.UpdateMachineRequestObjects{Machine: labelled(silver)}}, hook.UnknownHandler, ""},
		"MachineSet":      {"or about a MachineSet", "CanUpdateMachineSet", "tier=gold", &hooksv1alpha1.CanUpdateMachineSetRequest{Current: &hooksv1alpha1.CanUpdateMachineSetRequestObjects{MachineSet: labelled(gold)}}, 0, ""},
		"Templates":       {"templates are about the Cluster, whose labels Cluster API puts into a variable", "GeneratePatches", "tier=gold", &hooksv1alpha1.GeneratePatchesRequest{Variables: builtin(gold)}, 0, ""},
		"TemplatesNot":    {"the labels of a template do not count", "GeneratePatches", "tier=gold", &hooksv1alpha1.GeneratePatchesRequest{Variables: builtin(silver), Items: item}, hook.UnknownHandler, ""},
		"NoVariable":      {"without the variable there are no labels", "GeneratePatches", "tier=gold", &hooksv1alpha1.GeneratePatchesRequest{Items: item}, hook.UnknownHandler, ""},
		"ValidateCluster": {"the other hook of that kind", "ValidateTopology", "tier=gold", &hooksv1alpha1.ValidateTopologyRequest{Variables: builtin(gold)}, 0, ""},
		"NoObject":        {"a request without an object cannot be selected by", "DiscoverVariables", "tier=gold", &hooksv1alpha1.DiscoverVariablesRequest{}, 0, ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			r := filled(t, registrationOf("a", handlerOf("h", tc.hook, hook.Fail)))
			r.SetPolicies("a", forHandler("h", policy.Policy{ObjectSelector: selector(t, tc.selector)}))
			called := false
			caller := callerFunc(func(_ context.Context, c extension.Call) (proto.Message, error) {
				called = true
				return newSuccess(c.Hook), nil
			})
			_, err := newDispatcher(r, fixedNamespaces{}, caller).dispatch(t.Context(), hookOf(t, tc.hook), "h.a", tc.request)
			if hook.KindOf(err) != tc.want || (err == nil) != (tc.want == 0) || called != (err == nil) {
				t.Errorf("%s: got %v, called %v", tc.reason, err, called)
			}
			if tc.text != "" && err != nil && err.Error() != tc.text {
				t.Errorf("%s: got %s, want %s", tc.reason, err, tc.text)
			}
		})
	}
}

func TestPolicyDecidesWhichOneHandlerAnswers(t *testing.T) {
	r := filled(t, registrationOf("a", handlerOf("p", "GeneratePatches", hook.Fail)), registrationOf("b", handlerOf("p", "GeneratePatches", hook.Fail)))
	r.SetPolicies("a", forHandler("p", policy.Policy{Conditions: conditions(t, `size(request.items) > 1`)}))
	d := newDispatcher(r, fixedNamespaces{}, answers{"p.b": says(&hooksv1alpha1.GeneratePatchesResponse{Status: success, Message: "b"})})
	item := &hooksv1alpha1.GeneratePatchesRequestItem{HolderReference: &hooksv1alpha1.HolderReference{Namespace: "n"}, Object: clusterIn("n")}
	got, err := d.dispatch(t.Context(), hookOf(t, "GeneratePatches"), "", &hooksv1alpha1.GeneratePatchesRequest{Items: []*hooksv1alpha1.GeneratePatchesRequestItem{item}})
	if err != nil {
		t.Fatal(err)
	}
	if answer, ok := got.(response); !ok || answer.GetMessage() != "b" {
		t.Errorf("got %v, want the answer of the one that matches", got)
	}
	_, err = d.dispatch(t.Context(), hookOf(t, "GeneratePatches"), "", &hooksv1alpha1.GeneratePatchesRequest{Items: []*hooksv1alpha1.GeneratePatchesRequestItem{item, item}})
	if hook.KindOf(err) != hook.Ambiguous {
		t.Errorf("got %v, want Ambiguous", err)
	}
}

func TestPolicyTimeoutAndFailurePolicy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := filled(t, registrationOf("a", handlerOf("v", "BeforeClusterCreate", hook.Fail)))
		caller := callerFunc(func(ctx context.Context, _ extension.Call) (proto.Message, error) {
			<-ctx.Done()
			return nil, hook.Errorf(hook.Timeout, "whatever").WithCause(ctx.Err())
		})
		d := newDispatcher(r, fixedNamespaces{}, caller)
		dispatch := func() (time.Duration, error) {
			start := time.Now()
			_, err := d.dispatch(t.Context(), hookOf(t, "BeforeClusterCreate"), "", &hooksv1alpha1.BeforeClusterCreateRequest{Cluster: clusterIn("n")})
			return time.Since(start), err
		}
		r.SetPolicies("a", forHandler("v", policy.Policy{Timeout: 3 * time.Second}))
		if took, err := dispatch(); took != 3*time.Second || err == nil || err.Error() != `handler "v.a": no answer within its timeout of 3s` {
			t.Errorf("the policy's timeout counts: got %v after %s", err, took)
		}
		r.SetPolicies("a", forHandler("v", policy.Policy{Timeout: 3 * time.Second, FailurePolicy: hook.Ignore}))
		if took, err := dispatch(); took != 3*time.Second || err != nil {
			t.Errorf("the policy's failure policy counts: got %v after %s", err, took)
		}
		r.SetPolicies("a", registry.Policies{})
		if took, err := dispatch(); took != 10*time.Second || hook.KindOf(err) != hook.Timeout {
			t.Errorf("without a policy the handler's own count: got %v after %s", err, took)
		}
	})
}

func TestDiscoveryFollowsPolicies(t *testing.T) {
	r := filled(t, registrationOf("acme", handlerOf("p", "GeneratePatches", hook.Fail)))
	d := newDispatcher(r, fixedNamespaces{}, answers{})
	announced := func() int32 {
		t.Helper()
		for _, h := range d.discover(t).GetHandlers() {
			if h.GetName() == "p--acme" {
				return h.GetTimeoutSeconds()
			}
		}
		t.Fatal("the handler is not offered")
		return 0
	}
	for seconds, want := range map[int]int32{2: 3, 25: 26, 30: 30} {
		r.SetPolicies("acme", forHandler("p", policy.Policy{Timeout: time.Duration(seconds) * time.Second}))
		if got := announced(); got != want {
			t.Errorf("with a policy of %d s, callers are told %d, want %d", seconds, got, want)
		}
	}
	r.SetPolicies("acme", registry.Policies{})
	if got := announced(); got != 11 {
		t.Errorf("without a policy, callers are told %d, want 11", got)
	}
}

// recorder answers after a second, and remembers who was called when.
type recorder struct {
	start   time.Time
	answers answers

	mu    sync.Mutex
	calls map[string]time.Duration
}

func (r *recorder) Call(ctx context.Context, c extension.Call) (proto.Message, error) {
	r.mu.Lock()
	r.calls[c.Handler.Name] = time.Since(r.start)
	r.mu.Unlock()
	select {
	case <-time.After(time.Second):
	case <-ctx.Done():
		return nil, hook.Errorf(hook.Timeout, "whatever").WithCause(ctx.Err())
	}
	if f, ok := r.answers[c.Handler.Name]; ok {
		return f(ctx, c)
	}
	return newSuccess(c.Hook), nil
}

func TestPolicyOrder(t *testing.T) {
	const hookName = "BeforeClusterDelete"
	answer := func(status hooksv1alpha1.ResponseStatus, message string, retry int32) func(context.Context, extension.Call) (proto.Message, error) {
		return says(&hooksv1alpha1.BeforeClusterDeleteResponse{Status: status, Message: message, RetryAfterSeconds: retry})
	}
	unreachable := hook.Errorf(hook.Unreachable, "call extension: connection refused")
	whole := map[string]time.Duration{"v.c": 0, "v.a": time.Second, "v.d": 2 * time.Second, "v.b": 3 * time.Second, "v.e": 3 * time.Second}
	tests := map[string]struct {
		reason  string
		answers answers
		policy  hook.FailurePolicy
		calls   map[string]time.Duration // when each was called
		took    time.Duration
		want    *hooksv1alpha1.BeforeClusterDeleteResponse
		text    string
	}{
		"Sequence": {
			"lowest first, by name where it is the same, then all others at the same time; messages stay in the order of names",
			answers{"v.a": answer(success, "a", 0), "v.b": answer(success, "b", 0), "v.c": answer(success, "c", 0)}, "", whole, 4 * time.Second,
			&hooksv1alpha1.BeforeClusterDeleteResponse{Status: success, Message: "a, b, c"}, "",
		},
		"Hold": {
			"who holds the caller does not keep others from being asked", answers{"v.c": answer(success, "", 9), "v.b": answer(success, "", 5)}, "", whole, 4 * time.Second,
			&hooksv1alpha1.BeforeClusterDeleteResponse{Status: success, RetryAfterSeconds: 5}, "",
		},
		"Failure": {
			"a Failure ends the sequence", answers{"v.a": answer(failure, "no", 0)}, "", map[string]time.Duration{"v.c": 0, "v.a": time.Second}, 2 * time.Second,
			&hooksv1alpha1.BeforeClusterDeleteResponse{Status: failure, Message: `handler "v.a": no`}, "",
		},
		"Error": {
			"an error ends the sequence", answers{"v.c": fails(unreachable)}, "", map[string]time.Duration{"v.c": 0}, time.Second,
			nil, `handler "v.c": call extension: connection refused`,
		},
		"Ignored": {
			"an error that is ignored does not", answers{"v.c": fails(unreachable)}, hook.Ignore, whole, 4 * time.Second,
			&hooksv1alpha1.BeforeClusterDeleteResponse{Status: success}, "",
		},
		"Unordered": {
			"who has no order keeps nobody from being called", answers{"v.b": fails(unreachable)}, "", whole, 4 * time.Second,
			nil, `handler "v.b": call extension: connection refused`,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := filled(t)
				for _, x := range []string{"a", "b", "c", "d", "e"} {
					if err := r.Apply(registrationOf(x, handlerOf("v", hookName, hook.Fail))); err != nil {
						t.Fatal(err)
					}
				}
				for x, order := range map[string]int32{"a": 7, "d": 7, "c": -1} {
					r.SetPolicies(x, forHandler("v", policy.Policy{Order: ptr.To(order), FailurePolicy: tc.policy}))
				}
				caller := &recorder{start: time.Now(), answers: tc.answers, calls: map[string]time.Duration{}}
				got, err := newDispatcher(r, fixedNamespaces{}, caller).
					dispatch(t.Context(), hookOf(t, hookName), "", &hooksv1alpha1.BeforeClusterDeleteRequest{Cluster: clusterIn("n")})
				if took := time.Since(caller.start); took != tc.took {
					t.Errorf("%s: took %s, want %s", tc.reason, took, tc.took)
				}
				if diff := cmp.Diff(tc.calls, caller.calls); diff != "" {
					t.Errorf("%s: calls -want +got:\n%s", tc.reason, diff)
				}
				if tc.text != "" {
					if err == nil || err.Error() != tc.text {
						t.Errorf("%s: got %v, want %s", tc.reason, err, tc.text)
					}
					return
				}
				if err != nil {
					t.Fatalf("%s: %v", tc.reason, err)
				}
				if diff := cmp.Diff(proto.Message(tc.want), got, protocmp.Transform()); diff != "" {
					t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
				}
			})
		})
	}
}

// A sequence is bounded as one call is: handlers at its end get what is left.
func TestPolicyOrderIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := filled(t)
		for i, x := range []string{"a", "b", "c", "d"} {
			h := handlerOf("v", "BeforeClusterDelete", hook.Fail)
			h.Timeout = 20 * time.Second
			if err := r.Apply(registrationOf(x, h)); err != nil {
				t.Fatal(err)
			}
			r.SetPolicies(x, forHandler("v", policy.Policy{Order: ptr.To(int32(i)), FailurePolicy: hook.Ignore}))
		}
		var calls []string
		caller := callerFunc(func(ctx context.Context, c extension.Call) (proto.Message, error) {
			calls = append(calls, c.Handler.Name)
			<-ctx.Done()
			return nil, hook.Errorf(hook.Timeout, "whatever").WithCause(ctx.Err())
		})
		start := time.Now()
		_, err := newDispatcher(r, fixedNamespaces{}, caller).
			dispatch(t.Context(), hookOf(t, "BeforeClusterDelete"), "", &hooksv1alpha1.BeforeClusterDeleteRequest{Cluster: clusterIn("n")})
		if took := time.Since(start); err != nil || took > limits.Timeout {
			t.Errorf("got %v after %s, want no more than %s", err, took, limits.Timeout)
		}
		if !slices.Equal(calls, []string{"v.a", "v.b", "v.c", "v.d"}) {
			t.Errorf("called %v", calls)
		}
	})
}

// Policies that want nothing give the answers that no policies give.
func TestDispatchWithoutPoliciesIsUnchanged(t *testing.T) {
	const hookName = "BeforeClusterCreate"
	registrations := []registry.Registration{
		registrationOf("b", handlerOf("v", hookName, hook.Fail), handlerOf("w", hookName, hook.Ignore)), registrationOf("a", handlerOf("v", hookName, hook.Fail)),
	}
	possible := []func(context.Context, extension.Call) (proto.Message, error){
		says(&hooksv1alpha1.BeforeClusterCreateResponse{Status: success, Message: "yes"}),
		says(&hooksv1alpha1.BeforeClusterCreateResponse{Status: success, RetryAfterSeconds: 4}),
		says(&hooksv1alpha1.BeforeClusterCreateResponse{Status: failure, Message: "no"}),
		fails(hook.Errorf(hook.Unreachable, "call extension: connection refused")),
		fails(hook.Errorf(hook.Conversion, "convert request: no")),
	}
	req := &hooksv1alpha1.BeforeClusterCreateRequest{Cluster: labelled(`{"tier":"gold"}`)}
	always := conditions(t, `true`)
	for i := range len(possible) * len(possible) * len(possible) {
		answers := answers{"v.a": possible[i%5], "v.b": possible[i/5%5], "w.b": possible[i/25]}
		for _, handler := range []string{"", "v.b", "w--b"} {
			without, with := filled(t, registrations...), filled(t, registrations...)
			with.SetPolicies("a", registry.Policies{All: &policy.Policy{Name: "p"}})
			with.SetPolicies("b", registry.Policies{All: &policy.Policy{Name: "p", Conditions: always, ObjectSelector: labels.Everything()}})
			with.SetPolicies("elsewhere", registry.Policies{All: &policy.Policy{Name: "p", Order: ptr.To(int32(1))}})
			want, wantErr := newDispatcher(without, fixedNamespaces{}, answers).dispatch(t.Context(), hookOf(t, hookName), handler, req)
			got, err := newDispatcher(with, fixedNamespaces{}, answers).dispatch(t.Context(), hookOf(t, hookName), handler, req)
			if fmt.Sprint(err) != fmt.Sprint(wantErr) || hook.KindOf(err) != hook.KindOf(wantErr) {
				t.Fatalf("answers %d, handler %q: got %v, want %v", i, handler, err, wantErr)
			}
			if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
				t.Fatalf("answers %d, handler %q: -want +got:\n%s", i, handler, diff)
			}
		}
	}
}
