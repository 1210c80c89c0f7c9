// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"

	"github.com/hookgate/hookgate/api/v1alpha1"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/calls/policy"
	"github.com/hookgate/hookgate/internal/kinds/handlerchain"
	"github.com/hookgate/hookgate/registry"
)

// beside is what is registered: a.acme and, offered under its own name, p.other, which is also the chain of.
func beside(t *testing.T) *registry.Registry {
	t.Helper()
	r := registry.New(hook.GroupHook{Group: hook.Group, Hook: "BeforeClusterCreate"})
	for name, handler := range map[string]string{"acme": "a", "other": "p"} {
		gvh := hook.GroupVersionHook{Group: hook.Group, Version: "v1alpha1", Hook: "GeneratePatches"}
		if err := r.Apply(registry.Registration{
			Name: name, ClientConfig: registry.ClientConfig{URL: "https://" + name},
			Handlers: []registry.Handler{{Name: handler, Hook: gvh, Timeout: 1, FailurePolicy: hook.Fail}},
		}); err != nil {
			t.Fatal(err)
		}
	}
	r.SetAllPolicies(map[string]registry.Policies{"other": {All: &policy.Policy{Name: "names", OfferAs: policy.Original}}})
	r.SetChains([]registry.Chain{{
		Name: "of", Hook: hook.GroupHook{Group: hook.Group, Hook: "GeneratePatches"},
		Steps: []registry.ChainStep{{Handler: "a.acme"}},
	}})
	r.SetReady()
	return r
}

func TestRefusalsOfHandlerChains(t *testing.T) {
	h := handlerBeside(t, beside(t))
	chain := func(name, hookName string, steps ...string) *v1alpha1.HandlerChain {
		c := &v1alpha1.HandlerChain{}
		c.APIVersion, c.Kind, c.Name = "hookgate.dev/v1alpha1", "HandlerChain", name
		c.Spec.Hook = hookName
		for _, step := range steps {
			c.Spec.Steps = append(c.Spec.Steps, v1alpha1.HandlerChainStep{Handler: step})
		}
		return c
	}
	many := make([]string, 65)
	for i := range many {
		many[i] = fmt.Sprintf("h%d.acme", i)
	}
	deleted, now := chain("c", "GeneratePatches", "a"), metav1.Now()
	deleted.DeletionTimestamp = &now
	good := chain("c", "GeneratePatches", "a.acme")
	refused := func(name, text string) string {
		return fmt.Sprintf("HandlerChain.hookgate.dev %q is invalid: %s", name, text)
	}
	checkAdmissions(t, h, OwnPath(handlerchain.Kind), map[string]admitted[*v1alpha1.HandlerChain]{
		"its step is registered":                       {nil, good, "", nil},
		"a step that is not yet":                       {nil, chain("c", "GeneratePatches", "a.acme", "z.acme"), "", []string{`step 2: no handler "z.acme" is registered; calls of the chain fail meanwhile`}},
		"an update to one":                             {good, chain("c", "GeneratePatches", "z.acme"), "", []string{`step 1: no handler "z.acme" is registered; calls of the chain fail meanwhile`}},
		"a step of another hook":                       {nil, chain("c", "ValidateTopology", "a.acme"), "", []string{`step 1: handler "a.acme" serves the hook GeneratePatches, not ValidateTopology; calls of the chain fail meanwhile`}},
		"a chain as a step":                            {nil, chain("c", "GeneratePatches", "of"), refused("c", `spec.steps[0].handler: Invalid value: "of": must be the registered name of a handler`), nil},
		"the name of an ExtensionConfig":               {nil, chain("acme", "GeneratePatches", "a.acme"), refused("acme", `metadata.name: Invalid value: "acme": is the name of ExtensionConfig "acme": choose another name`), nil},
		"the label of a handler":                       {nil, chain("a--acme", "GeneratePatches", "a.acme"), refused("a--acme", `metadata.name: Invalid value: "a--acme": is the label of handler "a.acme"`), nil},
		"the own name of a handler":                    {nil, chain("p", "GeneratePatches", "a.acme"), refused("p", `metadata.name: Invalid value: "p": is the name under which handler "p.other" is offered`), nil},
		"a name that came to be of an ExtensionConfig": {chain("acme", "GeneratePatches", "a.acme"), chain("acme", "GeneratePatches", "p.other"), "", nil},
		"65 steps":                   {nil, chain("c", "GeneratePatches", many...), refused("c", "spec.steps: Too many: 65: must have at most 64 items"), nil},
		"an update to a mistake":     {good, chain("c", "GeneratePatch", "a.acme"), refused("c", `spec.hook: Invalid value: "GeneratePatch": not a hook that can have a chain: did you mean "GeneratePatches"?`), nil},
		"a mistake that stays":       {chain("c", "GeneratePatches", "a"), chain("c", "GeneratePatches", "a"), "", nil},
		"a mistake in one that goes": {good, deleted, "", nil},
	})
	if got := admitBy(t, h, OwnPath(handlerchain.Kind), nil, chain("c", "GeneratePatches", many[:64]...)); len(got.Warnings) != limits.Problems+1 {
		t.Errorf("64 missing steps have %d warnings: %q", len(got.Warnings), got.Warnings)
	}
}

// A chain and an ExtensionConfig do not share a name, whichever comes first.
func TestExtensionConfigWithTheNameOfAChain(t *testing.T) {
	h := handlerBeside(t, beside(t))
	config := configWith(func(c *runtimev1.ExtensionConfig) { c.Name = "of" })
	const want = `ExtensionConfig.runtime.hookgate.dev "of" is invalid: metadata.name: Invalid value: "of": is the name of HandlerChain "of": choose another name`
	if got := admitBy(t, h, ValidatePath(group), nil, config); got.Allowed || got.Result.Message != want {
		t.Errorf("allowed %t, %+v", got.Allowed, got.Result)
	}
	changed := config.DeepCopy()
	changed.Spec.Settings = map[string]string{"a": "b"}
	if got := admitBy(t, h, ValidatePath(group), config, changed); !got.Allowed {
		t.Errorf("an update of one that is there already is refused: %+v", got.Result)
	}
}
