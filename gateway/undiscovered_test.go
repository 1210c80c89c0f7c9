// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"cmp"
	"testing"

	"google.golang.org/protobuf/proto"

	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/calls/policy"
	"github.com/hookgate/hookgate/registry"
)

// A lifecycle hook does not succeed without a handler that has to be called.
func TestCallsWaitForHandlersThatAreNotKnown(t *testing.T) {
	const (
		unknown = `the handlers of ExtensionConfig "new" are not known yet: "hookgate get extensions" says why; fix or delete each ExtensionConfig, or set onUndiscovered: Ignore in its ExtensionPolicy`
		labels  = `the namespaceSelector of ExtensionConfig "acme" depends on the labels of namespace "away", which are not known: try again, or add the Namespace to the directory of manifests`
	)
	fail := []registry.Undiscovered{{Name: "new", Default: hook.Fail}}
	ignore := []registry.Undiscovered{{Name: "new", Default: hook.Ignore}}
	selecting := func(text string) []registry.Undiscovered {
		return []registry.Undiscovered{{Name: "new", Default: hook.Fail, NamespaceSelector: selector(t, text)}}
	}
	all := func(p policy.Policy) registry.Policies { p.Name = "p"; return registry.Policies{All: &p} }
	for name, tc := range map[string]struct {
		reason       string
		undiscovered []registry.Undiscovered
		policies     registry.Policies // of the one that is not known
		selector     string            // of the one that is
		hook         string            // BeforeClusterDelete unless set
		handler      string
		namespace    string    // n, which is known, unless set
		want         string    // the error; empty for an answer
		kind         hook.Kind // of the error; NotReady unless set
	}{
		"Fails":     {reason: "it may have to be asked", undiscovered: fail, want: unknown},
		"ByTheHook": {reason: "the name of the hook means all", undiscovered: fail, handler: "beforeclusterdelete", want: unknown},
		"Ignored":   {reason: "it was never discovered", undiscovered: ignore},
		"PolicyIgnores": {
			reason: "the operator has decided", undiscovered: fail, policies: all(policy.Policy{OnUndiscovered: hook.Ignore}),
		},
		"PolicyFails": {
			reason: "the operator has decided", undiscovered: ignore, policies: all(policy.Policy{OnUndiscovered: hook.Fail}), want: unknown,
		},
		"FailurePolicy": {
			reason: "an error of a handler that may not exist is not hidden", undiscovered: fail, policies: all(policy.Policy{FailurePolicy: hook.Ignore}), want: unknown,
		},
		"OtherHook": {reason: "it may have no handler of this hook", undiscovered: fail, policies: all(policy.Policy{Hooks: []string{"AfterClusterUpgrade"}})},
		"ThisHook":  {reason: "it may have one", undiscovered: fail, policies: all(policy.Policy{Hooks: []string{"BeforeClusterDelete"}}), want: unknown},
		"Selected":  {reason: "it is for this namespace", undiscovered: selecting("tier=gold"), want: unknown},
		"NotSelected": {
			reason: "it is for others", undiscovered: selecting("tier=silver"),
		},
		"MayBeSelected": {
			reason: "nobody knows", undiscovered: selecting("tier=gold"), namespace: "away", want: unknown,
		},
		"NotSelectedByName": {
			reason: "all labels that matter are known", undiscovered: selecting("kubernetes.io/metadata.name=n,tier=gold"), namespace: "away",
		},
		"PolicyDoesNotMatch": {
			reason: "none of its handlers would be called", undiscovered: fail, policies: all(policy.Policy{ObjectSelector: selector(t, "a=b")}),
		},
		"PolicyOfAHandler": {
			reason: "a handler with a policy of its own may be called", undiscovered: fail,
			policies: registry.Policies{All: &policy.Policy{ObjectSelector: selector(t, "a=b")}, Handlers: map[string]*policy.Policy{"v": {Name: "q"}}},
			want:     unknown,
		},
		"PolicyFailsToEvaluate": {
			reason: "it may match", undiscovered: fail, policies: all(policy.Policy{Conditions: conditions(t, "request.nothing")}), want: unknown,
		},
		"OneOfIts":      {reason: "it may be registered soon", undiscovered: fail, handler: "v.new", want: `handler "v.new" is not known yet: ExtensionConfig "new" has not been discovered yet`},
		"OneOfItsLabel": {reason: "it may be registered soon, whatever calls to all do", undiscovered: ignore, handler: "V--New", want: `handler "V--New" is not known yet: ExtensionConfig "new" has not been discovered yet`},
		"HashedLabel":   {reason: "a label that is too long has a hash", undiscovered: ignore, handler: registry.Label("a--b.new"), want: `handler "` + registry.Label("a--b.new") + `" is not known yet: ExtensionConfig "new" has not been discovered yet`},
		"OtherHash":     {reason: "it is of another ExtensionConfig", undiscovered: ignore, handler: registry.Label("a--b.old"), kind: hook.UnknownHandler, want: `no handler "` + registry.Label("a--b.old") + `": the handlers of BeforeClusterDelete are d.acme`},
		"Cause": {
			reason: "the caller learns what is wrong", undiscovered: []registry.Undiscovered{{Name: "new", Cause: "connection refused", Default: hook.Ignore}}, handler: "v.new",
			want: `handler "v.new" is not known yet: ExtensionConfig "new" has not been discovered: connection refused`,
		},
		"OwnName": {
			reason: "its handlers are offered under their own names", undiscovered: fail, policies: all(policy.Policy{OfferAs: policy.Original}), hook: "CanUpdateMachine",
			handler: "v", want: `handler "v" is not known yet: ExtensionConfig "new" has not been discovered yet`,
		},
		"NoOwnName": {reason: "no handler of this hook is", undiscovered: fail, policies: all(policy.Policy{OfferAs: policy.Original, Hooks: []string{"GeneratePatches"}}), hook: "CanUpdateMachine", handler: "v", kind: hook.UnknownHandler, want: `no handler "v": the handlers of CanUpdateMachine are none`},
		"Discovery": {reason: "the extension is named", undiscovered: fail, hook: "Discovery", handler: "New", want: `handler "New" is not known yet: ExtensionConfig "new" has not been discovered yet`},
		"Aside": {
			reason: "it is paused: calls to all do not wait", undiscovered: []registry.Undiscovered{{Name: "new", Cause: "it is paused", Default: hook.Fail, Aside: true}},
			policies: all(policy.Policy{OnUndiscovered: hook.Fail}),
		},
		"AsideNamed": {
			reason: "it may go on", undiscovered: []registry.Undiscovered{{Name: "new", Cause: "it is paused", Default: hook.Fail, Aside: true}}, handler: "v.new",
			want: `handler "v.new" is not known yet: ExtensionConfig "new" has not been discovered: it is paused`,
		},
		"Elsewhere": {reason: "nothing of the name is expected", undiscovered: fail, handler: "v.other", kind: hook.UnknownHandler, want: `no handler "v.other": the handlers of BeforeClusterDelete are d.acme`},
		"UnreadableNamed": {
			reason: "it may define it", undiscovered: []registry.Undiscovered{{Unreadable: `manifest "x.yaml"`, Default: hook.Fail}}, handler: "v.other",
			want: `handler "v.other" is not known yet: the handlers of manifest "x.yaml" are not known yet`,
		},
		"UnreadableKnown": {
			reason: "an ExtensionConfig that is known has no others", undiscovered: []registry.Undiscovered{{Unreadable: `manifest "x.yaml"`, Default: hook.Fail}}, handler: "v.acme",
			kind: hook.UnknownHandler, want: `no handler "v.acme": the handlers of BeforeClusterDelete are d.acme`,
		},
		"AnotherOne":    {reason: "it need not wait", undiscovered: fail, handler: "d.acme"},
		"Single":        {reason: "the one that is known answers", undiscovered: fail, hook: "GenerateUpgradePlan"},
		"SingleUnknown": {reason: "none is known", undiscovered: fail, hook: "CanUpdateMachine", want: unknown},
		"Unreadable": {
			reason: "it may define somebody", undiscovered: []registry.Undiscovered{{Unreadable: `manifest "x.yaml"`, Default: hook.Fail}},
			want: `the handlers of manifest "x.yaml" are not known yet: "hookgate get extensions" says why; fix or delete each ExtensionConfig, or set onUndiscovered: Ignore in its ExtensionPolicy`,
		},
		"NamespaceUnknown":      {reason: "a label is missing", selector: "tier=gold", namespace: "away", want: labels},
		"NamespaceKnown":        {reason: "it does not match", selector: "tier=silver"},
		"NamespaceUnknownByDay": {reason: "it matches whatever its labels are", selector: "tier!=silver", namespace: "away"},
		"NamespaceUnknownNamed": {
			reason: "the name is known", selector: "kubernetes.io/metadata.name=n", namespace: "away",
		},
	} {
		t.Run(name, func(t *testing.T) {
			known := registrationOf("acme", handlerOf("d", "BeforeClusterDelete", hook.Fail), handlerOf("g", "GenerateUpgradePlan", hook.Fail))
			if tc.selector != "" {
				known.NamespaceSelector = selector(t, tc.selector)
			}
			r := filled(t, known)
			r.SetPolicies("new", tc.policies)
			r.SetUndiscovered(tc.undiscovered)
			if tc.hook == "" {
				tc.hook = "BeforeClusterDelete"
			}
			if tc.namespace == "" {
				tc.namespace = "n"
			}
			d := newDispatcher(r, fixedNamespaces{"n": {"kubernetes.io/metadata.name": "n", "tier": "gold"}}, answers{
				"d.acme": says(&hooksv1alpha1.BeforeClusterDeleteResponse{Status: success}),
				"g.acme": says(&hooksv1alpha1.GenerateUpgradePlanResponse{Status: success}),
			})
			request := map[string]proto.Message{
				"BeforeClusterDelete": &hooksv1alpha1.BeforeClusterDeleteRequest{Cluster: clusterIn(tc.namespace)},
				"GenerateUpgradePlan": &hooksv1alpha1.GenerateUpgradePlanRequest{Cluster: clusterIn(tc.namespace)},
				"Discovery":           &hooksv1alpha1.DiscoveryRequest{},
				"CanUpdateMachine":    &hooksv1alpha1.CanUpdateMachineRequest{Current: &hooksv1alpha1.CanUpdateMachineRequestObjects{Machine: clusterIn(tc.namespace)}},
			}[tc.hook]
			_, err := d.dispatch(t.Context(), hookOf(t, tc.hook), tc.handler, request)
			switch {
			case tc.want == "" && err != nil:
				t.Errorf("%s: got %v", tc.reason, err)
			case tc.want != "" && (hook.KindOf(err) != cmp.Or(tc.kind, hook.NotReady) || err.Error() != tc.want):
				t.Errorf("%s: got %v, want %s", tc.reason, err, tc.want)
			}
			if err := r.Apply(registrationOf("new")); err != nil {
				t.Fatal(err)
			}
			r.RemoveAll([]string{`manifest "x.yaml"`})
			if _, err := d.dispatch(t.Context(), hookOf(t, tc.hook), tc.handler, request); hook.KindOf(err) == hook.NotReady && tc.want != labels {
				t.Errorf("%s: all is known now, got %v", tc.reason, err)
			}
		})
	}
}

// A handler that waits for its policy is no handler, and its name says why.
func TestWithheldHandlers(t *testing.T) {
	r := filled(t, registrationOf("acme", handlerOf("d", "BeforeClusterDelete", hook.Fail), handlerOf("p", "GeneratePatches", hook.Fail)))
	r.SetPolicies("acme", registry.Policies{All: &policy.Policy{Name: "vetted", Hooks: []string{"BeforeClusterDelete"}}})
	d := newDispatcher(r, fixedNamespaces{}, answers{})
	for _, handler := range []string{"p.acme", "p--acme"} {
		_, err := d.dispatch(t.Context(), hookOf(t, "GeneratePatches"), handler, &hooksv1alpha1.GeneratePatchesRequest{})
		want := `handler "` + handler + `" is not served: spec.hooks of ExtensionPolicy "vetted" does not list the hook GeneratePatches`
		if hook.KindOf(err) != hook.UnknownHandler || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	for _, h := range d.discover(t).GetHandlers() {
		if h.GetRequestHook().GetHook() == "GeneratePatches" {
			t.Errorf("%s is offered", h.GetName())
		}
	}
}
