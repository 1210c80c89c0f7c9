// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"

	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/calls/policy"
	"github.com/hookgate/hookgate/internal/contract/convert"
	"github.com/hookgate/hookgate/registry"
)

// explained returns an explanation as lines: the failure, and the handlers with their turns and reasons.
func explained(x *Explanation) string {
	var b strings.Builder
	if x.Failure != nil {
		fmt.Fprintf(&b, "%s: %s\n", x.Failure.Kind, x.Failure.Message)
	}
	var write func(indent string, handlers []ExplainedHandler)
	write = func(indent string, handlers []ExplainedHandler) {
		for i := range handlers {
			h := &handlers[i]
			fmt.Fprintf(&b, "%s%d %s", indent, h.Turn, h.Name)
			if h.Excluded != nil {
				fmt.Fprintf(&b, " %s: %s", h.Excluded.By, h.Excluded.Message)
			}
			if h.Fails != "" {
				fmt.Fprintf(&b, " FAILS %s", h.Fails)
			}
			b.WriteString("\n")
			write(indent+"  ", h.Steps)
		}
	}
	write("", x.Handlers)
	return b.String()
}

// explains requires the explanation of a request.
func explains(t *testing.T, reason string, d *Dispatcher, hookName, handler string, req proto.Message, want string) *Explanation {
	t.Helper()
	x, err := d.Explain(t.Context(), Request{Hook: hookOf(t, hookName), Handler: handler, Message: req})
	if err != nil {
		t.Fatalf("%s: %v", reason, err)
	}
	if diff := gocmp.Diff(strings.TrimLeft(want, "\n"), explained(x)); diff != "" {
		t.Errorf("%s: -want +got\n%s", reason, diff)
	}
	return x
}

// explainedRegistry has a handler for each reason.
func explainedRegistry(t *testing.T) *registry.Registry {
	t.Helper()
	r := filled(t)
	r.SetAllPolicies(map[string]registry.Policies{
		"withheld": {All: &policy.Policy{Name: "w", Hooks: []string{"GeneratePatches"}}},
		"ignored":  {All: &policy.Policy{Name: "i", OnUndiscovered: hook.Ignore}},
		"other":    {All: &policy.Policy{Name: "o", Hooks: []string{"GeneratePatches"}}},
	})
	for _, tc := range []struct {
		name, selector string
		policy         policy.Policy
	}{
		{"a", "team=blue", policy.Policy{}},
		{"b", "", policy.Policy{ObjectSelector: selector(t, "tier in (gold,silver)")}},
		{"c", "", policy.Policy{Conditions: conditions(t, "true", "request.cluster\n  .metadata.name == 'd'")}},
		{"d", "", policy.Policy{Conditions: conditions(t, "request.nothing"), Order: new(int32(7))}},
		{"e", "team=red", policy.Policy{Order: new(int32(-1)), Timeout: 30 * time.Second, FailurePolicy: hook.Ignore}},
		{"f", "", policy.Policy{}},
		{"g", "", policy.Policy{ClusterAPIVersion: "v1beta1"}},
		{"withheld", "", policy.Policy{}},
	} {
		reg := registrationOf(tc.name, handlerOf("v", "BeforeClusterDelete", hook.Fail), handlerOf("u", "UpdateMachine", hook.Fail))
		if tc.selector != "" {
			reg.NamespaceSelector = selector(t, tc.selector)
		}
		if err := r.Apply(reg); err != nil {
			t.Fatal(err)
		}
		if tc.name != "withheld" {
			r.SetPolicies(tc.name, forHandler("v", tc.policy))
		}
	}
	r.SetUndiscovered([]registry.Undiscovered{
		{Name: "ignored", Default: hook.Fail}, {Name: "other", Default: hook.Fail},
		{Name: "away", Default: hook.Fail, NamespaceSelector: selector(t, "team=blue")},
	})
	return r
}

// Each handler that is called has its turn, and each other one the reason with its value.
func TestExplain(t *testing.T) {
	r := explainedRegistry(t)
	d := newDispatcher(r, fixedNamespaces{"n": {"team": "red"}}, answers{})
	d.config.Objects = convert.NewObjects(convert.NewReferences())
	request := &hooksv1alpha1.BeforeClusterDeleteRequest{Cluster: labelled(`{"tier":"iron","a":"b"}`)}
	const others = `
0 away namespaceSelector: namespaceSelector of ExtensionConfig "away" (team=blue) does not match namespace "n" with the labels team=red
0 ignored onUndiscovered: its handlers are not known yet, and calls are answered without them
0 other hooks: spec.hooks of ExtensionPolicy "o" does not list the hook BeforeClusterDelete
0 v.a namespaceSelector: namespaceSelector of ExtensionConfig "a" (team=blue) does not match namespace "n" with the labels team=red
0 v.b objectSelector: objectSelector of ExtensionPolicy "p" (tier in (gold,silver)) does not match the labels a=b,tier=iron
0 v.c matchCondition: match condition "c1" of ExtensionPolicy "p" is false: request.cluster .metadata.name == 'd'
0 v.withheld hooks: spec.hooks of ExtensionPolicy "w" does not list the hook BeforeClusterDelete
`
	x := explains(t, "all", d, "BeforeClusterDelete", "", request, `
1 v.e
2 v.d FAILS ExtensionPolicy "p": match condition "c0": the expression fails for this request: no such key: nothing
3 v.f
3 v.g`+others)
	want := []ExplainedHandler{
		{Name: "v.e", Turn: 1, Order: new(int32(-1)), TimeoutSeconds: 29.5, FailurePolicy: "Ignore", HookVersion: "v1alpha1", Policy: `ExtensionPolicy "p"`},
		{Name: "v.d", Turn: 2, Order: new(int32(7)), TimeoutSeconds: 10, FailurePolicy: "Fail", HookVersion: "v1alpha1", Policy: `ExtensionPolicy "p"`},
		{Name: "v.f", Turn: 3, TimeoutSeconds: 10, FailurePolicy: "Fail", HookVersion: "v1alpha1", Policy: `ExtensionPolicy "p"`},
		{Name: "v.g", Turn: 3, TimeoutSeconds: 10, FailurePolicy: "Fail", HookVersion: "v1alpha1", Policy: `ExtensionPolicy "p"`, ClusterAPIVersion: "v1beta1"},
	}
	x.Handlers[1].Fails = ""
	if diff := gocmp.Diff(want, x.Handlers[:4]); diff != "" || x.Cluster != "n/c" {
		t.Errorf("cluster %s; -want +got\n%s", x.Cluster, diff)
	}

	explains(t, "by name", d, "BeforeClusterDelete", "v--a", request, `
UnknownHandler: handler "v.a" is not for namespace "n": the namespaceSelector of ExtensionConfig "a" does not match
0 v.a namespaceSelector: namespaceSelector of ExtensionConfig "a" (team=blue) does not match namespace "n" with the labels team=red
`)
	explains(t, "nobody", d, "BeforeClusterDelete", "x", request, `
UnknownHandler: no handler "x": the handlers of BeforeClusterDelete are v.a, v.b, v.c, v.d, v.e, v.f, v.g
`)
	machine := &hooksv1alpha1.UpdateMachineRequest{Desired: &hooksv1alpha1.UpdateMachineRequestObjects{Machine: clusterIn("n")}}
	explains(t, "Ambiguous", d, "UpdateMachine", "u.b", machine, "1 u.b\n")
	explains(t, "unknown namespace", newDispatcher(r, fixedNamespaces{}, answers{}), "BeforeClusterDelete", "v.a", request, `
UnknownHandler: handler "v.a" is not for namespace "n": the namespaceSelector of ExtensionConfig "a" does not match
0 v.a namespaceSelector: namespaceSelector of ExtensionConfig "a" (team=blue) depends on labels of namespace "n", which are not known
`)
}

// What fails the whole call is a part of the explanation.
func TestExplainCallsThatFail(t *testing.T) {
	r := filled(t, registrationOf("a", handlerOf("v", "GeneratePatches", hook.Fail)), registrationOf("b", handlerOf("v", "GeneratePatches", hook.Fail)))
	d := newDispatcher(r, fixedNamespaces{}, answers{})
	explains(t, "two match", d, "GeneratePatches", "", templatesOf(`{}`), `
Ambiguous: GeneratePatches needs one handler, but 2 match; name one of: v.a, v.b
0 v.a failure: the call fails before any handler is called
0 v.b failure: the call fails before any handler is called
`)
	r.SetUndiscovered([]registry.Undiscovered{{Name: "new", Default: hook.Fail}})
	explains(t, "not discovered", d, "BeforeClusterCreate", "", &hooksv1alpha1.BeforeClusterCreateRequest{Cluster: clusterIn("n")}, `
NotReady: the handlers of ExtensionConfig "new" are not known yet: "hookgate get extensions" says why; fix or delete each ExtensionConfig, or set onUndiscovered: Ignore in its ExtensionPolicy
0 new undiscovered: its handlers are not known yet, and calls wait for them
`)
	for reason, tc := range map[string]struct {
		r    *registry.Registry
		req  Request
		kind hook.Kind
	}{
		"no request of the hook": {r, Request{Hook: hookOf(t, "BeforeClusterCreate"), Message: &hooksv1alpha1.BeforeClusterCreateRequest{}}, hook.InvalidRequest},
		"Discovery":              {r, Request{Hook: hookOf(t, "Discovery"), Message: &hooksv1alpha1.DiscoveryRequest{}}, hook.InvalidRequest},
		"not ready":              {registry.New(), Request{Hook: hookOf(t, "GeneratePatches"), Message: templatesOf()}, hook.NotReady},
		"a long name":            {r, Request{Hook: hookOf(t, "GeneratePatches"), Message: templatesOf(), Handler: strings.Repeat("x", 1000)}, hook.UnknownHandler},
	} {
		if _, err := newDispatcher(tc.r, fixedNamespaces{}, answers{}).Explain(t.Context(), tc.req); hook.KindOf(err) != tc.kind {
			t.Errorf("%s: got %v, want %s", reason, err, tc.kind)
		}
	}
}

// A chain shows its steps, and its steps show the chain.
func TestExplainChain(t *testing.T) {
	f := newChain(t, "GeneratePatches", patched(), patched())
	f.chain.Steps = append(f.chain.Steps, registry.ChainStep{Handler: "z.gone", Optional: true})
	f.build(t)
	f.registry.SetPolicies("e", forHandler("a", policy.Policy{ObjectSelector: selector(t, "tier=gold")}))
	builtin := templatesOf(`{}`)
	builtin.Variables = []*hooksv1alpha1.Variable{{Name: "builtin", Value: &hooksv1alpha1.JSON{Raw: []byte(`{"cluster":{"name":"c","namespace":"n"}}`)}}}
	const steps = `
  0 a.e objectSelector: objectSelector of ExtensionPolicy "p" (tier=gold) does not match the labels (none)
  1 b.e
  0 z.gone optional: no handler of this name is registered, and the step is optional
`
	explains(t, "the chain is the one handler", f.Dispatcher, "GeneratePatches", "", builtin, "1 chain"+steps+
		`0 a.e chain: it is a step of HandlerChain "chain", which is called in its place
0 b.e chain: it is a step of HandlerChain "chain", which is called in its place
`)
	explains(t, "a step by its name", f.Dispatcher, "GeneratePatches", "b.e", builtin, "1 b.e\n")
	f.chain.Steps[0].Handler = "y.gone"
	f.registry.SetChains([]registry.Chain{f.chain})
	explains(t, "a step is missing", f.Dispatcher, "GeneratePatches", "CHAIN", builtin, `
NotReady: HandlerChain "chain" cannot be called: step 1: no handler "y.gone" is registered
0 chain failure: the call fails before any handler is called
  0 y.gone missing: no handler "y.gone" is registered
  0 b.e failure: the call fails before any handler is called
  0 z.gone optional: no handler of this name is registered, and the step is optional
`)
	all := newChain(t, "ValidateTopology", &hooksv1alpha1.ValidateTopologyResponse{}, &hooksv1alpha1.ValidateTopologyResponse{})
	x := explains(t, "at the same time", all.Dispatcher, "ValidateTopology", "chain", &hooksv1alpha1.ValidateTopologyRequest{},
		"1 chain\n  1 a.e\n  1 b.e\n")
	if c := x.Handlers[0]; c.TimeoutSeconds != c.Steps[0].TimeoutSeconds+c.Steps[1].TimeoutSeconds {
		t.Errorf("the chain has %v s, want those of its steps together, as discovery announces: %v s and %v s", c.TimeoutSeconds, c.Steps[0].TimeoutSeconds, c.Steps[1].TimeoutSeconds)
	}
}

// A call shows the answer of each step, and the objects after it.
func TestExplainCall(t *testing.T) {
	f := newChain(t, "GeneratePatches", patched(patchItem("1", `{"spec":{"a":1}}`)), patched(patchItem("2", `{"spec":{"b":1}}`)), patched(patchItem("3", `{}`)))
	x, err := f.ExplainCall(t.Context(), Request{Hook: hookOf(t, "GeneratePatches"), Message: templatesOf(`{}`, `{}`)})
	if err != nil {
		t.Fatal(err)
	}
	const name = "Cluster n/c spec.x"
	bad := &ExplainedError{Kind: "BadResponse", Message: `handler "c.e": items[0] is for a uid that the request does not have`}
	if diff := gocmp.Diff(&ExplainedAnswer{Error: bad}, x.Answer); diff != "" {
		t.Errorf("the chain: -want +got\n%s", diff)
	}
	for i, want := range []string{
		`[{"uid":"1","name":"` + name + `","object":{"spec":{"a":1}}}]`, `[{"uid":"2","name":"` + name + `","object":{"spec":{"b":1}}}]`, `null`,
	} {
		a := x.Handlers[0].Steps[i].Answer
		got, _ := json.Marshal(a.Objects)
		if string(got) != want || a.Error != nil || !strings.Contains(string(a.Response), `"status":"Success"`) {
			t.Errorf("step %d: got %s of %s, want %s", i, got, a.Response, want)
		}
	}
	f.answers["c.e"] = func() proto.Message { return patched() }
	if x, _ = f.ExplainCall(t.Context(), Request{Hook: hookOf(t, "GeneratePatches"), Message: templatesOf(`{}`, `{}`)}); len(x.Answer.Objects) != 2 {
		t.Errorf("the answer of the chain changes both objects, got %+v", x.Answer)
	}

	up := newChain(t, "UpdateMachine", &hooksv1alpha1.UpdateMachineResponse{})
	_, err = up.ExplainCall(t.Context(), Request{Hook: hookOf(t, "UpdateMachine"), Message: &hooksv1alpha1.UpdateMachineRequest{}})
	if hook.KindOf(err) != hook.InvalidRequest || !strings.Contains(err.Error(), "handlers of UpdateMachine have side effects") || len(up.called) > 0 {
		t.Errorf("an acting hook: got %v, and %v were called", err, up.called)
	}
}

// An explanation is bounded, and lists what is called first.
func TestExplainIsBounded(t *testing.T) {
	r := filled(t)
	for i := range limits.ExplainedHandlers + 10 {
		reg := registrationOf(fmt.Sprintf("e%03d", i), handlerOf("v", "BeforeClusterCreate", hook.Fail))
		if i < limits.ExplainedHandlers+9 {
			reg.NamespaceSelector = selector(t, "a=b")
		}
		if err := r.Apply(reg); err != nil {
			t.Fatal(err)
		}
	}
	x, err := newDispatcher(r, fixedNamespaces{"n": {}}, answers{}).Explain(t.Context(), Request{
		Hook: hookOf(t, "BeforeClusterCreate"), Message: &hooksv1alpha1.BeforeClusterCreateRequest{Cluster: clusterIn("n")},
	})
	if err != nil || len(x.Handlers) != limits.ExplainedHandlers || x.NotListed != 10 || x.Handlers[0].Turn != 1 || x.Handlers[1].Turn != 0 {
		t.Errorf("got %d handlers and %d more (%v), the first of turn %d", len(x.Handlers), x.NotListed, err, x.Handlers[0].Turn)
	}
}

// Over HTTP, an explanation needs the rights of a call, and is no call: nothing is called unless the query says so.
func TestExplainOverREST(t *testing.T) {
	f := authentication{callers: callersManifest}.start(t).fixture
	if err := f.registry.Apply(registrationOf("a", handlerOf("v", "BeforeClusterCreate", hook.Fail), handlerOf("g", "GeneratePatches", hook.Fail))); err != nil {
		t.Fatal(err)
	}
	const patches = "/hooks.runtime.cluster.x-k8s.io/v1alpha1/generatepatches"
	for name, tc := range map[string]struct {
		reason, path, token, body string
		code                      int
		want                      string
	}{
		"Explained":    {"the extension of the fixture does not exist", ExplainPrefix + createPath, createToken, createBody, 200, `{"hook":"BeforeClusterCreate","apiVersion":"hooks.runtime.cluster.x-k8s.io/v1alpha1","cluster":"`},
		"ByName":       {"", ExplainPrefix + createPath + "/v.a", createToken, createBody, 200, `"handler":"v.a"`},
		"Called":       {"its error is in the answer", ExplainPrefix + patches + "/g.a?call=true", everyToken, `{}`, 200, `"answer":{"error":{"kind":"Unreachable"`},
		"Acts":         {"the hook acts", ExplainPrefix + createPath + "?call=true", createToken, createBody, 400, "handlers of BeforeClusterCreate have side effects"},
		"BadQuery":     {"", ExplainPrefix + createPath + "?call=perhaps", createToken, createBody, 400, `query parameter call: want true or false, got \"perhaps\"`},
		"NoToken":      {"", ExplainPrefix + createPath, "", createBody, 401, ""},
		"OtherHook":    {"the token is for another hook", ExplainPrefix + patches, createToken, `{}`, 403, ""},
		"BadBody":      {"", ExplainPrefix + createPath, createToken, `{"cluster":1}`, 400, "cluster: want a Kubernetes object"},
		"NoHook":       {"", ExplainPrefix + "/hooks.runtime.cluster.x-k8s.io/v1alpha1/beforelunch", everyToken, `{}`, 404, "no hook"},
		"NearlyPrefix": {"", "/explained" + createPath, everyToken, createBody, 404, "no hook at path"},
		"Bare":         {"", ExplainPrefix, everyToken, createBody, 404, "no hook at path"},
		"Get":          {"", ExplainPrefix + createPath, createToken, "GET", 405, "method GET is not allowed"},
	} {
		t.Run(name, func(t *testing.T) {
			method := http.MethodPost
			if tc.body == "GET" {
				method = http.MethodGet
			}
			req, err := http.NewRequestWithContext(t.Context(), method, f.rest.URL+tc.path, strings.NewReader(tc.body))
			if err != nil {
				t.Fatal(err)
			}
			if tc.token != "" {
				req.Header.Set("Authorization", "Bearer "+tc.token)
			}
			resp, err := f.rest.Client().Do(req)
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(resp.Body)
			_ = resp.Body.Close()
			if err != nil || resp.StatusCode != tc.code || !strings.Contains(string(body), tc.want) {
				t.Errorf("%s: got %d %s (%v), want %d %s", cmp.Or(tc.reason, name), resp.StatusCode, body, err, tc.code, tc.want)
			}
		})
	}
	wantCount(t, f.metrics, "hookgate_requests_total", 2, protocolExplain, "BeforeClusterCreate", "")
}
