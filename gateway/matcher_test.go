// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"k8s.io/apimachinery/pkg/labels"

	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/calls/extension"
	"github.com/hookgate/hookgate/internal/calls/outcome"
	"github.com/hookgate/hookgate/internal/calls/policy"
	"github.com/hookgate/hookgate/internal/calls/selection"
	"github.com/hookgate/hookgate/internal/contract/codec"
	"github.com/hookgate/hookgate/registry"
	"github.com/hookgate/hookgate/test/hookversions"
	hookversionsv1alpha1 "github.com/hookgate/hookgate/test/hookversions/gen/hookversions/v1alpha1"
)

func TestDispatchSelectsByNamespace(t *testing.T) {
	selector, err := labels.Parse("team in (red)")
	if err != nil {
		t.Fatal(err)
	}
	byName, err := labels.Parse("kubernetes.io/metadata.name=blue-1")
	if err != nil {
		t.Fatal(err)
	}
	red := registrationOf("red", handlerOf("v", "BeforeClusterCreate", hook.Fail), handlerOf("u", "CanUpdateMachine", hook.Fail), handlerOf("w", "UpdateMachine", hook.Fail), handlerOf("s", "CanUpdateMachineSet", hook.Fail),
		handlerOf("p", "GeneratePatches", hook.Fail), handlerOf("d", "DiscoverVariables", hook.Fail))
	red.NamespaceSelector = selector
	blue := registrationOf("blue", handlerOf("v", "BeforeClusterCreate", hook.Fail))
	blue.NamespaceSelector = byName
	r := filled(t, red, blue)
	namespaces := fixedNamespaces{
		"red-1": {"team": "red"}, "blue-1": {"kubernetes.io/metadata.name": "blue-1"}, "green": {"kubernetes.io/metadata.name": "green"},
	}
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
		"ByLabel":        {"labels come from the source", "BeforeClusterCreate", "", &hooksv1alpha1.BeforeClusterCreateRequest{Cluster: clusterIn("red-1")}, "v.red", 0},
		"ByName":         {"the name is a label of every namespace", "BeforeClusterCreate", "", &hooksv1alpha1.BeforeClusterCreateRequest{Cluster: clusterIn("blue-1")}, "v.blue", 0},
		"Nobody":         {"nothing matches, so nothing holds", "BeforeClusterCreate", "", &hooksv1alpha1.BeforeClusterCreateRequest{Cluster: clusterIn("green")}, "", 0},
		"NamedButNotFor": {"a name does not get round the selector", "BeforeClusterCreate", "v.red", &hooksv1alpha1.BeforeClusterCreateRequest{Cluster: clusterIn("green")}, "", hook.UnknownHandler},
		"Machine":        {"the object is where the hook has it", "CanUpdateMachine", "u.red", machine("red-1"), "u.red", 0},
		"MachineNotFor":  {"the object is where the hook has it", "CanUpdateMachine", "u.red", machine("green"), "", hook.UnknownHandler},
		"Updated": {"an update selects by what is desired", "UpdateMachine", "w.red", &hooksv1alpha1.UpdateMachineRequest{
			Desired: &hooksv1alpha1.UpdateMachineRequestObjects{Machine: clusterIn("red-1")},
		}, "w.red", 0},
		"MachineSet": {"the object is where the hook has it", "CanUpdateMachineSet", "s.red", &hooksv1alpha1.CanUpdateMachineSetRequest{
			Current: &hooksv1alpha1.CanUpdateMachineSetRequestObjects{MachineSet: clusterIn("red-1")},
		}, "s.red", 0},
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
				return outcome.Success(c.Hook), nil
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

// The error names the namespace that does not match, and the ExtensionConfig whose selector refuses it.
func TestTheTextSaysWhyTheNamespaceDoesNotMatch(t *testing.T) {
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
		"Mine":  {"the settings are the caller's, without the ExtensionConfig's", policy.Policy{Conditions: conditions(t, `!has(request.settings.region)`)}, both, "", "a, b", 0, ""},
		"Named": {
			"a name does not get round the policy", policy.Policy{Conditions: conditions(t, `false`)}, nil, "v.a", "", hook.UnknownHandler,
			`handler "v.a" is not for this request: ExtensionPolicy "p" does not match`,
		},
		"Fail": {
			"under Fail, one that fails is an error of its handler, which is not called", policy.Policy{FailurePolicy: hook.Fail, Conditions: conditions(t, fails)}, onlyB, "", "", hook.Policy,
			`handler "v.a": ExtensionPolicy "p": match condition "c0": the expression fails for this request: no such key: spec`,
		},
		"NamedFail": {
			"also if it is called by name", policy.Policy{Conditions: conditions(t, fails)}, onlyB, "v.a", "", hook.Policy,
			`handler "v.a": ExtensionPolicy "p": match condition "c0": the expression fails for this request: no such key: spec`,
		},
		"Ignore":      {"under Ignore, the answer says only that", policy.Policy{FailurePolicy: hook.Ignore, Conditions: conditions(t, fails)}, onlyB, "", `ignored: handler "v.a": Policy, b`, 0, ""},
		"NamedIgnore": {"also if it is called by name", policy.Policy{FailurePolicy: hook.Ignore, Conditions: conditions(t, fails)}, onlyB, "v.a", `ignored: handler "v.a": Policy`, 0, ""},
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

// Conditions read no more of a large request than they name, and what they make of it is reserved and given back, for
// which the fixture looks. Over gRPC, nothing is JSON yet.
func TestConditionsOfLargeRequests(t *testing.T) {
	f := newFixture(t, nil)
	f.register(t, "BeforeClusterCreate", hook.Fail, 30*time.Second, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"status":"Success","message":"called"}`)
	})
	request := &hooksv1alpha1.BeforeClusterCreateRequest{Handler: "v.acme", Cluster: &hooksv1alpha1.RawExtension{Raw: []byte(
		`{"spec":{"list":[{}` + strings.Repeat(",{}", 2<<20) + `]},"metadata":{"name":"c"}}`,
	)}}
	body, err := mandated.Append(nil, request)
	if err != nil {
		t.Fatal(err)
	}
	for expression, want := range map[string]string{
		`request.cluster.metadata.name == 'c'`: "called",
		`request.cluster.spec.list.all(x, x == {})`: `handler "v.acme": ExtensionPolicy "p": match condition "c0": ` +
			"the expression costs too much for this request",
		// Elements whose list becomes another one.
		`request.cluster.spec.list + [{}] != []`: "the expression costs too much for this request",
	} {
		f.registry.SetPolicies("acme", registry.Policies{All: &policy.Policy{Name: "p", Conditions: conditions(t, expression)}})
		if got := f.post(t, createPath+"/v.acme", string(body)); !strings.Contains(string(got.body), strings.ReplaceAll(want, `"`, `\"`)) {
			t.Errorf("REST: %s: got %.300s, want %s", expression, got.body, want)
		}
		got, err := hooksv1alpha1.NewLifecycleHooksServiceClient(f.conn).BeforeClusterCreate(t.Context(), request)
		if text := got.GetMessage() + status.Convert(err).Message(); !strings.Contains(text, want) {
			t.Errorf("gRPC: %s: got %s, want %s", expression, text, want)
		}
	}
}

func TestPolicyConditionsEndWithTheCall(t *testing.T) {
	r := filled(t, registrationOf("a", handlerOf("v", "BeforeClusterCreate", hook.Fail)))
	r.SetPolicies("a", forHandler("v", policy.Policy{Conditions: conditions(t, `[1,2,3,4,5,6,7,8,9,10].all(a, [1,2,3,4,5,6,7,8,9,10].all(b, [1,2,3,4,5,6,7,8,9,10].all(c, size(request) + a + b + c > 0)))`)}))
	d := newDispatcher(r, fixedNamespaces{}, answers{"v.a": func(_ context.Context, c extension.Call) (proto.Message, error) {
		return outcome.Success(c.Hook), nil
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
		"BadLabels":       {"labels are strings", "BeforeClusterCreate", "tier=gold", &hooksv1alpha1.BeforeClusterCreateRequest{Cluster: labelled(`{"tier":1}`)}, hook.InvalidRequest, `handler "h.a": cluster.metadata.labels: want an object whose values are strings`},
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
				return outcome.Success(c.Hook), nil
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
	if answer, ok := got.(outcome.Response); !ok || answer.GetMessage() != "b" {
		t.Errorf("got %v, want the answer of the one that matches", got)
	}
	_, err = d.dispatch(t.Context(), hookOf(t, "GeneratePatches"), "", &hooksv1alpha1.GeneratePatchesRequest{Items: []*hooksv1alpha1.GeneratePatchesRequestItem{item, item}})
	if hook.KindOf(err) != hook.Ambiguous {
		t.Errorf("got %v, want Ambiguous", err)
	}
}

// Conditions read a request of an older version in the newest one, not the body that the caller sent.
func TestConditionsReadTheNewestVersion(t *testing.T) {
	h, _ := drains.Lookup(hook.GroupVersionHook{Group: hookversions.Group, Version: "v1alpha1", Hook: hookversions.BeforeNodeDrain})
	m := selection.New(fixedNamespaces{}, nil, hookversions.NewConverter(drains), codec.New(drains))
	if err := m.Read(selection.Request{
		Hook: h, Message: &hookversionsv1alpha1.BeforeNodeDrainRequest{Cluster: clusterIn("n"), Node: "worker-1"}, Body: []byte(`{"node":"worker-1"}`),
	}); err != nil {
		t.Fatal(err)
	}
	p := &policy.Policy{Name: "p", Conditions: conditions(t, `request.nodeName == 'worker-1'`)}
	if v := m.Judge(t.Context(), &registry.Entry{Registration: &registry.Registration{}, Policy: p}); v.Excluded() || v.PolicyError != nil {
		t.Errorf("got %+v", v)
	}
}
