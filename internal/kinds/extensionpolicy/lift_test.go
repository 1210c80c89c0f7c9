// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package extensionpolicy

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hookgate/hookgate/api/v1alpha1"
	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/calls/policy"
	"github.com/hookgate/hookgate/internal/kinds"
)

// A lift that is not understood makes its policy invalid, so that it lifts nothing.
func TestLiftedHolds(t *testing.T) {
	upgrade := v1alpha1.LiftedHold{Handler: "v.acme", Hook: "BeforeClusterUpgrade", Cluster: "team-a/prod-1", UID: "u", Version: "v1.35.0"}
	for name, tc := range map[string]struct {
		change func(*v1alpha1.LiftedHold)
		want   string // the error; empty for none
	}{
		"upgrade":          {func(*v1alpha1.LiftedHold) {}, ""},
		"delete":           {func(l *v1alpha1.LiftedHold) { l.Hook, l.Version = "BeforeClusterDelete", "" }, ""},
		"after":            {func(l *v1alpha1.LiftedHold) { l.Hook = "AfterWorkersUpgrade" }, ""},
		"rule":             {func(l *v1alpha1.LiftedHold) { l.Handler = "v" }, `handler: Invalid value: "v": must be HANDLER.acme, a handler of spec.targetRef`},
		"other extension":  {func(l *v1alpha1.LiftedHold) { l.Handler = "v.other" }, `handler: Invalid value: "v.other": must be HANDLER.acme`},
		"no handler":       {func(l *v1alpha1.LiftedHold) { l.Handler = "" }, `handler: Invalid value: "": must be HANDLER.acme`},
		"no hook":          {func(l *v1alpha1.LiftedHold) { l.Hook, l.Version = "", "" }, `hook: Invalid value: "": must be a lifecycle hook that holds Clusters: AfterClusterUpgrade, AfterControlPlaneUpgrade, `},
		"UpdateMachine":    {func(l *v1alpha1.LiftedHold) { l.Hook, l.Version = "UpdateMachine", "" }, `hook: Invalid value: "UpdateMachine": must be a lifecycle hook`},
		"hook of Machines": {func(l *v1alpha1.LiftedHold) { l.Hook, l.Version = "BeforeMachineDrain", "" }, `hook: Invalid value: "BeforeMachineDrain": must be a lifecycle hook`},
		"does not hold":    {func(l *v1alpha1.LiftedHold) { l.Hook, l.Version = "AfterControlPlaneInitialized", "" }, `hook: Invalid value: "AfterControlPlaneInitialized": must be a lifecycle hook`},
		"no namespace":     {func(l *v1alpha1.LiftedHold) { l.Cluster = "prod-1" }, `cluster: Invalid value: "prod-1": must be namespace/name of a Cluster`},
		"all":              {func(l *v1alpha1.LiftedHold) { l.Cluster = "team-a/*" }, `cluster: Invalid value: "team-a/*": must be namespace/name of a Cluster`},
		"no uid":           {func(l *v1alpha1.LiftedHold) { l.UID = "" }, "uid: Required value: must be metadata.uid of the Cluster"},
		"long uid":         {func(l *v1alpha1.LiftedHold) { l.UID = strings.Repeat("u", 64) }, "must have at most 63 bytes"},
		"no version":       {func(l *v1alpha1.LiftedHold) { l.Version = "" }, "version: Required value: must be the Kubernetes version that the Cluster is upgraded to"},
		"needs no version": {func(l *v1alpha1.LiftedHold) { l.Hook = "BeforeClusterCreate" }, "version: Forbidden: BeforeClusterCreate is not about a version"},
	} {
		l := upgrade
		tc.change(&l)
		p := policyWith(func(p *v1alpha1.ExtensionPolicy) { p.Spec.LiftedHolds = []v1alpha1.LiftedHold{l} })
		_, errs := Compile(p, compiler(t), catalog.New())
		if tc.want == "" && len(errs) > 0 || tc.want != "" && (len(errs) != 1 || !strings.Contains(errs[0].Error(), "spec.liftedHolds[0]."+tc.want) && !strings.HasSuffix(errs[0].Error(), tc.want)) {
			t.Errorf("%s: got %v, want %q", name, errs, tc.want)
		}
	}

	twice := policyWith(func(p *v1alpha1.ExtensionPolicy) { p.Spec.LiftedHolds = []v1alpha1.LiftedHold{upgrade, upgrade} })
	if _, errs := Compile(twice, compiler(t), catalog.New()); len(errs) != 1 || errs[0].Error() != `spec.liftedHolds[1]: Duplicate value: "v.acme"` {
		t.Errorf("twice: got %v", errs)
	}
	many := policyWith(func(p *v1alpha1.ExtensionPolicy) {
		p.Spec.LiftedHolds = slices.Repeat([]v1alpha1.LiftedHold{upgrade}, limits.PolicyLifts+1)
	})
	if _, errs := Compile(many, compiler(t), catalog.New()); len(errs) != 1 || errs[0].Error() != "spec.liftedHolds: Too many: 257: must have at most 256 items" {
		t.Errorf("too many: got %v", errs)
	}
	other := policyWith(func(p *v1alpha1.ExtensionPolicy) {
		p.Spec.Protocol, p.Spec.TargetRef.Handler, p.Spec.LiftedHolds = "", "w", []v1alpha1.LiftedHold{upgrade}
	})
	if _, errs := Compile(other, compiler(t), catalog.New()); len(errs) != 1 || !strings.Contains(errs[0].Error(), "must be w.acme") {
		t.Errorf("another handler: got %v", errs)
	}
}

// The holds that the policy of a handler lifts replace those of the policy for its extension, as every field does.
func TestLiftedHoldsOfOneHandler(t *testing.T) {
	wider := &policy.Policy{Name: "all", Lifted: &policy.LiftedHolds{By: "all"}}
	own := &policy.Policy{Name: "one", Lifted: &policy.LiftedHolds{By: "one"}}
	if got := own.Over(wider).Lifted.By; got != "one" {
		t.Errorf("the policy of the handler: got %s", got)
	}
	if got := (&policy.Policy{Name: "one"}).Over(wider).Lifted.By; got != "all" {
		t.Errorf("a policy that lifts nothing: got %s", got)
	}
}

// A lift of a handler that does not exist, or not at this hook, is told; the rest of the policy is in effect.
func TestJudgeLifts(t *testing.T) {
	p, errs := Compile(policyWith(func(p *v1alpha1.ExtensionPolicy) {
		p.Spec.LiftedHolds = []v1alpha1.LiftedHold{
			{Handler: "w.acme", Hook: "BeforeClusterDelete", Cluster: "a/b", UID: "u"}, {Handler: "v.acme", Hook: "BeforeClusterDelete", Cluster: "a/b", UID: "u"},
		}
	}), compiler(t), catalog.New())
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	at := func(name string) hook.GroupHook { return hook.GroupHook{Group: hook.Group, Hook: name} }
	fine := kinds.Verdict{Reason: v1alpha1.AcceptedReason, Message: "fine"}
	missing := kinds.Verdict{
		Reason:  v1alpha1.TargetNotFoundReason,
		Message: `In effect for ExtensionConfig "acme", except for spec.liftedHolds[1]: ExtensionConfig "acme" has no handler "v" for the hook BeforeClusterDelete`,
	}
	for name, tc := range map[string]struct {
		handlers map[string]hook.GroupHook
		want     kinds.Verdict
	}{
		"all":          {map[string]hook.GroupHook{"v": at("BeforeClusterDelete"), "w": at("BeforeClusterDelete")}, fine},
		"no handler":   {map[string]hook.GroupHook{"w": at("BeforeClusterDelete")}, missing},
		"another hook": {map[string]hook.GroupHook{"v": at("BeforeClusterCreate"), "w": at("BeforeClusterDelete")}, missing},
	} {
		if diff := cmp.Diff(tc.want, p.JudgeLifts(fine, tc.handlers)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	none, _ := Compile(policyWith(func(*v1alpha1.ExtensionPolicy) {}), compiler(t), catalog.New())
	if got := none.JudgeLifts(fine, nil); got != fine {
		t.Errorf("nothing is lifted: got %v", got)
	}
}
