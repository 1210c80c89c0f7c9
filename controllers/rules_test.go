// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers_test

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hookgate/hookgate/api/v1alpha1"
	"github.com/hookgate/hookgate/controllers"
	"github.com/hookgate/hookgate/test/process"
)

const rules = "/apis/hookgate.dev/v1alpha1/hookrules/"

// rule creates or changes a HookRule of BeforeClusterCreate that fails with an expression as its message.
func (s *apiServer) rule(name, message string) {
	var r *v1alpha1.HookRule
	if !s.read(rules+name, &r) {
		r = &v1alpha1.HookRule{TypeMeta: metav1.TypeMeta{APIVersion: "hookgate.dev/v1alpha1", Kind: "HookRule"}}
		r.Name, r.UID = name, "1"
	}
	r.Spec = v1alpha1.HookRuleSpec{
		Hook: "BeforeClusterCreate",
		Fail: []v1alpha1.HookRuleFailure{{HookRuleDecision: v1alpha1.HookRuleDecision{If: "true", Message: message}}},
	}
	s.put(rules+name, r)
}

// describes returns what a name is registered for.
func (r *replica) describes(name string) string {
	reg, ok := r.registry.Snapshot().Registration(name)
	if !ok {
		return "nothing"
	}
	return reg.Describe()
}

func (r *replica) awaitRegistered(t testing.TB, name, want string) {
	t.Helper()
	eventually(t, name+" is "+want, func() (string, bool) { return r.describes(name), r.describes(name) == want })
}

// A rule is served as long as it is there and no ExtensionConfig has its name, and a mistake leaves in effect what was
// there before. A policy may have it as its target.
func TestRuleTakesEffect(t *testing.T) {
	api := newAPIServer(t)
	r := start(t, api, nil)
	api.rule("no", `"no"`)
	api.awaitReadyAt(t, rules+"no", v1alpha1.ReadyReason, "Answers BeforeClusterCreate as handler rule.no")
	first, _ := r.registry.Snapshot().Registration("no")

	marked := len(api.written())
	api.rule("no", "request.nothing")
	api.awaitReadyAt(t, rules+"no", v1alpha1.InvalidReason, "spec.fail[0].message: Invalid value: ")
	expectWrites(t, api, marked, "PATCH no/status 200")
	if now, _ := r.registry.Snapshot().Registration("no"); now != first {
		t.Errorf("with a mistake in it, the registry has %+v, not %+v", now, first)
	}
	if listed := objectsOf(r.source).Rules; len(listed) != 1 || listed[0].Reason != v1alpha1.InvalidReason || listed[0].Hook != "BeforeClusterCreate" {
		t.Errorf("the status lists %+v", listed)
	}
	api.rule("no", `"no"`)
	api.awaitReadyAt(t, rules+"no", v1alpha1.ReadyReason, "")

	api.register("no", nil)
	process.Eventually(t, "the ExtensionConfig is not called", func() bool {
		return slices.Equal(r.registry.Snapshot().Shadowed(), []string{"no"})
	})
	if got := r.describes("no"); got != `HookRule "no"` {
		t.Errorf("%s is served", got)
	}
	const collision = "NameCollision"
	api.awaitCondition(t, "no", collision, metav1.ConditionTrue,
		`The extension is not called: its name is also the name of HookRule "no": rename one of the two`)
	api.remove(rules + "no")
	api.awaitNone(t, "no", collision)
	api.remove(configs + "no")
	r.awaitRegistered(t, "no", "nothing")
}

// A replica that is ready has the rules, so that no hook is answered without them. See TestPoliciesHoldFromTheStart.
func TestRulesHoldFromTheStart(t *testing.T) {
	api := newAPIServer(t)
	api.rule("no", `"no"`)
	for i := range 20 {
		r := start(t, api, func(c *controllers.Config) { c.ReadOnly = i%2 == 1 })
		if got := r.describes("no"); got != `HookRule "no"` {
			t.Fatalf("start %d: it is ready with %s", i, got)
		}
		r.stop()
	}
}
