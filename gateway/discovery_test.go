// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/calls/policy"
	"github.com/hookgate/hookgate/internal/seeing/observe"
	"github.com/hookgate/hookgate/registry"
)

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
			t.Errorf("with a policy of %d s, discovery has %d, want %d", seconds, got, want)
		}
	}
	r.SetPolicies("acme", registry.Policies{})
	if got := announced(); got != 11 {
		t.Errorf("without a policy, discovery has %d, want 11", got)
	}
}

// Handlers of hooks that go to all keep the one name of their hook, and the others are called by whichever name they
// are offered under, or were.
func TestDiscoverOffersOriginalNames(t *testing.T) {
	r := registry.New(allHooks.Merged()...)
	for _, reg := range []registry.Registration{
		registrationOf("acme", handlerOf("p", "GeneratePatches", hook.Fail), handlerOf("gate", "BeforeClusterCreate", hook.Fail),
			handlerOf("beforeclusterdelete", "ValidateTopology", hook.Fail)),
		registrationOf("other", handlerOf("q", "GeneratePatches", hook.Fail)),
	} {
		if err := r.Apply(reg); err != nil {
			t.Fatal(err)
		}
	}
	r.SetReady()
	d := newDispatcher(r, fixedNamespaces{}, answers{
		"p.acme": says(&hooksv1alpha1.GeneratePatchesResponse{Status: success, Message: "p of acme"}),
	})
	named := func() []string {
		var all []string
		for _, h := range d.discover(t).GetHandlers() {
			if h.GetRequestHook().GetHook() == "GeneratePatches" || h.GetRequestHook().GetHook() == "ValidateTopology" {
				all = append(all, h.GetName())
			}
		}
		return all
	}
	qualified := []string{"beforeclusterdelete--acme", "p--acme", "q--other"}
	if diff := cmp.Diff(qualified, named()); diff != "" {
		t.Errorf("by default: -want +got:\n%s", diff)
	}
	r.SetPolicies("acme", registry.Policies{All: &policy.Policy{Name: "p", OfferAs: policy.Original}})
	if diff := cmp.Diff([]string{"beforeclusterdelete--acme", "p", "q--other"}, named()); diff != "" {
		t.Errorf("with offerAs: Original: -want +got:\n%s", diff)
	}
	reporter := &observe.Reporter{
		Catalog: allHooks, Registry: r, Observer: newObserved(r).Observer, Namespaces: fixedNamespaces{},
	}
	g, _ := reporter.Extension("acme")
	want := map[string][2]string{
		"p.acme": {"p", ""}, "gate.acme": {"beforeclustercreate", ""}, "beforeclusterdelete.acme": {
			"beforeclusterdelete--acme", `handler "beforeclusterdelete.acme" is offered as "beforeclusterdelete--acme", ` +
				`because "beforeclusterdelete" is also the name of the gateway's own handler of BeforeClusterDelete`,
		},
	}
	for i := range g.Extensions[0].Handlers {
		h := &g.Extensions[0].Handlers[i]
		if got := [2]string{h.OfferedAs, h.Collision}; got != want[h.Name] {
			t.Errorf("the status of %s has %q", h.Name, got)
		}
		delete(want, h.Name)
	}
	if len(want) > 0 {
		t.Errorf("the status lacks %v", want)
	}
	if n := len(d.discover(t).GetHandlers()); n != 12 {
		t.Errorf("got %d handlers, want those 3 and 9 lifecycle hooks", n)
	}
	for _, name := range []string{"p", "p--acme", "p.acme"} {
		answer, err := d.dispatch(t.Context(), hookOf(t, "GeneratePatches"), name, &hooksv1alpha1.GeneratePatchesRequest{})
		if got, _ := answer.(*hooksv1alpha1.GeneratePatchesResponse); err != nil || got.GetMessage() != "p of acme" {
			t.Errorf("a call of %s: %v, %v", name, answer, err)
		}
	}
	r.SetPolicies("acme", registry.Policies{})
	if diff := cmp.Diff(qualified, named()); diff != "" {
		t.Errorf("without the policy: -want +got:\n%s", diff)
	}
	if _, err := d.dispatch(t.Context(), hookOf(t, "GeneratePatches"), "p", &hooksv1alpha1.GeneratePatchesRequest{}); err == nil {
		t.Error("without the policy, the name means nothing")
	}
}
