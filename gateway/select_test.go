// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/hookgate/hookgate/catalog"
	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/hookversion"
	"github.com/hookgate/hookgate/internal/calls/extension"
	"github.com/hookgate/hookgate/internal/calls/outcome"
	"github.com/hookgate/hookgate/internal/calls/policy"
	"github.com/hookgate/hookgate/internal/calls/selection"
	"github.com/hookgate/hookgate/registry"
)

// callLog answers Success and remembers who was called, in order.
type callLog struct {
	mu    sync.Mutex
	calls []string
}

func (l *callLog) Call(_ context.Context, c extension.Call) (proto.Message, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calls = append(l.calls, c.Handler.Name)
	return outcome.Success(c.Hook), nil
}

// A handler is called if its namespaceSelector and both parts of its policy match. Any of them refuses it.
func TestSelectorAndPolicyMustBothMatch(t *testing.T) {
	const yes, no, fails = `true`, `false`, `request.cluster.spec.size > 1`
	for _, namespace := range []string{"red", "blue"} { // the selector wants red
		for _, label := range []string{"gold", "silver"} { // the policy wants gold
			for _, condition := range []string{yes, no, fails} {
				for _, failurePolicy := range []hook.FailurePolicy{hook.Fail, hook.Ignore} {
					for _, handler := range []string{"", "v.a"} {
						t.Run(fmt.Sprint(namespace, " ", label, " ", condition, " ", failurePolicy, " ", handler), func(t *testing.T) {
							reg := registrationOf("a", handlerOf("v", "BeforeClusterCreate", hook.Fail))
							reg.NamespaceSelector = selector(t, "kubernetes.io/metadata.name=red")
							r := filled(t, reg)
							r.SetPolicies("a", forHandler("v", policy.Policy{
								ObjectSelector: selector(t, "tier=gold"), Conditions: conditions(t, condition), FailurePolicy: failurePolicy,
							}))
							called := &callLog{}
							_, err := newDispatcher(r, fixedNamespaces{}, called).dispatch(t.Context(), hookOf(t, "BeforeClusterCreate"), handler,
								&hooksv1alpha1.BeforeClusterCreateRequest{Cluster: &hooksv1alpha1.RawExtension{
									Raw: fmt.Appendf(nil, `{"kind":"Cluster","metadata":{"name":"c","namespace":%q,"labels":{"tier":%q}}}`, namespace, label),
								}})
							selected := namespace == "red" && label == "gold"
							wantKind := hook.Kind(0)
							switch {
							case selected && condition == fails && failurePolicy == hook.Fail:
								wantKind = hook.Policy
							case selected && condition != no:
							case handler != "":
								wantKind = hook.UnknownHandler
							}
							if hook.KindOf(err) != wantKind || (err == nil) != (wantKind == 0) {
								t.Errorf("got error %v (%s), want %s", err, hook.KindOf(err), wantKind)
							}
							if wantCalled := selected && condition == yes; (len(called.calls) == 1) != wantCalled {
								t.Errorf("called %v, want a call: %t", called.calls, wantCalled)
							}
						})
					}
				}
			}
		}
	}
}

// An order does not get a handler round its selectors, and one that is left out does not end the sequence.
func TestOrderSelectorAndPolicyTogether(t *testing.T) {
	r := filled(t)
	for i, tc := range []struct {
		name     string
		selector string
		policy   policy.Policy
	}{
		{"a", "", policy.Policy{Order: new(int32(5))}},
		{"b", "team=blue", policy.Policy{Order: new(int32(1))}},
		{"c", "team=red", policy.Policy{Order: new(int32(4))}},
		{"d", "", policy.Policy{Order: new(int32(2)), ObjectSelector: selector(t, "tier=silver")}},
		{"e", "", policy.Policy{Order: new(int32(3)), Conditions: conditions(t, `request.cluster.metadata.name == 'c'`)}},
		{"f", "", policy.Policy{Order: new(int32(-1)), Conditions: conditions(t, `false`)}},
		{"g", "", policy.Policy{Order: new(int32(0)), Conditions: conditions(t, `request.nothing`), FailurePolicy: hook.Ignore}},
		{"h", "", policy.Policy{}},
	} {
		reg := registrationOf(tc.name, handlerOf("v", "BeforeClusterDelete", hook.Fail))
		if tc.selector != "" {
			reg.NamespaceSelector = selector(t, tc.selector)
		}
		if err := r.Apply(reg); err != nil {
			t.Fatal(i, err)
		}
		r.SetPolicies(tc.name, forHandler("v", tc.policy))
	}
	called := &callLog{}
	_, err := newDispatcher(r, fixedNamespaces{"n": {"team": "red"}}, called).dispatch(t.Context(), hookOf(t, "BeforeClusterDelete"), "",
		&hooksv1alpha1.BeforeClusterDeleteRequest{Cluster: labelled(`{"tier":"gold"}`)})
	if want := []string{"v.e", "v.c", "v.a", "v.h"}; err != nil || !slices.Equal(called.calls, want) {
		t.Errorf("called %v (%v), want %v", called.calls, err, want)
	}
}

// A policy that cannot be evaluated fails the sequence at its place, as any error does.
func TestPolicyErrorEndsTheSequence(t *testing.T) {
	r := filled(t)
	for name, p := range map[string]policy.Policy{
		"a": {Order: new(int32(1))}, "b": {Order: new(int32(2)), Conditions: conditions(t, `request.nothing`)}, "c": {Order: new(int32(3))}, "d": {},
	} {
		if err := r.Apply(registrationOf(name, handlerOf("v", "BeforeClusterDelete", hook.Fail))); err != nil {
			t.Fatal(err)
		}
		r.SetPolicies(name, forHandler("v", p))
	}
	called := &callLog{}
	_, err := newDispatcher(r, fixedNamespaces{}, called).dispatch(t.Context(), hookOf(t, "BeforeClusterDelete"), "",
		&hooksv1alpha1.BeforeClusterDeleteRequest{Cluster: clusterIn("n")})
	if hook.KindOf(err) != hook.Policy || !slices.Equal(called.calls, []string{"v.a"}) {
		t.Errorf("called %v (%v), want v.a only and an error of kind Policy", called.calls, err)
	}
}

// Texts name ten handlers, and count those beyond.
func TestAmbiguousHandlersAreNamed(t *testing.T) {
	const ten = "p.e00, p.e01, p.e02, p.e03, p.e04, p.e05, p.e06, p.e07, p.e08, p.e09"
	for n, want := range map[int]string{2: "p.e00, p.e01", 10: ten, 11: ten + " and 1 more", 13: ten + " and 3 more"} {
		r := registry.New()
		for i := range n {
			if err := r.Apply(registrationOf(fmt.Sprintf("e%02d", i), handlerOf("p", "GeneratePatches", hook.Fail))); err != nil {
				t.Fatal(err)
			}
		}
		r.SetReady()
		d := newDispatcher(r, fixedNamespaces{}, answers{})
		_, err := d.dispatch(t.Context(), hookOf(t, "GeneratePatches"), "", &hooksv1alpha1.GeneratePatchesRequest{})
		if want := fmt.Sprintf("GeneratePatches needs one handler, but %d match; name one of: %s", n, want); hook.KindOf(err) != hook.Ambiguous || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
		_, err = d.dispatch(t.Context(), hookOf(t, "GeneratePatches"), "q", &hooksv1alpha1.GeneratePatchesRequest{})
		if want := `no handler "q": the handlers of GeneratePatches are ` + strings.ReplaceAll(want, ".", "--"); hook.KindOf(err) != hook.UnknownHandler || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// If the gateway answers for one extension, a handler is called by the extension's own name for it, even if that is the
// name of the hook.
func TestSoleExtensionIsCalledByItsOwnNames(t *testing.T) {
	r := registry.NewSidecar()
	if err := r.Apply(registrationOf("a", handlerOf("beforeclustercreate", "BeforeClusterCreate", hook.Fail), handlerOf("v", "BeforeClusterCreate", hook.Fail))); err != nil {
		t.Fatal(err)
	}
	r.SetReady()
	called := &callLog{}
	d := newDispatcher(r, fixedNamespaces{}, called)
	req := &hooksv1alpha1.BeforeClusterCreateRequest{Cluster: clusterIn("n")}
	if _, err := d.dispatch(t.Context(), hookOf(t, "BeforeClusterCreate"), "beforeclustercreate", req); err != nil || len(called.calls) != 1 {
		t.Errorf("called %v (%v), want the handler of that name", called.calls, err)
	}
	if _, err := d.dispatch(t.Context(), hookOf(t, "BeforeClusterCreate"), "", req); err != nil || len(called.calls) != 3 {
		t.Errorf("called %v (%v), want both then", called.calls, err)
	}
	if _, err := d.dispatch(t.Context(), hookOf(t, "BeforeClusterCreate"), "w", req); hook.KindOf(err) != hook.UnknownHandler {
		t.Errorf("got %v, want UnknownHandler", err)
	}
}

// What selectors and policies ask for is read once for all handlers.
func TestMatcherReadsOnce(t *testing.T) {
	message := &hooksv1alpha1.BeforeClusterCreateRequest{Cluster: labelled(`{"tier":"gold"}`)}
	m := selection.New(fixedNamespaces{}, nil, hookversion.New(catalog.New()), mandated)
	if err := m.Read(selection.Request{Hook: hookOf(t, "BeforeClusterCreate"), Message: message}); err != nil {
		t.Fatal(err)
	}
	reg := registrationOf("a")
	reg.NamespaceSelector = selector(t, "kubernetes.io/metadata.name=n")
	p := &policy.Policy{Name: "p", ObjectSelector: selector(t, "tier=gold"), Conditions: conditions(t, `request.cluster.metadata.namespace == 'n'`)}
	for range 2 {
		if v := m.Judge(t.Context(), &registry.Entry{Registration: &reg, Policy: p}); v.Excluded() || v.PolicyError != nil {
			t.Errorf("got %+v", v)
		}
		message.Cluster = &hooksv1alpha1.RawExtension{Raw: []byte(`{}`)} // no caller does that: it shows what is read anew
	}
	if v := m.Judge(t.Context(), &registry.Entry{Registration: &registry.Registration{}}); v.Excluded() || v.PolicyError != nil {
		t.Errorf("without a policy, every request matches: got %+v", v)
	}
}
