// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package extensionconfig

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hookgate/hookgate/api/v1alpha1"
	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/limits"
	"github.com/hookgate/hookgate/registry"
)

// chainOf returns a valid HandlerChain of handlers.
func chainOf(hookName string, handlers ...string) *v1alpha1.HandlerChain {
	c := &v1alpha1.HandlerChain{ObjectMeta: metav1.ObjectMeta{Name: "chain"}, Spec: v1alpha1.HandlerChainSpec{Hook: hookName}}
	for _, h := range handlers {
		c.Spec.Steps = append(c.Spec.Steps, v1alpha1.HandlerChainStep{Handler: h})
	}
	return c
}

// Each rule of a HandlerChain has its text.
func TestConvertChainAtTheLimits(t *testing.T) {
	many := func(n int) (handlers []string) {
		for i := range n {
			handlers = append(handlers, fmt.Sprintf("h%d.e", i))
		}
		return handlers
	}
	settings := func(n int) map[string]string {
		all := map[string]string{}
		for i := range n {
			all[strconv.Itoa(i)] = ""
		}
		return all
	}
	paths := func(n int) (all []string) {
		for i := range n {
			all = append(all, fmt.Sprint("/machine/spec/", i))
		}
		return all
	}
	with := func(c *v1alpha1.HandlerChain, change func(*v1alpha1.HandlerChainSpec)) *v1alpha1.HandlerChain {
		change(&c.Spec)
		return c
	}
	allowing := func(hookName string, allow ...string) *v1alpha1.HandlerChain {
		return with(chainOf(hookName, "a.e"), func(s *v1alpha1.HandlerChainSpec) { s.Steps[0].Allow = allow })
	}
	onPartial := func(hookName string, what v1alpha1.OnPartialCoverage) *v1alpha1.HandlerChain {
		return with(chainOf(hookName, "a.e"), func(s *v1alpha1.HandlerChainSpec) { s.OnPartialCoverage = what })
	}
	const isForTwo = " is for the hooks CanUpdateMachine and CanUpdateMachineSet"
	for reason, tt := range map[string]struct {
		chain *v1alpha1.HandlerChain
		want  string
	}{
		"64 steps":          {chainOf("GeneratePatches", many(limits.ChainSteps)...), ""},
		"65 steps":          {chainOf("GeneratePatches", many(limits.ChainSteps+1)...), "spec.steps: Too many: 65: must have at most 64 items"},
		"no steps":          {chainOf("GeneratePatches"), "spec.steps: Required value: must have the handlers that the chain consists of"},
		"a handler twice":   {chainOf("GeneratePatches", "a.e", "b.e", "a.e"), `spec.steps[2].handler: Duplicate value: "a.e"`},
		"a chain as a step": {chainOf("GeneratePatches", "other"), `spec.steps[0].handler: Invalid value: "other": must be the registered name of a handler: <handler>.<ExtensionConfig>, two DNS-1123 labels; a chain has no chain as a step`},
		"a step without a name": {
			chainOf("GeneratePatches", ""), "spec.steps[0].handler: Required value: must be the registered name of a handler: <handler>.<ExtensionConfig>",
		},
		"no hook":                   {chainOf("", "a.e"), "spec.hook: Required value: must be the name of a hook"},
		"a misspelled hook":         {chainOf("GeneratePatch", "a.e"), `spec.hook: Invalid value: "GeneratePatch": no hook that can have a chain has this name: did you mean "GeneratePatches"?`},
		"256 settings":              {with(chainOf("GeneratePatches", "a.e"), func(s *v1alpha1.HandlerChainSpec) { s.Steps[0].Settings = settings(limits.StepSettings) }), ""},
		"257 settings":              {with(chainOf("GeneratePatches", "a.e"), func(s *v1alpha1.HandlerChainSpec) { s.Steps[0].Settings = settings(limits.StepSettings + 1) }), "spec.steps[0].settings: Too many: 257: must have at most 256 items"},
		"optional":                  {with(chainOf("GeneratePatches", "a.e"), func(s *v1alpha1.HandlerChainSpec) { s.Steps[0].Optional = new(true) }), ""},
		"optional, in place":        {with(chainOf("UpdateMachine", "a.e"), func(s *v1alpha1.HandlerChainSpec) { s.Steps[0].Optional = new(true) }), "spec.steps[0].optional: Forbidden: a step of an in-place hook cannot be optional: Machines would be updated, or replaced, without it"},
		"Block":                     {onPartial("CanUpdateMachineSet", v1alpha1.OnPartialCoverageBlock), ""},
		"Block of UpdateMachine":    {onPartial("UpdateMachine", v1alpha1.OnPartialCoverageBlock), "spec.onPartialCoverage: Forbidden: onPartialCoverage" + isForTwo},
		"another onPartialCoverage": {onPartial("CanUpdateMachine", "Wait"), `spec.onPartialCoverage: Unsupported value: "Wait": supported values: "Block", "Replace"`},
		"64 paths":                  {allowing("CanUpdateMachine", paths(limits.AllowedPaths)...), ""},
		"65 paths":                  {allowing("CanUpdateMachine", paths(limits.AllowedPaths+1)...), "spec.steps[0].allow: Too many: 65: must have at most 64 items"},
		"paths of another hook":     {allowing("GeneratePatches", "/spec"), "spec.steps[0].allow: Forbidden: allow is for steps of the hooks CanUpdateMachine and CanUpdateMachineSet"},
		"a path that is no pointer": {allowing("CanUpdateMachine", "machine"), `spec.steps[0].allow[0]: Invalid value: "machine": must be a JSON pointer, such as /machine/spec/version`},
		"a path twice":              {allowing("CanUpdateMachine", "/machine", "/machine"), `spec.steps[0].allow[1]: Duplicate value: "/machine"`},
		"a path that is too long":   {allowing("CanUpdateMachine", "/"+strings.Repeat("x", limits.AllowedPathBytes)), "spec.steps[0].allow[0]: Too long: may not be more than 256 bytes"},
	} {
		_, errs := ConvertChain(tt.chain, catalog.New())
		got := ""
		if err := errs.ToAggregate(); err != nil {
			got = err.Error()
		}
		if got != tt.want {
			t.Errorf("%s: got  %s\nwant %s", reason, got, tt.want)
		}
	}
	c := chainOf("CanUpdateMachine", "a.e")
	c.Spec.OnPartialCoverage, c.Spec.Steps[0].Settings, c.Spec.Steps[0].Allow = v1alpha1.OnPartialCoverageBlock, map[string]string{"a": "b"}, []string{"/machine"}
	got, _ := ConvertChain(c, catalog.New())
	step := got.Steps[0]
	if !got.Sole || !got.Strict || !got.Block || step.Handler != "a.e" || step.Settings["a"] != "b" || !slices.Equal(step.Allow, c.Spec.Steps[0].Allow) {
		t.Errorf("got %+v", got)
	}
}

// The verdict on a chain says whether it can be called, and what else the callers of its hook are offered.
func TestJudgeChain(t *testing.T) {
	const inPlace = "CanUpdateMachine"
	gh := hook.GroupHook{Group: hook.Group, Hook: inPlace}
	for reason, tt := range map[string]struct {
		chains []registry.Chain // the first is judged
		want   string
	}{
		"ready": {
			[]registry.Chain{{Name: "one", Sole: true, Steps: []registry.ChainStep{{Handler: "a.e"}, {Handler: "b.e"}}}},
			"Ready: Calls go to 2 handlers",
		},
		"a step is passed over": {
			[]registry.Chain{{Name: "one", Steps: []registry.ChainStep{{Handler: "a.e"}, {Handler: "x.e", Optional: true}}}},
			"Ready: Calls go to 1 handlers, and pass over 1 that are not registered",
		},
		"an unknown step, and one of another hook": {
			[]registry.Chain{{Name: "one", Steps: []registry.ChainStep{{Handler: "x.e"}, {Handler: "patch.e"}}}},
			`StepMissing: Calls fail: steps[0]: no handler "x.e" is registered; steps[1]: handler "patch.e" serves the hook GeneratePatches, not CanUpdateMachine`,
		},
		"the name of an ExtensionConfig": {
			[]registry.Chain{{Name: "e", Steps: []registry.ChainStep{{Handler: "a.e"}}}},
			`NameCollision: The name is the name of ExtensionConfig "e", too: rename the chain`,
		},
		"two chains": {
			[]registry.Chain{{Name: "one", Sole: true, Steps: []registry.ChainStep{{Handler: "a.e"}}}, {Name: "two", Sole: true, Steps: []registry.ChainStep{{Handler: "b.e"}}}},
			"SeveralOffered: Cluster API takes one handler of CanUpdateMachine in all, and 2 are offered: one, two; put them into one HandlerChain",
		},
		"a handler beside the chain": {
			[]registry.Chain{{Name: "one", Sole: true, Steps: []registry.ChainStep{{Handler: "a.e"}}}},
			"SeveralOffered: Cluster API takes one handler of CanUpdateMachine in all, and 2 are offered: b--e, one; put them into one HandlerChain",
		},
	} {
		r := registry.New()
		registration := registry.Registration{Name: "e", ClientConfig: registry.ClientConfig{URL: "https://e"}}
		for name, of := range map[string]string{"a": inPlace, "b": inPlace, "patch": "GeneratePatches"} {
			registration.Handlers = append(registration.Handlers, registry.Handler{
				Name: name, Hook: hook.GroupVersionHook{Group: hook.Group, Version: hook.Version, Hook: of}, Timeout: 1, FailurePolicy: hook.Fail,
			})
		}
		if err := r.Apply(registration); err != nil {
			t.Fatal(err)
		}
		for i := range tt.chains {
			tt.chains[i].Hook = gh
		}
		r.SetChains(tt.chains)
		c, _ := r.Snapshot().Chain(tt.chains[0].Name)
		v := JudgeChain(r.Snapshot(), c)
		if got := v.Reason + ": " + v.Message; got != tt.want {
			t.Errorf("%s: got  %s\nwant %s", reason, got, tt.want)
		}
	}
}
