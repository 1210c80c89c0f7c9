// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/hookgate/hookgate/api/v1alpha1"
	"github.com/hookgate/hookgate/catalog"
	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/calls/extension"
	"github.com/hookgate/hookgate/internal/calls/policy"
	"github.com/hookgate/hookgate/internal/kinds/handlerchain"
	"github.com/hookgate/hookgate/internal/serving/shared"
	"github.com/hookgate/hookgate/registry"
)

// chainFixture is a gateway with one chain, whose steps are the handlers a, b, c … of the extension e.
type chainFixture struct {
	*Dispatcher
	registry *registry.Registry
	chain    registry.Chain
	handlers []registry.Handler
	called   []string                        // in order, for hooks that call one step after the other
	requests map[string]proto.Message        // by step
	answers  map[string]func() proto.Message // by step
	mu       sync.Mutex                      // of called and requests
	fails    string                          // the step that cannot be reached
}

// newChain returns a fixture in which each step gives an answer, in order.
func newChain(t testing.TB, hookName string, answers ...proto.Message) *chainFixture {
	t.Helper()
	f := &chainFixture{
		chain:    registry.Chain{Name: "chain", Hook: hookOf(t, hookName).GroupHook()},
		requests: map[string]proto.Message{}, answers: map[string]func() proto.Message{},
	}
	for i, a := range answers {
		name := string(rune('a' + i))
		f.answers[name+".e"] = func() proto.Message { return proto.Clone(a) }
		f.handlers = append(f.handlers, handlerOf(name, hookName, hook.Fail))
		f.chain.Steps = append(f.chain.Steps, registry.ChainStep{Handler: name + ".e"})
	}
	f.chain.OneHandler = hookName == "UpdateMachine" || strings.HasPrefix(hookName, "CanUpdate") || hookName == "GenerateUpgradePlan"
	return f.build(t)
}

// build makes the gateway anew, after a change of the fixture.
func (f *chainFixture) build(t testing.TB) *chainFixture {
	t.Helper()
	f.registry = filled(t, registrationOf("e", f.handlers...))
	f.registry.SetChains([]registry.Chain{f.chain})
	f.Dispatcher = newDispatcher(f.registry, fixedNamespaces{}, callerFunc(func(_ context.Context, c extension.Call) (proto.Message, error) {
		if c.Hook.Mergeable || !slices.Contains([]string{"ValidateTopology", "DiscoverVariables"}, c.Hook.Hook) {
			f.mu.Lock()
			f.called = append(f.called, c.Handler.Name)
			f.requests[c.Handler.Name] = c.Request
			f.mu.Unlock()
		}
		if f.fails == c.Handler.Name {
			return nil, hook.Errorf(hook.Unreachable, "connection refused")
		}
		return f.answers[c.Handler.Name](), nil
	}))
	return f
}

// call calls the chain by its name, and returns its answer or the text of its error.
func (f *chainFixture) call(t testing.TB, req proto.Message) (proto.Message, string) {
	t.Helper()
	f.called = nil
	m, err := f.dispatch(t.Context(), hookOf(t, f.chain.Hook.Hook), "Chain", req)
	if err != nil {
		return nil, hook.KindOf(err).String() + ": " + err.Error()
	}
	return m, ""
}

// wants calls the chain, and requires an answer, as prototext, or an error, and that these steps were called.
func (f *chainFixture) wants(t *testing.T, reason string, req proto.Message, want, called string) {
	t.Helper()
	m, failed := f.call(t, req)
	got := failed
	if failed == "" {
		wanted := m.ProtoReflect().New().Interface()
		if err := prototext.Unmarshal([]byte(want), wanted); err == nil && proto.Equal(m, wanted) {
			got = want
		} else {
			got = prototext.MarshalOptions{}.Format(m)
		}
	}
	if got != want {
		t.Errorf("%s: got  %s\nwant %s", reason, got, want)
	}
	if calls := strings.Join(f.called, " "); calls != called {
		t.Errorf("%s: called were %q, want %q", reason, calls, called)
	}
}

func patchItem(uid, patch string) *hooksv1alpha1.GeneratePatchesResponseItem {
	return &hooksv1alpha1.GeneratePatchesResponseItem{
		Uid: uid, PatchType: hooksv1alpha1.PatchType_PATCH_TYPE_JSON_MERGE_PATCH, Patch: []byte(patch),
	}
}

func patched(items ...*hooksv1alpha1.GeneratePatchesResponseItem) *hooksv1alpha1.GeneratePatchesResponse {
	return &hooksv1alpha1.GeneratePatchesResponse{Status: success, Items: items}
}

func templatesOf(objects ...string) *hooksv1alpha1.GeneratePatchesRequest {
	r := &hooksv1alpha1.GeneratePatchesRequest{}
	for i, o := range objects {
		r.Items = append(r.Items, &hooksv1alpha1.GeneratePatchesRequestItem{
			Uid: strconv.Itoa(i + 1), Object: &hooksv1alpha1.RawExtension{Raw: []byte(o)},
			HolderReference: &hooksv1alpha1.HolderReference{Kind: "Cluster", Namespace: "n", Name: "c", FieldPath: "spec.x"},
		})
	}
	return r
}

// Each step sees the items as those before it have patched them, and the answer has the patches of all.
func TestChainOfGeneratePatches(t *testing.T) {
	f := newChain(t, "GeneratePatches",
		patched(patchItem("1", `{"spec":{"a":1}}`), patchItem("2", `{}`)), patched(), patched(patchItem("1", `{"spec":{"b":1}}`)))
	f.wants(t, "all steps", templatesOf(`{"spec":{}}`, `{"spec":{}}`),
		`status: RESPONSE_STATUS_SUCCESS items {uid: "1" patch_type: PATCH_TYPE_JSON_MERGE_PATCH patch: "{\"spec\":{\"a\":1}}"} `+
			`items {uid: "1" patch_type: PATCH_TYPE_JSON_MERGE_PATCH patch: "{\"spec\":{\"b\":1}}"}`, "a.e b.e c.e")
	for step, want := range map[string]string{"a.e": `{"spec":{}}`, "b.e": `{"spec":{"a":1}}`, "c.e": `{"spec":{"a":1}}`} {
		if got := string(f.requests[step].(*hooksv1alpha1.GeneratePatchesRequest).GetItems()[0].GetObject().GetRaw()); got != want {
			t.Errorf("%s saw %s, want %s", step, got, want)
		}
	}
	f.answers["b.e"] = func() proto.Message { return patched(patchItem("3", `{}`)) }
	f.wants(t, "unknown uid", templatesOf(`{}`, `{}`),
		`BadResponse: handler "b.e": items[0] is for a uid that the request does not have`, "a.e b.e")
	f.answers["b.e"] = func() proto.Message { return patched(patchItem("1", `{`)) }
	f.wants(t, "a patch that does not apply", templatesOf(`{}`, `{}`),
		`BadResponse: handler "b.e": patch of item Cluster n/c spec.x: JSON ends early at byte 1`, "a.e b.e")
	f.answers["b.e"] = func() proto.Message {
		return &hooksv1alpha1.GeneratePatchesResponse{Status: failure, Message: "no image"}
	}
	f.wants(t, "a Failure", templatesOf(`{}`, `{}`),
		`status: RESPONSE_STATUS_FAILURE message: "handler \"b.e\": no image"`, "a.e b.e")
}

// A step removes what the next one needs: the next one's patch fails, with its name and the path.
func TestChainStepThatRemovesWhatTheNextNeeds(t *testing.T) {
	item := patchItem("1", `[{"op":"replace","path":"/spec/a","value":2}]`)
	item.PatchType = hooksv1alpha1.PatchType_PATCH_TYPE_JSON_PATCH
	newChain(t, "GeneratePatches", patched(patchItem("1", `{"spec":{"a":null}}`)), patched(item)).wants(t, "removed", templatesOf(`{"spec":{"a":1}}`),
		`BadResponse: handler "b.e": patch of item Cluster n/c spec.x: operation 0 at "/spec/a": there is no such place`, "a.e b.e")
}

// The settings of a step stand over those of its ExtensionConfig, and under those of the request.
func TestChainSettings(t *testing.T) {
	f := newChain(t, "GeneratePatches", patched())
	f.chain.Steps[0].Settings = map[string]string{"step": "s", "both": "s", "all": "s"}
	f.build(t)
	r := registrationOf("e", f.handlers...)
	r.Settings = map[string]string{"config": "c", "both": "c", "all": "c"}
	if err := f.registry.Apply(r); err != nil {
		t.Fatal(err)
	}
	req := templatesOf()
	req.Settings = map[string]string{"all": "r"}
	f.call(t, req)
	got := f.requests["a.e"].(*hooksv1alpha1.GeneratePatchesRequest).GetSettings()
	if want := map[string]string{"config": "c", "step": "s", "both": "s", "all": "r"}; !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// A step is passed over if its selectors do not match, or if it is optional and not registered; a chain with a step
// that is missing is not called at all.
func TestChainSteps(t *testing.T) {
	f := newChain(t, "GeneratePatches", patched(), patched())
	f.chain.Steps = append(f.chain.Steps, registry.ChainStep{Handler: "x.e", Optional: true})
	f.build(t)
	f.wants(t, "optional", templatesOf(), "status: RESPONSE_STATUS_SUCCESS", "a.e b.e")
	none, err := labels.Parse("never=matches")
	if err != nil {
		t.Fatal(err)
	}
	f.registry.SetPolicies("e", registry.Policies{Handlers: map[string]*policy.Policy{"a": {Name: "p", ObjectSelector: none}}})
	f.wants(t, "objectSelector", templatesOf(`{"kind":"K"}`), "status: RESPONSE_STATUS_SUCCESS", "b.e")
	f.chain.Steps[2].Optional = false
	f.build(t)
	f.wants(t, "missing", templatesOf(), `NotReady: HandlerChain "chain" cannot be called: step 3: no handler "x.e" is registered`, "")
	if _, err := f.dispatch(t.Context(), hookOf(t, "GeneratePatches"), "", templatesOf()); hook.KindOf(err) != hook.NotReady {
		t.Errorf("without a name: got %v", err)
	}
	if _, err := f.dispatch(t.Context(), hookOf(t, "ValidateTopology"), "chain", &hooksv1alpha1.ValidateTopologyRequest{}); err == nil ||
		err.Error() != `HandlerChain "chain" serves the hook GeneratePatches, not ValidateTopology` {
		t.Errorf("another hook: got %v", err)
	}
}

// All steps have one deadline: one that hangs fails by its name when the time of the call is up.
func TestChainDeadline(t *testing.T) {
	f := newChain(t, "GeneratePatches", patched(), patched())
	d := NewDispatcher(Config{
		Catalog: allHooks, Versions: allVersions, Registry: f.registry, Namespaces: fixedNamespaces{},
		Parts: shared.Parts{Codec: mandated, Transport: func(ctx context.Context, c extension.Call) (extension.Result, error) {
			if c.Handler.Name == "b.e" {
				<-ctx.Done()
				return extension.Result{}, hook.Errorf(hook.Timeout, "late")
			}
			return extension.Result{Response: patched()}, nil
		}},
	})
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := d.dispatch(ctx, hookOf(t, "GeneratePatches"), "chain", templatesOf()); err == nil ||
		err.Error() != `handler "b.e": no answer before the caller's deadline` {
		t.Errorf("got %v", err)
	}
}

func canUpdate(machine string) *hooksv1alpha1.CanUpdateMachineResponse {
	r := &hooksv1alpha1.CanUpdateMachineResponse{Status: success}
	if machine != "" {
		r.MachinePatch = &hooksv1alpha1.Patch{PatchType: hooksv1alpha1.PatchType_PATCH_TYPE_JSON_MERGE_PATCH, Patch: []byte(machine)}
	}
	return r
}

func updateRequest(current, desired string) *hooksv1alpha1.CanUpdateMachineRequest {
	objects := func(spec string) *hooksv1alpha1.CanUpdateMachineRequestObjects {
		empty := &hooksv1alpha1.RawExtension{Raw: []byte(`{}`)}
		return &hooksv1alpha1.CanUpdateMachineRequestObjects{
			Machine:               &hooksv1alpha1.RawExtension{Raw: []byte(`{"metadata":{"namespace":"n"},"spec":` + spec + `}`)},
			InfrastructureMachine: empty, BootstrapConfig: empty,
		}
	}
	return &hooksv1alpha1.CanUpdateMachineRequest{Current: objects(current), Desired: objects(desired)}
}

// Steps are asked until nothing that counts is left. What is left is replaced by Cluster API, or blocked.
func TestChainOfCanUpdateMachine(t *testing.T) {
	const nothing = "status: RESPONSE_STATUS_SUCCESS"
	wholeSpec := func(spec string) string {
		return `status: RESPONSE_STATUS_SUCCESS machine_patch {patch_type: PATCH_TYPE_JSON_PATCH patch: ` +
			fmt.Sprintf("%q", `[{"op":"add","path":"/spec","value":`+spec+`}]`) + "}"
	}
	f := newChain(t, "CanUpdateMachine", canUpdate(`{"spec":{"a":1}}`), canUpdate(`{"spec":{"b":1}}`), canUpdate(`{"spec":{"c":1}}`))
	f.wants(t, "two cover all", updateRequest(`{}`, `{"a":1,"b":1}`), wholeSpec(`{"a":1,"b":1}`), "a.e b.e")
	f.wants(t, "nothing to do", updateRequest(`{"providerID":"x"}`, `{}`), nothing, "")
	f.wants(t, "not covered", updateRequest(`{}`, `{"a":1,"x":1}`), wholeSpec(`{"a":1,"b":1,"c":1}`), "a.e b.e c.e")
	f.chain.Block = true
	f.build(t)
	f.wants(t, "blocked", updateRequest(`{}`, `{"a":1,"y":{"z":1}}`), `status: RESPONSE_STATUS_FAILURE message: "onPartialCoverage of HandlerChain `+
		`\"chain\" is Block, and no step covers /machine/spec/b, /machine/spec/c, /machine/spec/y/z"`, "a.e b.e c.e")
	f.wants(t, "covered", updateRequest(`{}`, `{"a":1}`), wholeSpec(`{"a":1}`), "a.e")
	f.chain.Steps = nil
	f.build(t)
	f.wants(t, "no step", updateRequest(`{}`, `{"a":1}`),
		`status: RESPONSE_STATUS_FAILURE message: "onPartialCoverage of HandlerChain \"chain\" is Block, and no step covers /machine/spec/a"`, "")
	f.chain = newChain(t, "CanUpdateMachine", canUpdate("")).chain
	f.chain.Steps[0].Allow = []string{"/machine/spec/b"}
	f.build(t)
	f.wants(t, "not allowed", updateRequest(`{}`, `{"a":1}`),
		`BadResponse: handler "a.e": patch of machine: it changes /machine/spec/a, which the chain does not allow the step to change`, "a.e")
}

// UpdateMachine calls the steps from the first each time, until one is not done; without a step, nothing is done.
func TestChainOfUpdateMachine(t *testing.T) {
	done, wait := &hooksv1alpha1.UpdateMachineResponse{Status: success}, &hooksv1alpha1.UpdateMachineResponse{Status: success, RetryAfterSeconds: 7, Message: "busy"}
	req := &hooksv1alpha1.UpdateMachineRequest{Desired: &hooksv1alpha1.UpdateMachineRequestObjects{Machine: &hooksv1alpha1.RawExtension{Raw: []byte(`{"metadata":{"namespace":"n"}}`)}}}
	f := newChain(t, "UpdateMachine", done, wait, done)
	f.wants(t, "one is not done", req, `status: RESPONSE_STATUS_SUCCESS retry_after_seconds: 7 message: "busy"`, "a.e b.e")
	f.answers["b.e"] = f.answers["a.e"]
	f.wants(t, "all are done", req, "status: RESPONSE_STATUS_SUCCESS", "a.e b.e c.e")
	f.chain.Steps = nil
	f.build(t)
	f.wants(t, "no step", req, `UnknownHandler: no step of HandlerChain "chain" is for this request`, "")
}

func TestChainOfGenerateUpgradePlan(t *testing.T) {
	none := &hooksv1alpha1.GenerateUpgradePlanResponse{Status: success}
	plan := &hooksv1alpha1.GenerateUpgradePlanResponse{Status: success, ControlPlaneUpgrades: []*hooksv1alpha1.UpgradeStep{{Version: "v2"}}}
	req := &hooksv1alpha1.GenerateUpgradePlanRequest{Cluster: clusterIn("n")}
	f := newChain(t, "GenerateUpgradePlan", none, plan, plan)
	f.wants(t, "the second", req, `status: RESPONSE_STATUS_SUCCESS control_plane_upgrades {version: "v2"}`, "a.e b.e")
	f.answers["b.e"], f.answers["c.e"] = f.answers["a.e"], f.answers["a.e"]
	f.wants(t, "none", req, "status: RESPONSE_STATUS_SUCCESS", "a.e b.e c.e")
}

func TestChainOfValidateTopology(t *testing.T) {
	bad := func(text string) proto.Message {
		return &hooksv1alpha1.ValidateTopologyResponse{Status: failure, Message: text}
	}
	newChain(t, "ValidateTopology", bad("one"), &hooksv1alpha1.ValidateTopologyResponse{Status: success}, bad("three")).wants(t, "every failure",
		&hooksv1alpha1.ValidateTopologyRequest{}, `status: RESPONSE_STATUS_FAILURE message: "handler \"a.e\": one; handler \"c.e\": three"`, "")
}

func TestChainOfDiscoverVariables(t *testing.T) {
	variables := func(names ...string) *hooksv1alpha1.DiscoverVariablesResponse {
		r := &hooksv1alpha1.DiscoverVariablesResponse{Status: success}
		for _, n := range names {
			name, schema, _ := strings.Cut(n, "=")
			r.Variables = append(r.Variables, &hooksv1alpha1.ClusterClassVariable{
				Name: name, Schema: &hooksv1alpha1.VariableSchema{OpenApiV3Schema: &hooksv1alpha1.JSON{Raw: []byte(schema)}},
			})
		}
		return r
	}
	f := newChain(t, "DiscoverVariables", variables(`x={"type":"string"}`), variables(`y={"type":"string"}`, `x={ "type":"string"}`))
	m, failed := f.call(t, &hooksv1alpha1.DiscoverVariablesRequest{})
	if want := variables(`x={"type":"string"}`, `y={"type":"string"}`); failed != "" || !proto.Equal(m, want) {
		t.Errorf("got %v %s, want %v", m, failed, want)
	}
	f.answers["b.e"] = func() proto.Message { return variables(`x={"type":"string","maxLength":3}`) }
	f.wants(t, "different", &hooksv1alpha1.DiscoverVariablesRequest{},
		`BadResponse: handlers "a.e" and "b.e" define variable "x" differently: /schema/openAPIV3Schema/maxLength is not the same`, "")
}

// Where all handlers of a hook are called, a chain stands for its steps, which it calls in their order.
func TestChainStandsForItsSteps(t *testing.T) {
	created := &hooksv1alpha1.BeforeClusterCreateResponse{Status: success}
	f := newChain(t, "BeforeClusterCreate", created, created, created)
	slices.Reverse(f.chain.Steps)
	f.chain.Steps = f.chain.Steps[:2]
	f.build(t)
	req := &hooksv1alpha1.BeforeClusterCreateRequest{Cluster: clusterIn("n")}
	f.wants(t, "by name", req, "status: RESPONSE_STATUS_SUCCESS", "c.e b.e")
	f.called = nil
	f.registry.SetPolicies("e", registry.Policies{Handlers: map[string]*policy.Policy{"a": {Order: new(int32(1))}}})
	if _, err := f.dispatch(t.Context(), hookOf(t, "BeforeClusterCreate"), "", req); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(f.called, " "); got != "a.e c.e b.e" {
		t.Errorf("called were %s", got)
	}
	f = newChain(t, "CanUpdateMachine", canUpdate(""), canUpdate(""))
	if _, err := f.dispatch(t.Context(), hookOf(t, "CanUpdateMachine"), "", updateRequest(`{}`, `{"a":1}`)); err != nil {
		t.Errorf("two handlers that one chain stands for: %v", err)
	}
	other := f.chain
	other.Name, other.Steps = "other", other.Steps[:1]
	f.registry.SetChains([]registry.Chain{f.chain, other})
	if _, err := f.dispatch(t.Context(), hookOf(t, "CanUpdateMachine"), "", updateRequest(`{}`, `{"a":1}`)); err == nil ||
		err.Error() != "CanUpdateMachine needs one handler, but 2 match; name one of: chain, other" {
		t.Errorf("two chains: got %v", err)
	}
}

// With onHold: Stop, the steps after one that holds wait until it lets the Cluster go on, or its hold is lifted.
func TestChainStopsAtAHold(t *testing.T) {
	upgrade := func(state hooksv1alpha1.ResponseStatus, message string, retry int32) *hooksv1alpha1.BeforeClusterUpgradeResponse {
		return &hooksv1alpha1.BeforeClusterUpgradeResponse{Status: state, Message: message, RetryAfterSeconds: retry}
	}
	waits, fine := upgrade(success, "waits since 22:22:00", 60), upgrade(success, "", 0)
	passage := policy.Passage{Handler: "a", Hook: "BeforeClusterUpgrade", Namespace: "n", Cluster: "c", UID: "u", Version: "v1.34.0"}
	const backs = `, backs up" retry_after_seconds: 5`
	for name, tc := range map[string]struct {
		reason string
		stops  string // the steps with onHold: Stop
		a, b   proto.Message
		policy policy.Policy // of a
		want   string
		called string
	}{
		"Continue":     {"it is the default", "", waits, nil, policy.Policy{}, `message: "waits since 22:22:00` + backs, "a.e b.e c.e"},
		"Stop":         {"the others wait", "a", waits, nil, policy.Policy{}, `message: "waits since 22:22:00, these handlers are not called while handler \"a.e\" holds: \"b.e\", \"c.e\"" retry_after_seconds: 60`, "a.e"},
		"second":       {"the first has let go", "ab", fine, waits, policy.Policy{}, `message: "waits since 22:22:00, these handlers are not called while handler \"b.e\" holds: \"c.e\"" retry_after_seconds: 60`, "a.e b.e"},
		"both":         {"the least time is of those that were called", "b", upgrade(success, "soon", 90), waits, policy.Policy{}, `message: "soon, waits since 22:22:00, these handlers are not called while handler \"b.e\" holds: \"c.e\"" retry_after_seconds: 60`, "a.e b.e"},
		"no hold":      {"all are called", "abc", fine, nil, policy.Policy{}, `message: "backs up" retry_after_seconds: 5`, "a.e b.e c.e"},
		"no message":   {"the handler is named", "a", upgrade(success, "", 60), nil, policy.Policy{}, `message: "handler \"a.e\" holds, and does not say why, these handlers are not called while handler \"a.e\" holds: \"b.e\", \"c.e\"" retry_after_seconds: 60`, "a.e"},
		"Failure":      {"it ends the chain without onHold", "a", upgrade(failure, "no", 60), nil, policy.Policy{}, "", "a.e"},
		"lifted":       {"the hold is none", "a", waits, nil, policy.Policy{Name: "on-call", Lifted: &policy.LiftedHolds{By: "on-call", Of: []policy.Passage{passage}}}, `message: "hold lifted by liftedHolds of ExtensionPolicy \"on-call\": waits since 22:22:00` + backs, "a.e b.e c.e"},
		"steady":       {"the text does not change from call to call", "a", waits, nil, policy.Policy{Messages: policy.Steady}, `message: "waits since <time>, these handlers are not called while handler \"a.e\" holds: \"b.e\", \"c.e\"" retry_after_seconds: 60`, "a.e"},
		"not selected": {"a step that is not for the Cluster does not hold it", "a", waits, nil, policy.Policy{ObjectSelector: selector(t, "x=y")}, `message: "backs up" retry_after_seconds: 5`, "b.e c.e"},
		"Ignore":       {"a failure that is ignored is no hold", "a", nil, nil, policy.Policy{FailurePolicy: hook.Ignore}, `message: "ignored: handler \"a.e\": Unreachable` + backs, "a.e b.e c.e"},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.b == nil {
				tc.b = fine
			}
			f := newChain(t, "BeforeClusterUpgrade", fine, tc.b, upgrade(success, "backs up", 5))
			for i := range f.chain.Steps {
				if strings.Contains(tc.stops, f.chain.Steps[i].Handler[:1]) {
					f.chain.Steps[i].OnHold = registry.StopOnHold
				}
			}
			f.build(t)
			if f.answers["a.e"] = func() proto.Message { return proto.Clone(tc.a) }; tc.a == nil {
				f.fails = "a.e"
			}
			f.registry.SetPolicies("e", forHandler("a", tc.policy))
			want := "status: RESPONSE_STATUS_SUCCESS " + tc.want
			if tc.want == "" {
				want = `status: RESPONSE_STATUS_FAILURE message: "handler \"a.e\": no"`
			}
			cluster := &hooksv1alpha1.RawExtension{Raw: []byte(`{"metadata":{"namespace":"n","name":"c","uid":"u"}}`)}
			req := &hooksv1alpha1.BeforeClusterUpgradeRequest{Cluster: cluster, ToKubernetesVersion: "v1.34.0"}
			f.wants(t, tc.reason, req, want, tc.called)
		})
	}
}

// The schema refuses onHold for the hooks that the rules refuse it for: those whose steps cannot hold.
func TestHooksWithoutHolds(t *testing.T) {
	var hooks []string
	for _, h := range allHooks.Hubs() {
		c := &v1alpha1.HandlerChain{}
		c.Name, c.Spec.Hook, c.Spec.Steps = "c", h.Hook, []v1alpha1.HandlerChainStep{{Handler: "a.x", OnHold: v1alpha1.OnHoldStop}}
		if _, errs := handlerchain.Compile(c, allHooks); h.Chainable() && len(errs) > 0 {
			hooks = append(hooks, "'"+h.Hook+"'")
		}
	}
	slices.Sort(hooks)
	crd, err := os.ReadFile("../deploy/crd/hookgate.dev_handlerchains.yaml")
	if err != nil {
		t.Fatal(err)
	}
	rule := "!(self.hook in [" + strings.Join(hooks, ", ") + "]) || !self.steps.exists(s, has(s.onHold))"
	if text := strings.ReplaceAll(strings.Join(strings.Fields(string(crd)), " "), "''", "'"); !strings.Contains(text, rule) {
		t.Errorf("the schema lacks the rule %s", rule)
	}
}

// A chain that stops keeps no other chain of the hook from being called.
func TestChainStopsAlone(t *testing.T) {
	waits := &hooksv1alpha1.BeforeClusterDeleteResponse{Status: success, Message: "waits", RetryAfterSeconds: 5}
	f := newChain(t, "BeforeClusterDelete", waits, waits, waits)
	f.chain.Steps[0].OnHold = registry.StopOnHold
	other := f.chain
	other.Name, other.Steps = "other", f.chain.Steps[2:]
	f.chain.Steps = f.chain.Steps[:2]
	f.build(t)
	f.registry.SetChains([]registry.Chain{f.chain, other})
	m, err := f.dispatch(t.Context(), hookOf(t, "BeforeClusterDelete"), "", &hooksv1alpha1.BeforeClusterDeleteRequest{Cluster: clusterIn("n")})
	const want = `waits, these handlers are not called while handler "a.e" holds: "b.e", waits`
	if got := catalog.MessageOf(m); err != nil || got != want || !slices.Equal(slices.Sorted(slices.Values(f.called)), []string{"a.e", "c.e"}) {
		t.Errorf("%v were called: got %q, %v; want %q", f.called, got, err, want)
	}
	x, err := f.Explain(t.Context(), Request{Hook: hookOf(t, "BeforeClusterDelete"), Message: &hooksv1alpha1.BeforeClusterDeleteRequest{Cluster: clusterIn("n")}})
	if err != nil || x.Handlers[0].Steps[0].OnHold != "Stop" || x.Handlers[0].Steps[1].OnHold != "" {
		t.Errorf("explained as %+v, %v", x, err)
	}
}

// Discovery offers a chain under its name; in place of its steps, if Cluster API takes one handler of the hook in all,
// even while the chain cannot be called.
func TestDiscoveryOfChains(t *testing.T) {
	for hookName, want := range map[string]string{
		"GeneratePatches": "a--e 11s, b--e 11s, chain 21s", "CanUpdateMachine": "chain 21s", "BeforeClusterCreate": "",
	} {
		f := newChain(t, hookName, nil, nil)
		for _, missing := range []string{"", "x.e"} {
			if missing != "" {
				f.chain.Steps = append(f.chain.Steps, registry.ChainStep{Handler: missing})
				f.build(t)
				want = strings.Replace(want, "chain 21s", "chain 30s", 1)
			}
			var got []string
			for _, h := range f.discover(t).GetHandlers() {
				if h.GetRequestHook().GetHook() == hookName && !strings.EqualFold(h.GetName(), hookName) {
					got = append(got, fmt.Sprintf("%s %ds", h.GetName(), h.GetTimeoutSeconds()))
				}
			}
			if strings.Join(got, ", ") != want {
				t.Errorf("%s, %q missing: got %q, want %q", hookName, missing, got, want)
			}
		}
	}
}

// BenchmarkChain is a chain of five handlers that each patch all of 40 templates of 6 KB, beside five calls to such a
// handler.
func BenchmarkChain(b *testing.B) {
	objects := make([]string, 40)
	var items []*hooksv1alpha1.GeneratePatchesResponseItem
	for i := range objects {
		var members []string
		for m := range 60 {
			members = append(members, fmt.Sprintf(`"member%d":{"name":"n%d","values":["%s",%d]}`, m, m, strings.Repeat("x", 50), m))
		}
		objects[i] = `{"apiVersion":"v1","kind":"K","metadata":{"name":"n"},"spec":{` + strings.Join(members, ",") + `}}`
		items = append(items, patchItem(strconv.Itoa(i+1), `{"spec":{"added":{"x":1}}}`))
	}
	steps := make([]proto.Message, 5)
	for i := range steps {
		steps[i] = patched(items...)
	}
	f := newChain(b, "GeneratePatches", steps...)
	req := templatesOf(objects...)
	encode := func(m proto.Message) {
		if _, err := mandated.Encode(m); err != nil {
			b.Fatal(err)
		}
	}
	for _, handler := range []string{"chain", "a.e"} {
		b.Run(handler, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				n := 1
				if handler != "chain" {
					n = 5
				}
				for range n {
					m, err := f.dispatch(b.Context(), hookOf(b, "GeneratePatches"), handler, req)
					if err != nil {
						b.Fatal(err)
					}
					encode(m)
				}
			}
		})
	}
}

// Who misspells the name of a chain is told it.
func TestUnknownHandlersAreToldTheChains(t *testing.T) {
	f := newChain(t, "GeneratePatches", patched())
	_, err := f.dispatch(t.Context(), hookOf(t, "GeneratePatches"), "chian", &hooksv1alpha1.GeneratePatchesRequest{})
	if want := `no handler "chian": the handlers of GeneratePatches are chain, a--e`; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
