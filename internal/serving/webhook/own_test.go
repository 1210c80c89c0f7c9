// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"

	"github.com/hookgate/hookgate/api/v1alpha1"
	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/calls/policy"
	"github.com/hookgate/hookgate/internal/kinds/handlerchain"
	"github.com/hookgate/hookgate/internal/kinds/hookjob"
	"github.com/hookgate/hookgate/internal/kinds/hookrule"
	"github.com/hookgate/hookgate/registry"
)

// ruleOf returns a rule of BeforeClusterUpgrade that fails with an expression as its message.
func ruleOf(name, message string) *v1alpha1.HookRule {
	r := &v1alpha1.HookRule{}
	r.APIVersion, r.Kind, r.Name = "hookgate.dev/v1alpha1", "HookRule", name
	r.Spec.Hook = "BeforeClusterUpgrade"
	r.Spec.Fail = []v1alpha1.HookRuleFailure{{HookRuleDecision: v1alpha1.HookRuleDecision{If: "true", Message: message}}}
	return r
}

// besideRule is beside with a rule that is there, the chain rule--chained, and rule--own as the own name of a handler.
func besideRule(t *testing.T) *registry.Registry {
	t.Helper()
	r := beside(t)
	compiler, err := policy.NewCompiler()
	if err != nil {
		t.Fatal(err)
	}
	types, err := policy.NewTypes(catalog.New())
	if err != nil {
		t.Fatal(err)
	}
	reg, errs := hookrule.NewCompiler(catalog.New(), compiler, types, nil).Compile(ruleOf("there", `"no"`))
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	r.SetLocal(hookrule.Kind, []registry.Registration{reg})
	gvh := hook.GroupVersionHook{Group: hook.Group, Version: "v1alpha1", Hook: "GeneratePatches"}
	if err := r.Apply(registry.Registration{
		Name: "named", ClientConfig: registry.ClientConfig{URL: "https://named"},
		Handlers: []registry.Handler{{Name: "rule--own", Hook: gvh, Timeout: 1, FailurePolicy: hook.Fail}},
	}); err != nil {
		t.Fatal(err)
	}
	r.SetAllPolicies(map[string]registry.Policies{"named": {All: &policy.Policy{Name: "own", OfferAs: policy.Original}}})
	r.SetChains([]registry.Chain{
		*r.Snapshot().Chains()[0],
		{Name: "rule--chained", Hook: gvh.GroupHook(), Steps: []registry.ChainStep{{Handler: "a.acme"}}},
	})
	return r
}

func TestRefusalsOfHookRules(t *testing.T) {
	h := handlerBeside(t, besideRule(t))
	deleted, now := ruleOf("r", "request.nothing"), metav1.Now()
	deleted.DeletionTimestamp = &now
	good := ruleOf("r", `"no"`)
	refused := func(name, text string) string {
		return fmt.Sprintf("HookRule.hookgate.dev %q is invalid: %s", name, text)
	}
	checkAdmissions(t, h, OwnPath(hookrule.Kind), map[string]admitted[*v1alpha1.HookRule]{
		"it compiles":                    {nil, good, "", nil},
		"an unknown member":              {nil, ruleOf("r", "request.nothing"), refused("r", "spec.fail[0].message: Invalid value: line 1, column 8: undefined field 'nothing'"), nil},
		"an update to a mistake":         {good, ruleOf("r", "3"), refused("r", "spec.fail[0].message: Invalid value: must be a text, but is of type int"), nil},
		"the name of an ExtensionConfig": {nil, ruleOf("acme", `"no"`), refused("acme", `metadata.name: Invalid value: "acme": is the name of ExtensionConfig "acme": choose another name`), nil},
		"the name of a chain":            {nil, ruleOf("of", `"no"`), refused("of", `metadata.name: Invalid value: "of": is the name of HandlerChain "of": choose another name`), nil},
		"its label is a chain":           {nil, ruleOf("chained", `"no"`), refused("chained", `metadata.name: Invalid value: "chained": is already in use: the offered name of its handler, "rule--chained", is the name of a HandlerChain`), nil},
		"its label is an own name":       {nil, ruleOf("own", `"no"`), refused("own", `metadata.name: Invalid value: "own": is already in use: the offered name of its handler, "rule--own", is also the offered name of handler "rule--own.named"`), nil},
		"the one that is registered":     {ruleOf("there", `"no"`), ruleOf("there", `"not"`), "", nil},
		"a name that came to collide":    {ruleOf("acme", `"no"`), ruleOf("acme", `"not"`), "", []string{`metadata.name: is the name of ExtensionConfig "acme", so one of the two is not served`}},
		"a mistake that stays":           {ruleOf("r", "3"), ruleOf("r", "3"), "", nil},
		"a mistake in one that goes":     {good, deleted, "", nil},
	})
}

// Nothing that is new takes the name of a rule.
func TestNamesOfRulesAreTaken(t *testing.T) {
	h := handlerBeside(t, besideRule(t))
	config := configWith(func(c *runtimev1.ExtensionConfig) { c.Name = "there" })
	chain := &v1alpha1.HandlerChain{}
	chain.APIVersion, chain.Kind, chain.Name = "hookgate.dev/v1alpha1", "HandlerChain", "there"
	chain.Spec = v1alpha1.HandlerChainSpec{Hook: "GeneratePatches", Steps: []v1alpha1.HandlerChainStep{{Handler: "a.acme"}}}
	for path, object := range map[string]any{ValidatePath(group): config, OwnPath(handlerchain.Kind): chain} {
		got := admitBy(t, h, path, nil, object)
		if got.Allowed || !strings.HasSuffix(got.Result.Message, `metadata.name: Invalid value: "there": is the name of HookRule "there": choose another name`) {
			t.Errorf("%s: allowed %t, %+v", path, got.Allowed, got.Result)
		}
	}
}

// Without a namespace for Jobs, a HookJob is refused and not ignored. Its name is checked like that of a rule.
func TestRefusalsOfHookJobs(t *testing.T) {
	job := &v1alpha1.HookJob{}
	job.APIVersion, job.Kind, job.Name = "hookgate.dev/v1alpha1", "HookJob", "there"
	job.Spec.Hook = "BeforeClusterUpgrade"
	job.Spec.JobTemplate.Raw = []byte(`{"spec":{"template":{"spec":{"restartPolicy":"Never","containers":[{"name":"a","image":"b"}]}}}}`)
	got := admitBy(t, handlerBeside(t, besideRule(t)), OwnPath(hookjob.Kind), nil, job)
	want := `HookJob.hookgate.dev "there" is invalid: [metadata.name: Invalid value: "there": is the name of HookRule "there": choose another name, ` +
		`spec: Forbidden: this gateway runs no Jobs: to run Jobs, it needs a cluster that it may write to, and --hook-jobs-namespace]`
	if got.Allowed || got.Result.Message != want {
		t.Errorf("allowed %t, got %+v, want %s", got.Allowed, got.Result, want)
	}
}
