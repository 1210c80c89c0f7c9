// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"

	"github.com/hookgate/hookgate/catalog"
	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/alloctest"
	"github.com/hookgate/hookgate/internal/calls/extension"
	"github.com/hookgate/hookgate/internal/network/budget"
	"github.com/hookgate/hookgate/registry"
)

// assigned is an Assignment by the names of Clusters. It keeps the comparisons that it is offered.
type assigned struct {
	candidates []string
	unreadable bool
	compared   []registry.Comparison
	asked      []func(context.Context) registry.Compared
	failed     int
	stopped    []string // Clusters of which calls have failed
}

func (a *assigned) Candidate(_ context.Context, _, cluster string) (bool, error) {
	if a.unreadable && cluster != "" {
		return false, hook.Errorf(hook.NotReady, "not read yet")
	}
	return slices.Contains(a.candidates, cluster), nil
}

func (a *assigned) Look(ctx context.Context, namespace, cluster string) (bool, error) {
	return a.Candidate(ctx, namespace, cluster)
}

func (a *assigned) Compare(c registry.Comparison) {
	a.asked, c.Ask, c.Keep = append(a.asked, c.Ask("")), nil, nil
	a.compared = append(a.compared, c)
}

func (a *assigned) Failed(namespace, cluster string) {
	a.stopped = append(a.stopped, namespace+"/"+cluster)
}

func (a *assigned) Answered(failed bool) {
	if failed {
		a.failed++
	}
}

// rolledOut returns a dispatcher with the rollout acme of v6 and v7, which answer with their names.
func rolledOut(t *testing.T, a *assigned, regs ...registry.Registration) *Dispatcher {
	t.Helper()
	r := filled(t, regs...)
	r.SetRollouts([]registry.Rollout{{Name: "acme", Stable: "v6", Candidate: "v7", Assignment: a}})
	return newDispatcher(r, fixedNamespaces{}, callerFunc(func(_ context.Context, c extension.Call) (proto.Message, error) {
		by := c.Handler.Registration.Name
		if strings.HasPrefix(c.Handler.Handler.Name, "down") && by == "v7" {
			return nil, hook.Errorf(hook.Unreachable, "refused")
		}
		switch request := c.Request.(type) {
		case *hooksv1alpha1.GeneratePatchesRequest:
			answer := &hooksv1alpha1.GeneratePatchesResponse{Status: success}
			for _, item := range request.GetItems() {
				patch := fmt.Sprintf(`[{"op":"add","path":"/spec/template/spec/version","value":%q}]`, by)
				answer.Items = append(answer.Items, &hooksv1alpha1.GeneratePatchesResponseItem{
					Uid: item.GetUid(), Patch: []byte(patch), PatchType: hooksv1alpha1.PatchType_PATCH_TYPE_JSON_PATCH,
				})
			}
			return answer, nil
		case *hooksv1alpha1.DiscoverVariablesRequest:
			return &hooksv1alpha1.DiscoverVariablesResponse{Status: success, Message: by}, nil
		}
		return &hooksv1alpha1.BeforeClusterCreateResponse{Status: success, Message: by}, nil
	}))
}

// members returns the registrations of v6 and v7 with the same handlers, and one of another extension.
func members(handlers ...registry.Handler) []registry.Registration {
	return []registry.Registration{
		registrationOf("v6", handlers...), registrationOf("v7", handlers...),
		registrationOf("other", handlerOf("create", "BeforeClusterCreate", hook.Fail)),
	}
}

// templateOf returns a GeneratePatches request about the template of a MachineDeployment of a Cluster.
func templateOf(cluster string) *hooksv1alpha1.GeneratePatchesRequest {
	builtin := fmt.Sprintf(`{"cluster":{"namespace":"ns","name":%q},"machineDeployment":{"replicas":3}}`, cluster)
	return &hooksv1alpha1.GeneratePatchesRequest{
		Variables: []*hooksv1alpha1.Variable{{Name: "builtin", Value: &hooksv1alpha1.JSON{Raw: []byte(builtin)}}},
		Items: []*hooksv1alpha1.GeneratePatchesRequestItem{{
			Uid:             "1",
			Object:          &hooksv1alpha1.RawExtension{Raw: []byte(`{"kind":"T","spec":{"template":{"spec":{}}}}`)},
			HolderReference: &hooksv1alpha1.HolderReference{Kind: "MachineDeployment", Namespace: "ns", Name: "md-0", FieldPath: "spec.template"},
			Variables:       []*hooksv1alpha1.Variable{{Name: "builtin", Value: &hooksv1alpha1.JSON{Raw: []byte(builtin)}}},
		}},
	}
}

// A handler of the candidate whose name the stable member has for another hook cannot be called: calls for it fail, and
// are not answered without it.
func TestMembersHaveOneNameForTwoHooks(t *testing.T) {
	d := rolledOut(t, &assigned{candidates: []string{"moved"}},
		registrationOf("v6", handlerOf("gate", "BeforeClusterUpgrade", hook.Fail)),
		registrationOf("v7", handlerOf("gate", "BeforeClusterCreate", hook.Fail)))
	for cluster, want := range map[string]string{"stays": "", "moved": `handler "gate.v7" cannot be called: in ` +
		`ExtensionRollout "acme", ExtensionConfig "v6" also has a handler named "gate", but for the hook BeforeClusterUpgrade; rename one of the two handlers`} {
		object := &hooksv1alpha1.RawExtension{Raw: fmt.Appendf(nil, `{"metadata":{"name":%q,"namespace":"ns"}}`, cluster)}
		_, err := d.dispatch(t.Context(), hookOf(t, "BeforeClusterCreate"), "",
			&hooksv1alpha1.BeforeClusterCreateRequest{Cluster: object})
		got := ""
		if err != nil {
			got = err.Error()
		}
		if got != want || err != nil && hook.KindOf(err) != hook.NotReady {
			t.Errorf("Cluster %s: got %q of kind %s, want %q", cluster, got, hook.KindOf(err), want)
		}
	}
}

// Callers see one extension, and one of its members answers.
func TestRolloutStandsForItsMembers(t *testing.T) {
	a := &assigned{candidates: []string{"moved"}}
	d := rolledOut(t, a, members(handlerOf("patch", "GeneratePatches", hook.Fail),
		handlerOf("create", "BeforeClusterCreate", hook.Fail))...)
	var offered []string
	for _, h := range d.discover(t).GetHandlers() {
		if h.GetRequestHook().GetHook() == "GeneratePatches" {
			offered = append(offered, h.GetName())
		}
	}
	if want := []string{"patch--acme"}; !gocmp.Equal(offered, want) {
		t.Errorf("offered: %q, want %q", offered, want)
	}
	for cluster, want := range map[string]string{"stays": "v6", "moved": "v7"} {
		for _, name := range []string{"patch.acme", "patch--acme", ""} {
			m, err := d.dispatch(t.Context(), hookOf(t, "GeneratePatches"), name, templateOf(cluster))
			patches, _ := m.(*hooksv1alpha1.GeneratePatchesResponse)
			if err != nil || !strings.Contains(string(patches.GetItems()[0].GetPatch()), want) {
				t.Errorf("handler %q, Cluster %s: got %v, %v, want %s", name, cluster, m, err, want)
			}
		}
		object := &hooksv1alpha1.RawExtension{Raw: fmt.Appendf(nil, `{"metadata":{"name":%q,"namespace":"ns"}}`, cluster)}
		m, err := d.dispatch(t.Context(), hookOf(t, "BeforeClusterCreate"), "",
			&hooksv1alpha1.BeforeClusterCreateRequest{Cluster: object})
		if got := m.(*hooksv1alpha1.BeforeClusterCreateResponse).GetMessage(); err != nil || got != want+", other" {
			t.Errorf("all handlers, Cluster %s: got %q, %v", cluster, got, err)
		}
	}
	for _, name := range []string{"patch.v6", "patch--v7"} {
		_, err := d.dispatch(t.Context(), hookOf(t, "GeneratePatches"), name, templateOf("moved"))
		if hook.KindOf(err) != hook.UnknownHandler {
			t.Errorf("member %q: %v", name, err)
		}
	}
	m, err := d.dispatch(t.Context(), hookOf(t, "DiscoverVariables"), "", &hooksv1alpha1.DiscoverVariablesRequest{})
	if hook.KindOf(err) != hook.UnknownHandler {
		t.Errorf("a hook that no member has: %v, %v", m, err)
	}
}

// Answers to calls that only ask are compared, by what they do to objects; others are not.
func TestRolloutCompares(t *testing.T) {
	a := &assigned{candidates: []string{"moved"}}
	down := handlerOf("down", "GeneratePatches", hook.Ignore)
	d := rolledOut(t, a, members(handlerOf("patch", "GeneratePatches", hook.Fail), down,
		handlerOf("create", "BeforeClusterCreate", hook.Fail))...)
	request := templateOf("c1")
	body, err := mandated.Append(nil, request)
	if err != nil {
		t.Fatal(err)
	}
	send := func(handler string, r Request) {
		t.Helper()
		r.Hook, r.Handler = hookOf(t, "GeneratePatches"), handler
		if _, err := d.Dispatch(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	send("patch.acme", Request{Message: request})
	send("patch.acme", Request{Message: request, Body: body})
	send("down.acme", Request{Message: request})
	clear(body) // which belongs to the call
	send("patch.acme", Request{Message: templateOf("moved")})
	want := registry.Compared{Differences: []registry.Difference{{
		Object: "MachineDeployment ns/md-0 spec.template", Path: "/spec/template/spec/version", Stable: `"v6"`, Candidate: `"v7"`,
		Machines: "replaces 3 Machines of MachineDeployment md-0",
	}}}
	if len(a.asked) != 3 || a.compared[0].Namespace != "ns" || a.compared[0].Cluster != "c1" || a.compared[0].Handler != "patch" {
		t.Fatalf("comparisons: %+v", a.compared)
	}
	for i, of := range a.asked[:2] {
		got := of(t.Context())
		want.Question, want.Content = cmp.Or(want.Question, got.Question), cmp.Or(want.Content, got.Content)
		want.Reconcile = cmp.Or(want.Reconcile, got.Reconcile)
		if diff := gocmp.Diff(want, got); diff != "" || !strings.HasPrefix(got.Question, "GeneratePatches/") {
			t.Errorf("comparison %d (-want +got):\n%s", i, diff)
		}
	}
	if got := a.asked[2](t.Context()); hook.KindOf(got.Err) != hook.Unreachable {
		t.Errorf("an ignored failure is no answer: %+v", got)
	}

	d = rolledOut(t, a, registrationOf("v6", handlerOf("patch", "GeneratePatches", hook.Fail)), registrationOf("v7", down))
	a.asked = nil
	send("patch.acme", Request{Message: request})
	if got := a.asked[0](t.Context()); len(got.Differences) != 1 || got.Differences[0].Candidate != "v7 has no handler of this name" {
		t.Errorf("a handler that the candidate lacks: %+v", got)
	}

	d = rolledOut(t, a, registrationOf("v6", handlerOf("patch", "GeneratePatches", hook.Fail)))
	a.asked = nil
	send("patch.acme", Request{Message: request})
	if got := a.asked[0](t.Context()); !got.Dropped || len(got.Differences) > 0 {
		t.Errorf("a candidate that is not discovered: %+v", got)
	}
}

// A candidate that fails does so for the Clusters that have moved, and for no others.
func TestRolloutFailsForThoseThatMoved(t *testing.T) {
	a := &assigned{candidates: []string{"moved"}}
	d := rolledOut(t, a, members(handlerOf("down", "GeneratePatches", hook.Fail))...)
	for cluster, want := range map[string]hook.Kind{"stays": 0, "moved": hook.Unreachable} {
		_, err := d.dispatch(t.Context(), hookOf(t, "GeneratePatches"), "down.acme", templateOf(cluster))
		if want == 0 && err != nil || want != 0 && hook.KindOf(err) != want {
			t.Errorf("%s: %v", cluster, err)
		}
	}
	if a.failed != 1 {
		t.Errorf("%d failed calls were counted, want 1", a.failed)
	}
	a.unreadable = true
	_, err := d.dispatch(t.Context(), hookOf(t, "GeneratePatches"), "down.acme", templateOf("stays"))
	if hook.KindOf(err) != hook.NotReady {
		t.Errorf("without records: %v", err)
	}
}

// No answer says yes for a member that is not known; a candidate that is not known keeps nobody else waiting.
func TestRolloutWithoutMember(t *testing.T) {
	create := handlerOf("create", "BeforeClusterCreate", hook.Fail)
	for name, tc := range map[string]struct {
		reason       string
		regs         []registry.Registration
		undiscovered string
		stays, moved string // the answer, or the error
	}{
		"candidate is missing": {
			reason: "only those that have moved need it", regs: []registry.Registration{registrationOf("v6", create)},
			stays: "v6", moved: `the handlers of ExtensionConfig "v7" of ExtensionRollout "acme" are not known yet`,
		},
		"candidate is not discovered": {
			reason: "its server is down", regs: []registry.Registration{registrationOf("v6", create)}, undiscovered: "v7",
			stays: "v6", moved: `the handlers of ExtensionConfig "v7" are not known yet`,
		},
		"stable is missing": {
			reason: "whoever has not moved needs it", regs: []registry.Registration{registrationOf("v7", create)},
			stays: `the handlers of ExtensionConfig "v6" of ExtensionRollout "acme" are not known yet`, moved: "v7",
		},
		"handler of the candidate alone": {
			reason: "v6 has none, and was asked", moved: "v7", stays: "",
			regs: []registry.Registration{registrationOf("v6", handlerOf("x", "ValidateTopology", hook.Fail)), registrationOf("v7", create)},
		},
	} {
		a := &assigned{candidates: []string{"moved"}}
		d := rolledOut(t, a, tc.regs...)
		if tc.undiscovered != "" {
			d.config.Registry.(*registry.Registry).SetUndiscovered([]registry.Undiscovered{{Name: tc.undiscovered, Default: hook.Fail}})
		}
		for cluster, want := range map[string]string{"stays": tc.stays, "moved": tc.moved} {
			object := &hooksv1alpha1.RawExtension{Raw: fmt.Appendf(nil, `{"metadata":{"name":%q,"namespace":"ns"}}`, cluster)}
			m, err := d.dispatch(t.Context(), hookOf(t, "BeforeClusterCreate"), "",
				&hooksv1alpha1.BeforeClusterCreateRequest{Cluster: object})
			got := ""
			if answer, ok := m.(*hooksv1alpha1.BeforeClusterCreateResponse); ok && err == nil {
				got = answer.GetMessage()
			} else if err != nil {
				got = err.Error()
			}
			if want == "" && got != "" || !strings.HasPrefix(got, want) {
				t.Errorf("%s: %s: Cluster %s: got %q, want %q", name, tc.reason, cluster, got, want)
			}
		}
	}
}

// What the registry offers of a rollout follows its members, whatever the order in which they come.
func TestRolloutFollowsMembers(t *testing.T) {
	r := filled(t)
	names := func() (all []string) {
		for _, e := range r.Snapshot().Handlers(gvhOf("GeneratePatches").GroupHook()) {
			all = append(all, e.Name)
		}
		return all
	}
	want := func(reason string, want ...string) {
		t.Helper()
		if got := names(); !gocmp.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", reason, got, want)
		}
	}
	rollout := registry.Rollout{Name: "acme", Stable: "acme", Candidate: "acme-v7", Assignment: &assigned{}}
	patch := handlerOf("patch", "GeneratePatches", hook.Fail)
	apply := func(name string, handlers ...registry.Handler) {
		t.Helper()
		if err := r.Apply(registrationOf(name, handlers...)); err != nil {
			t.Fatal(err)
		}
	}
	apply("acme", patch)
	want("an extension in use", "patch.acme")
	r.SetRollouts([]registry.Rollout{rollout})
	want("adopted, it keeps its names", "patch.acme")
	if e, _ := r.Snapshot().Handler("patch.acme"); e.Variants == nil || e.Variants.StableEntry == nil {
		t.Error("the rollout stands for it")
	}
	apply("acme-v7", patch, handlerOf("new", "GeneratePatches", hook.Fail))
	want("the candidate brings a handler", "new.acme", "patch.acme")
	rollout.Stable, rollout.Candidate = "acme-v7", ""
	r.SetRollouts([]registry.Rollout{rollout})
	want("promoted: the old one is not called, though it has the name", "new.acme", "patch.acme")
	if e, _ := r.Snapshot().Handler("patch.acme"); e.Variants.StableEntry.Registration.Name != "acme-v7" {
		t.Error("the new version answers")
	}
	r.Remove("acme")
	r.SetRollouts(nil)
	want("without the rollout, each is on its own", "new.acme-v7", "patch.acme-v7")
}

// The member that answers for a Cluster is named, in chains, too, and so is why none does.
func TestExplainRollout(t *testing.T) {
	a := &assigned{candidates: []string{"moved"}}
	regs := members(handlerOf("patch", "GeneratePatches", hook.Fail))
	regs[1].Handlers = append(regs[1].Handlers, handlerOf("new", "BeforeClusterCreate", hook.Fail))
	d := rolledOut(t, a, regs...)
	explain := func(hookName string, request proto.Message) string {
		t.Helper()
		x, err := d.Explain(t.Context(), Request{Hook: hookOf(t, hookName), Message: request})
		if err != nil {
			t.Fatal(err)
		}
		var lines []string
		add := func(h *ExplainedHandler) {
			line := fmt.Sprintf("%d %s %s %s", h.Turn, h.Name, h.Kind, h.Member)
			if h.Excluded != nil {
				line += " " + h.Excluded.By + ": " + h.Excluded.Message
			}
			lines = append(lines, strings.TrimSpace(line))
		}
		for i := range x.Handlers {
			add(&x.Handlers[i])
			for j := range x.Handlers[i].Steps {
				add(&x.Handlers[i].Steps[j])
			}
		}
		return strings.Join(lines, "\n")
	}
	of := func(cluster string) proto.Message {
		return &hooksv1alpha1.BeforeClusterCreateRequest{Cluster: &hooksv1alpha1.RawExtension{
			Raw: fmt.Appendf(nil, `{"metadata":{"name":%q,"namespace":"ns"}}`, cluster),
		}}
	}
	const missing = `member: no handler "new.acme" for Cluster "ns/stays": in ExtensionRollout "acme", ` +
		`ExtensionConfig "v6" answers, but does not have this handler`
	for _, tc := range []struct {
		hook    string
		request proto.Message
		want    string
	}{
		{"GeneratePatches", templateOf("stays"), "1 patch.acme ExtensionRollout v6"},
		{"GeneratePatches", templateOf("moved"), "1 patch.acme ExtensionRollout v7"},
		{"BeforeClusterCreate", of("moved"), "1 create.other\n1 new.acme ExtensionRollout v7"},
		{"BeforeClusterCreate", of("stays"), "1 create.other\n0 new.acme ExtensionRollout v6 " + missing},
	} {
		if diff := gocmp.Diff(tc.want, explain(tc.hook, tc.request)); diff != "" {
			t.Errorf("%s: -want +got\n%s", tc.hook, diff)
		}
	}
	reg, _ := d.config.Registry.(*registry.Registry)
	reg.SetChains([]registry.Chain{{Name: "all", Hook: hookOf(t, "GeneratePatches").GroupHook(), Steps: []registry.ChainStep{{Handler: "patch.acme"}}}})
	x, err := d.ExplainCall(t.Context(), Request{Hook: hookOf(t, "GeneratePatches"), Message: templateOf("moved")})
	if err != nil || x.Failure != nil {
		t.Fatal(x, err)
	}
	step := x.Handlers[0].Steps[0]
	if step.Member != "v7" || step.Answer == nil || len(step.Answer.Objects) != 1 || !strings.Contains(string(step.Answer.Objects[0].Object), "v7") {
		t.Errorf("the step of a chain: %+v", step)
	}
	if len(a.compared) > 0 {
		t.Errorf("explanations were compared: %v", a.compared)
	}
	a.unreadable = true
	if got := explain("GeneratePatches", templateOf("stays")); !strings.Contains(got, "0 patch.acme ExtensionRollout") {
		t.Errorf("records that are not read: %s", got)
	}
}

// A chain stops if the member that answers for the Cluster holds, and names the handler as the chain does.
func TestChainStopsAtAMember(t *testing.T) {
	r := filled(t, members(handlerOf("create", "BeforeClusterCreate", hook.Fail))...)
	r.SetRollouts([]registry.Rollout{{Name: "acme", Stable: "v6", Candidate: "v7", Assignment: &assigned{candidates: []string{"moved"}}}})
	h := hookOf(t, "BeforeClusterCreate")
	r.SetChains([]registry.Chain{{
		Name: "gates", Hook: h.GroupHook(), Steps: []registry.ChainStep{{Handler: "create.acme", OnHold: registry.StopOnHold}, {Handler: "create.other"}},
	}})
	d := newDispatcher(r, fixedNamespaces{}, callerFunc(func(_ context.Context, c extension.Call) (proto.Message, error) {
		answer := &hooksv1alpha1.BeforeClusterCreateResponse{Status: success, Message: c.Handler.Name}
		if c.Handler.Registration.Name == "v6" {
			answer.RetryAfterSeconds = 5
		}
		return answer, nil
	}))
	for cluster, want := range map[string]string{
		"stays": `create.v6, these handlers are not called while handler "create.acme" holds: "create.other"`, "moved": "create.v7, create.other",
	} {
		request := &hooksv1alpha1.BeforeClusterCreateRequest{Cluster: &hooksv1alpha1.RawExtension{
			Raw: fmt.Appendf(nil, `{"metadata":{"name":%q,"namespace":"ns"}}`, cluster),
		}}
		m, err := d.dispatch(t.Context(), h, "gates", request)
		if got := catalog.MessageOf(m); err != nil || got != want {
			t.Errorf("%s: got %q, %v; want %q", cluster, got, err, want)
		}
	}
}

// A request of which each value takes many times its text is not built to be compared, and what is built takes memory of
// the budget, which is given back.
func TestRolloutCountsWhatItCompares(t *testing.T) {
	a := &assigned{}
	d := rolledOut(t, a, members(handlerOf("patch", "GeneratePatches", hook.Fail))...)
	d.config.Memory = budget.New(256 << 20)
	for name, tc := range map[string]struct {
		elements int
		refused  string
	}{
		"many": {14 << 20 / 3, "more than 50000 list elements"},
		"some": {40_000, ""},
	} {
		request := templateOf("c1")
		request.Items[0].Object.Raw = fmt.Appendf(nil, `{"kind":"T","spec":{"template":{"spec":{"list":[{}%s]}}}}`, strings.Repeat(",{}", tc.elements))
		body, err := mandated.Append(nil, request)
		if err != nil {
			t.Fatal(err)
		}
		a.asked = nil
		if _, err := d.Dispatch(t.Context(), Request{Hook: hookOf(t, "GeneratePatches"), Handler: "patch.acme", Message: request, Body: body}); err != nil {
			t.Fatal(err)
		}
		var got registry.Compared
		alloctest.Bound{Base: 128 << 20}.Check(t, len(body), func() { got = a.asked[0](t.Context()) })
		if tc.refused == "" && len(got.Differences) != 1 || !strings.Contains(got.Unproven, tc.refused) || got.Err != nil || got.Dropped {
			t.Errorf("%s: %+v", name, got)
		}
		if used := d.config.Memory.Usage().Used; used != 0 {
			t.Errorf("%s: %d bytes are still reserved", name, used)
		}
	}
}
