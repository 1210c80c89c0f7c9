// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package allkinds_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"

	"github.com/hookgate/hookgate/api/v1alpha1"
	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/base/status"
	"github.com/hookgate/hookgate/internal/calls/policy"
	"github.com/hookgate/hookgate/internal/kinds"
	"github.com/hookgate/hookgate/internal/kinds/extensionpolicy"
	"github.com/hookgate/hookgate/internal/kinds/hookrule"
	"github.com/hookgate/hookgate/registry"
)

// local is what answers for a HookRule.
type local struct{ message string }

func (*local) Kind() string { return "HookRule" }

func (l *local) Answer(context.Context, proto.Message, policy.Guard) (proto.Message, error) {
	return nil, hook.Errorf(hook.Internal, "%s", l.message)
}

// ruleFor returns the registration of a rule.
func ruleFor(t *testing.T, name, hookName string) registry.Registration {
	t.Helper()
	h, ok := catalog.New().ByName(hookName)
	if !ok {
		t.Fatalf("there is no hook %s", hookName)
	}
	return registry.Registration{
		Name: name, InProcess: &local{name}, Handlers: []registry.Handler{{
			Name: "rule", Hook: h.GroupVersionHook, Timeout: time.Second, FailurePolicy: hook.Fail,
		}},
	}
}

func newRules(w *policyFixture) *kinds.LocalSet {
	return kinds.NewLocalSet(&hookrule.Description, w.tracking, catalog.New(), w.logs.Logger())
}

// The verdict on a rule changes as ExtensionConfigs and policies come and go, and is logged once each time.
func TestLocalSetFollowsNames(t *testing.T) {
	w := newPolicyFixture()
	s := newRules(w)
	s.Use(items([]registry.Registration{ruleFor(t, "r", "CanUpdateMachine"), ruleFor(t, "p", "BeforeClusterUpgrade")}, nil))
	verdicts := func(reason, message string) {
		t.Helper()
		want := map[string]kinds.Verdict{
			"r": {Reason: reason, Message: message},
			"p": {Reason: "Ready", Message: "Answers BeforeClusterUpgrade as handler rule.p"},
		}
		for range 2 {
			got := s.Verdicts()
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			s.Report(got, func(name string) string { return name + ".yaml:1" })
		}
		if n := len(w.logs.Lines("hookRule=r", "at=r.yaml:1", "reason="+reason)); n != 1 {
			t.Errorf("logged %d times that it is %s", n, reason)
		}
	}
	verdicts("Ready", "Answers CanUpdateMachine as handler rule.r")
	w.set.Use(items([]extensionpolicy.Policy{policyFor("none", "r", func(p *extensionpolicy.Policy) { p.Compiled.Hooks = []string{"AfterClusterUpgrade"} })}, nil))
	verdicts("Withheld", `Not served: spec.hooks of ExtensionPolicy "none" does not list the hook CanUpdateMachine`)
	w.set.Use(nil)
	w.tracking.ApplyAll([]registry.Registration{{
		Name: "acme", ClientConfig: registry.ClientConfig{URL: "https://acme"}, Handlers: []registry.Handler{{
			Name: "a", Hook: ruleFor(t, "r", "CanUpdateMachine").Handlers[0].Hook, Timeout: 1, FailurePolicy: hook.Fail,
		}},
	}})
	verdicts("SeveralOffered", "Cluster API accepts only one handler of CanUpdateMachine, but 2 are offered: a--acme, rule--r; put them into one HandlerChain")
	w.tracking.RemoveAll([]string{"acme"})
	w.apply(t, "r", "v")
	if v := s.Verdicts()["r"]; v.Reason != "Ready" {
		t.Errorf("beside an ExtensionConfig of its name, the verdict is %+v", v)
	}
	s.Use(nil)
	s.Report(s.Verdicts(), nil)
	if n := len(w.logs.Lines("rule removed", "hookRule=")); n != 2 {
		t.Errorf("logged %d times that a rule is removed", n)
	}
}

// What is wrong with a rule is listed with the version that stays in effect, by the source or by the registry.
func TestLocalSetKeepsTheLastValidState(t *testing.T) {
	w := newPolicyFixture()
	s := newRules(w)
	wrong := ruleFor(t, "wrong", "BeforeClusterUpgrade")
	wrong.Handlers[0].Timeout = 0
	s.Use(items([]registry.Registration{ruleFor(t, "r", "BeforeClusterUpgrade"), wrong}, map[string]string{"r": "spec.hook: wrong", "new": "spec: none"}))
	s.Report(s.Verdicts(), nil)
	listed, _ := s.Listed()
	if diff := cmp.Diff([]status.InProcess{
		{Name: "new", Reason: "Invalid", Message: "spec: none"},
		{Name: "r", Hook: "BeforeClusterUpgrade", Reason: "Invalid", Message: "spec.hook: wrong"},
		{Name: "wrong", Reason: "Invalid", Message: `HookRule "wrong": handlers[0].timeout: 0s is not more than 0s and at most 30s`},
	}, listed); diff != "" {
		t.Errorf("listed (-want +got):\n%s", diff)
	}
	if _, ok := w.registry.Snapshot().Handler("rule.r"); !ok {
		t.Error("the last valid rule is not served")
	}
}

// The status lists so many rules.
func TestLocalSetListsAreBounded(t *testing.T) {
	s := newRules(newPolicyFixture())
	refused := map[string]string{}
	for i := range limits.StatusLocals + 3 {
		refused[fmt.Sprintf("r%05d", i)] = strings.Repeat("x", limits.PolicyMessageBytes+10)
	}
	s.Use(items([]registry.Chain(nil), refused))
	s.Report(s.Verdicts(), nil)
	if rules, missed := s.Listed(); len(rules) != limits.StatusLocals || missed != 3 || len(rules[0].Message) > limits.PolicyMessageBytes+10 {
		t.Errorf("%d are listed and %d are not", len(rules), missed)
	}
}

// A policy is in effect for a rule, and says which of its fields mean nothing there.
func TestPoliciesOfRules(t *testing.T) {
	compiler, err := policy.NewCompiler()
	if err != nil {
		t.Fatal(err)
	}
	for reason, tc := range map[string]struct {
		handler string
		spec    v1alpha1.ExtensionPolicySpec
		want    string
	}{
		"the rule":              {"", v1alpha1.ExtensionPolicySpec{TimeoutSeconds: new(int32(3))}, `Accepted: In effect for HookRule "r"`},
		"its handler":           {"rule", v1alpha1.ExtensionPolicySpec{FailurePolicy: "Ignore"}, `Accepted: In effect for HookRule "r"`},
		"another handler":       {"v", v1alpha1.ExtensionPolicySpec{FailurePolicy: "Ignore"}, `TargetNotFound: HookRule "r" has no handler "v"; the policy takes effect as soon as its target appears`},
		"a condition":           {"", v1alpha1.ExtensionPolicySpec{MatchConditions: []v1alpha1.MatchCondition{{Name: "a", Expression: "request.items.size() > 0"}}}, `Invalid: In effect for HookRule "r", and calls fail if the policy applies to them: spec.matchConditions[0].expression: Invalid value: in a request of BeforeClusterUpgrade: line 1, column 8: undefined field 'items'`},
		"what is of a server's": {"", v1alpha1.ExtensionPolicySpec{Protocol: "GRPC", Cache: &v1alpha1.Cache{TTLSeconds: 5}}, `Invalid: In effect for HookRule "r", except for fields that apply only to an extension with a server: spec.protocol, spec.cache`},
	} {
		t.Run(reason, func(t *testing.T) {
			w := newPolicyFixture()
			newRules(w).Use(items([]registry.Registration{ruleFor(t, "r", "BeforeClusterUpgrade")}, nil))
			p := &v1alpha1.ExtensionPolicy{Spec: tc.spec}
			p.Name, p.Spec.TargetRef = "p", v1alpha1.TargetReference{Name: "r", Handler: tc.handler}
			compiled, errs := extensionpolicy.Compile(p, compiler, catalog.New())
			if len(errs) > 0 {
				t.Fatal(errs)
			}
			w.set.Use(items([]extensionpolicy.Policy{compiled}, nil))
			if v := w.set.Verdicts()["p"]; v.Reason+": "+v.Message != tc.want {
				t.Errorf("got %s: %s\nwant %s", v.Reason, v.Message, tc.want)
			}
		})
	}
}
