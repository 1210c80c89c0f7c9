// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package handlerchain

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/hookgate/hookgate/api/v1alpha1"
	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/calls/policy"
	"github.com/hookgate/hookgate/internal/kinds"
	"github.com/hookgate/hookgate/registry"
)

// chainOf returns a HandlerChain with a step for each handler.
func chainOf(hookName string, handlers ...string) *v1alpha1.HandlerChain {
	c := &v1alpha1.HandlerChain{}
	c.Name, c.Spec.Hook = "chain", hookName
	for _, h := range handlers {
		c.Spec.Steps = append(c.Spec.Steps, v1alpha1.HandlerChainStep{Handler: h})
	}
	return c
}

// numbered returns n different texts.
func numbered(n int, format string) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf(format, i)
	}
	return list
}

func settingsOf(n int) map[string]string {
	settings := map[string]string{}
	for _, name := range numbered(n, "s%d") {
		settings[name] = "v"
	}
	return settings
}

func TestCompile(t *testing.T) {
	c := chainOf("CanUpdateMachine", "a.acme", "b.acme")
	c.Spec.OnPartialCoverage = v1alpha1.OnPartialCoverageBlock
	c.Spec.Steps[0].Settings = map[string]string{"mode": "strict"}
	c.Spec.Steps[1].Allow = []string{"/machine/spec"}
	gh := func(name string) hook.GroupHook { return hook.GroupHook{Group: hook.Group, Hook: name} }
	plan := chainOf("GenerateUpgradePlan", "a.acme")
	plan.Spec.Steps[0].Optional = new(true)
	replaces := chainOf("CanUpdateMachineSet", "a.acme")
	replaces.Spec.OnPartialCoverage = v1alpha1.OnPartialCoverageReplace
	steps := []registry.ChainStep{{Handler: "a.acme"}}
	for reason, tt := range map[string]struct {
		chain *v1alpha1.HandlerChain
		want  registry.Chain
	}{
		"an in-place hook, whose answers must not be ignored": {c, registry.Chain{
			Name: "chain", Hook: gh("CanUpdateMachine"), OneHandler: true, Strict: true, Block: true,
			Steps: []registry.ChainStep{{Handler: "a.acme", Settings: map[string]string{"mode": "strict"}}, {Handler: "b.acme", Allow: []string{"/machine/spec"}}},
		}},
		"Replace is the default":          {replaces, registry.Chain{Name: "chain", Hook: gh("CanUpdateMachineSet"), OneHandler: true, Strict: true, Steps: steps}},
		"a hook of which one is taken":    {plan, registry.Chain{Name: "chain", Hook: gh("GenerateUpgradePlan"), OneHandler: true, Steps: []registry.ChainStep{{Handler: "a.acme", Optional: true}}}},
		"a hook of which several may be":  {chainOf("GeneratePatches", "a.acme"), registry.Chain{Name: "chain", Hook: gh("GeneratePatches"), Steps: steps}},
		"a hook that goes to all of them": {chainOf("BeforeClusterCreate", "a.acme"), registry.Chain{Name: "chain", Hook: gh("BeforeClusterCreate"), Steps: steps}},
	} {
		got, errs := Compile(tt.chain, catalog.New())
		if diff := cmp.Diff(tt.want, got); diff != "" || len(errs) > 0 {
			t.Errorf("%s: %v, -want +got\n%s", reason, errs, diff)
		}
	}
	stops := chainOf("BeforeClusterUpgrade", "a.acme", "b.acme")
	stops.Spec.Steps[0].OnHold, stops.Spec.Steps[1].OnHold = v1alpha1.OnHoldStop, v1alpha1.OnHoldContinue
	if got, _ := Compile(stops, catalog.New()); got.Steps[0].OnHold != registry.StopOnHold || got.Steps[1].OnHold != "" {
		t.Errorf("onHold is %+v", got.Steps)
	}
	got, _ := Compile(c, catalog.New())
	got.Steps[0].Settings["mode"], got.Steps[1].Allow[0] = "lax", "/x"
	if c.Spec.Steps[0].Settings["mode"] != "strict" || c.Spec.Steps[1].Allow[0] != "/machine/spec" {
		t.Error("the chain shares memory with the object")
	}
}

// Every rule has its text, at the field that is wrong, and its bound where it should be.
func TestCompileRules(t *testing.T) {
	const (
		inPlace  = "CanUpdateMachine"
		patches  = "GeneratePatches"
		name     = "must be the registered name of a handler: <handler>.<ExtensionConfig>"
		noChain  = name + ", two DNS-1123 labels; a chain has no chain as a step"
		forAllow = "spec.steps[0].allow: Forbidden: allow is for steps of the hooks CanUpdateMachine and CanUpdateMachineSet"
		forCover = "spec.onPartialCoverage: Forbidden: onPartialCoverage is for the hooks CanUpdateMachine and CanUpdateMachineSet"
		optional = "spec.steps[0].optional: Forbidden: a step of an in-place hook cannot be optional: Machines would be updated, or replaced, without it"
		noHold   = "spec.steps[0].onHold: Forbidden: onHold is for steps of lifecycle hooks that can hold; a chain of UpdateMachine always stops at a step that is not done"
		chains   = `"AfterClusterUpgrade", "AfterControlPlaneInitialized", "AfterControlPlaneUpgrade", "AfterWorkersUpgrade", "BeforeClusterCreate", "BeforeClusterDelete", ` +
			`"BeforeClusterUpgrade", "BeforeControlPlaneUpgrade", "BeforeWorkersUpgrade", "CanUpdateMachine", "CanUpdateMachineSet", "DiscoverVariables", "GeneratePatches", ` +
			`"GenerateUpgradePlan", "UpdateMachine", "ValidateTopology"`
	)
	with := func(c *v1alpha1.HandlerChain, change func(*v1alpha1.HandlerChain)) *v1alpha1.HandlerChain {
		change(c)
		return c
	}
	covering := func(hookName string, c v1alpha1.OnPartialCoverage) *v1alpha1.HandlerChain {
		return with(chainOf(hookName, "a.x"), func(h *v1alpha1.HandlerChain) { h.Spec.OnPartialCoverage = c })
	}
	allowing := func(hookName string, allow ...string) *v1alpha1.HandlerChain {
		return with(chainOf(hookName, "a.x"), func(h *v1alpha1.HandlerChain) { h.Spec.Steps[0].Allow = allow })
	}
	passing := func(hookName string, optional bool) *v1alpha1.HandlerChain {
		return with(chainOf(hookName, "a.x"), func(h *v1alpha1.HandlerChain) { h.Spec.Steps[0].Optional = &optional })
	}
	holding := func(hookName string, onHold v1alpha1.OnHold) *v1alpha1.HandlerChain {
		return with(chainOf(hookName, "a.x"), func(h *v1alpha1.HandlerChain) { h.Spec.Steps[0].OnHold = onHold })
	}
	set := func(n int) *v1alpha1.HandlerChain {
		return with(chainOf(patches, "a.x"), func(h *v1alpha1.HandlerChain) { h.Spec.Steps[0].Settings = settingsOf(n) })
	}
	named := func(name string) *v1alpha1.HandlerChain {
		return with(chainOf(patches, "a.x"), func(h *v1alpha1.HandlerChain) { h.Name = name })
	}
	label := strings.Repeat("x", 63)
	pointer := "/" + strings.Repeat("x", limits.AllowedPathBytes-1)
	for reason, tt := range map[string]struct {
		chain *v1alpha1.HandlerChain
		want  []string
	}{
		"the longest name":             {named(label), nil},
		"a name that is too long":      {named(label + "x"), []string{`metadata.name: Invalid value: "` + label + `x": must have at most 63 characters, has 64`}},
		"a name that is no label":      {named("a.b"), []string{`metadata.name: Invalid value: "a.b": "a.b" must consist of lower case letters, digits and '-', and begin and end with a letter or digit`}},
		"no hook":                      {chainOf("", "a.x"), []string{"spec.hook: Required value: must be the name of a hook"}},
		"a misspelt hook":              {chainOf("GeneratePatchs", "a.x"), []string{`spec.hook: Invalid value: "GeneratePatchs": not a hook that can have a chain: did you mean "GeneratePatches"?`}},
		"a hook in lower case":         {chainOf("generatepatches", "a.x"), []string{`spec.hook: Invalid value: "generatepatches": not a hook that can have a chain: did you mean "GeneratePatches"?`}},
		"an unknown hook":              {chainOf("BeforeCoffee", "a.x"), []string{`spec.hook: Unsupported value: "BeforeCoffee": supported values: ` + chains}},
		"a hook without handlers":      {chainOf("Discovery", "a.x"), []string{`spec.hook: Unsupported value: "Discovery": supported values: ` + chains}},
		"no steps":                     {chainOf(patches), []string{"spec.steps: Required value: must have the handlers that the chain consists of"}},
		"64 steps":                     {chainOf(patches, numbered(64, "h%d.x")...), nil},
		"65 steps":                     {chainOf(patches, numbered(65, "h%d.x")...), []string{"spec.steps: Too many: 65: must have at most 64 items"}},
		"the same handler twice":       {chainOf(patches, "a.x", "b.x", "a.x"), []string{`spec.steps[2].handler: Duplicate value: "a.x"`}},
		"a step without a handler":     {chainOf(patches, ""), []string{"spec.steps[0].handler: Required value: " + name}},
		"a chain, which has no dot":    {chainOf(patches, "platform-patches"), []string{`spec.steps[0].handler: Invalid value: "platform-patches": ` + noChain}},
		"a handler that is no label":   {chainOf(patches, "A.x"), []string{`spec.steps[0].handler: Invalid value: "A.x": ` + noChain}},
		"an extension that is none":    {chainOf(patches, "a.x.y"), []string{`spec.steps[0].handler: Invalid value: "a.x.y": ` + noChain}},
		"the longest names of both":    {chainOf(patches, label+"."+label), nil},
		"256 settings":                 {set(256), nil},
		"257 settings":                 {set(257), []string{"spec.steps[0].settings: Too many: 257: must have at most 256 items"}},
		"optional":                     {passing(patches, true), nil},
		"optional in place":            {passing(inPlace, true), []string{optional}},
		"optional in UpdateMachine":    {passing("UpdateMachine", true), []string{optional}},
		"not optional in place":        {passing(inPlace, false), nil},
		"coverage of other hooks":      {covering("UpdateMachine", v1alpha1.OnPartialCoverageBlock), []string{forCover}},
		"coverage that is none":        {covering(inPlace, "block"), []string{`spec.onPartialCoverage: Unsupported value: "block": supported values: "Block", "Replace"`}},
		"a hold that stops":            {holding("BeforeClusterDelete", v1alpha1.OnHoldStop), nil},
		"a hold of a hook without":     {holding("AfterControlPlaneInitialized", v1alpha1.OnHoldStop), []string{noHold}},
		"a hold of work":               {holding("UpdateMachine", v1alpha1.OnHoldContinue), []string{noHold}},
		"a hold that is none":          {holding("BeforeClusterDelete", "stop"), []string{`spec.steps[0].onHold: Unsupported value: "stop": supported values: "Continue", "Stop"`}},
		"paths of other hooks":         {allowing("UpdateMachine", "/machine/spec"), []string{forAllow}},
		"64 paths":                     {allowing(inPlace, numbered(64, "/machine/%d")...), nil},
		"65 paths":                     {allowing(inPlace, numbered(65, "/machine/%d")...), []string{"spec.steps[0].allow: Too many: 65: must have at most 64 items"}},
		"the longest path":             {allowing(inPlace, pointer), nil},
		"a path that is too long":      {allowing(inPlace, "/machine", pointer+"x"), []string{"spec.steps[0].allow[1]: Too long: may not be more than 256 bytes"}},
		"a path that is no pointer":    {allowing(inPlace, "machine/spec"), []string{`spec.steps[0].allow[0]: Invalid value: "machine/spec": must be a JSON pointer, such as /machine/spec/version`}},
		"a path to everything":         {allowing(inPlace, "/"), []string{`spec.steps[0].allow[0]: Invalid value: "/": must be a JSON pointer, such as /machine/spec/version`}},
		"a path to an empty name":      {allowing(inPlace, "//spec"), []string{`spec.steps[0].allow[0]: Invalid value: "//spec": must be a JSON pointer, such as /machine/spec/version`}},
		"a path twice":                 {allowing(inPlace, "/machine", "/machine"), []string{`spec.steps[0].allow[1]: Duplicate value: "/machine"`}},
		"of an unknown hook, the rest": {with(chainOf("", "a"), func(c *v1alpha1.HandlerChain) { c.Spec.OnPartialCoverage = "no" }), []string{"spec.hook: Required value: must be the name of a hook", `spec.onPartialCoverage: Unsupported value: "no": supported values: "Block", "Replace"`, `spec.steps[0].handler: Invalid value: "a": ` + noChain}},
	} {
		_, errs := Compile(tt.chain, catalog.New())
		var got []string
		for _, err := range errs {
			got = append(got, err.Error())
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", reason, diff)
		}
	}
}

func TestJudge(t *testing.T) {
	gh := func(name string) hook.GroupHook { return hook.GroupHook{Group: hook.Group, Hook: name} }
	of := func(name, hookName string, sole bool, handlers ...string) registry.Chain {
		c := registry.Chain{Name: name, Hook: gh(hookName), OneHandler: sole, Strict: sole}
		for _, h := range handlers {
			handler, optional := strings.CutSuffix(h, "?")
			c.Steps = append(c.Steps, registry.ChainStep{Handler: handler, Optional: optional})
		}
		return c
	}
	const puts = "; put them into one HandlerChain"
	const twelve = "h00.none h01.none h02.none h03.none h04.none h05.none h06.none h07.none h08.none h09.none h10.none h11.none " +
		"h12.none h13.none h14.none h15.none h16.none h17.none h18.none h19.none h20.none"
	for reason, tt := range map[string]struct {
		chains []registry.Chain // the first is judged
		want   kinds.Verdict
		ready  metav1.ConditionStatus
	}{
		"all steps are there": {
			[]registry.Chain{of("c", "GeneratePatches", false, "p.acme")}, kinds.Verdict{Reason: "Ready", Message: "Calls go to 1 handler"}, "True",
		},
		"an optional step is not": {
			[]registry.Chain{of("c", "GeneratePatches", false, "p.acme", "x.none?")}, kinds.Verdict{Reason: "Ready", Message: "Calls go to 1 handler, and skip 1 that are not registered"}, "True",
		},
		"the name of an ExtensionConfig, which it precedes": {
			[]registry.Chain{of("acme", "GeneratePatches", false, "p.acme")}, kinds.Verdict{Reason: "Ready", Message: "Calls go to 1 handler"}, "True",
		},
		"the name of an ExtensionRollout": {
			[]registry.Chain{of("roll", "GeneratePatches", false, "p.acme")}, kinds.Verdict{Reason: "NameCollision", Message: `The name is also the name of ExtensionRollout "roll": rename the chain`}, "False",
		},
		"steps that are missing, of another hook, or ignored": {
			[]registry.Chain{of("c", "CanUpdateMachine", true, "x.none", "p.acme", "i.acme", "w.acme")}, kinds.Verdict{Reason: "StepMissing", Message: `Calls fail: step 1: no handler "x.none" is registered; ` +
				`step 2: handler "p.acme" serves the hook GeneratePatches, not CanUpdateMachine; step 3: handler "i.acme" has failurePolicy Ignore, so a failure would look like an answer: ` +
				`set failurePolicy: Fail in its ExtensionPolicy; step 4: no handler "w.acme" is registered`}, "False",
		},
		"more missing steps than a message has room for": {
			[]registry.Chain{of("c", "GeneratePatches", false, strings.Fields(twelve)...)}, kinds.Verdict{Reason: "StepMissing", Message: "Calls fail: " + missingSteps(20) + "; and 1 more"}, "False",
		},
		"a handler that is no step is offered beside it": {
			[]registry.Chain{of("c", "UpdateMachine", true, "u.acme")}, kinds.Verdict{Reason: "SeveralOffered", Message: "Cluster API accepts only one handler of UpdateMachine, but 2 are offered: c, v--acme" + puts}, "True",
		},
		"another chain is offered beside it": {
			[]registry.Chain{of("c", "UpdateMachine", true, "u.acme"), of("d", "UpdateMachine", true, "u.acme", "v.acme")},
			kinds.Verdict{Reason: "SeveralOffered", Message: "Cluster API accepts only one handler of UpdateMachine, but 2 are offered: c, d" + puts}, "True",
		},
		"a chain whose name is taken is not": {
			[]registry.Chain{of("c", "UpdateMachine", true, "u.acme", "v.acme"), of("roll", "UpdateMachine", true, "u.acme")}, kinds.Verdict{Reason: "Ready", Message: "Calls go to 2 handlers"}, "True",
		},
		"several of a hook that may have them": {
			[]registry.Chain{of("c", "GeneratePatches", false, "p.acme"), of("d", "GeneratePatches", false, "q.acme")}, kinds.Verdict{Reason: "Ready", Message: "Calls go to 1 handler"}, "True",
		},
	} {
		r := registry.New()
		handler := func(name, hookName string, p hook.FailurePolicy) registry.Handler {
			return registry.Handler{Name: name, Hook: hook.GroupVersionHook{Group: hook.Group, Version: hook.Version, Hook: hookName}, Timeout: 1, FailurePolicy: p}
		}
		if err := r.Apply(registry.Registration{
			Name: "acme", ClientConfig: registry.ClientConfig{URL: "https://acme"}, Handlers: []registry.Handler{
				handler("p", "GeneratePatches", hook.Fail), handler("q", "GeneratePatches", hook.Fail), handler("u", "UpdateMachine", hook.Fail),
				handler("v", "UpdateMachine", hook.Fail), handler("i", "CanUpdateMachine", hook.Ignore),
			},
		}); err != nil {
			t.Fatal(err)
		}
		name := tt.chains[0].Name
		r.SetRollouts([]registry.Rollout{{Name: "roll", Stable: "none"}})
		r.SetChains(tt.chains)
		c, _ := r.Snapshot().Chain(name)
		got := Judge(r.Snapshot(), c, true)
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", reason, diff)
		}
		condition := got.ReadyCondition(7)
		if diff := cmp.Diff(metav1.Condition{Type: "Ready", Status: tt.ready, ObservedGeneration: 7, Reason: tt.want.Reason, Message: tt.want.Message}, condition); diff != "" {
			t.Errorf("%s: condition (-want +got):\n%s", reason, diff)
		}
	}
}

// missingSteps returns what is said of the first n steps: h00.none, h01.none and so on.
func missingSteps(n int) string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf(`step %d: no handler "h%02d.none" is registered`, i+1, i)
	}
	return strings.Join(list, "; ")
}

// Steps of in-place chains select Clusters, whose labels a gateway without a cluster does not know. Those of other hooks
// select by what the request has.
func TestJudgeWithoutCluster(t *testing.T) {
	const message = `Calls fail: the objectSelector of ExtensionPolicy "red" for handler "u.acme" selects Clusters, but a gateway without a cluster does not know the labels of Clusters: use matchConditions or a namespaceSelector`
	r := registry.New()
	r.SetPolicies("acme", registry.Policies{All: &policy.Policy{Name: "red", ObjectSelector: labels.SelectorFromSet(labels.Set{"team": "red"})}})
	if err := r.Apply(registry.Registration{Name: "acme", ClientConfig: registry.ClientConfig{URL: "https://acme"}, Handlers: []registry.Handler{
		{Name: "u", Hook: hook.GroupVersionHook{Group: hook.Group, Version: hook.Version, Hook: "UpdateMachine"}, Timeout: 1, FailurePolicy: hook.Fail},
	}}); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		strict, inCluster bool
		want              kinds.Verdict
	}{
		{true, false, kinds.Verdict{Reason: "StepMissing", Message: message}},
		{true, true, kinds.Verdict{Reason: "Ready", Message: "Calls go to 1 handler"}},
		{false, false, kinds.Verdict{Reason: "Ready", Message: "Calls go to 1 handler"}},
	} {
		c := registry.Chain{
			Name: "c", Hook: hook.GroupHook{Group: hook.Group, Hook: "UpdateMachine"}, Strict: tt.strict,
			Steps: []registry.ChainStep{{Handler: "u.acme"}},
		}
		if diff := cmp.Diff(tt.want, Judge(r.Snapshot(), &c, tt.inCluster)); diff != "" {
			t.Errorf("%+v (-want +got):\n%s", tt, diff)
		}
	}
}

// A chain waits for a step that a policy withholds, and says so.
func TestJudgeWithheld(t *testing.T) {
	r := registry.New()
	r.SetPolicies("acme", registry.Policies{All: &policy.Policy{Name: "vetted", Hooks: []string{"ValidateTopology"}}})
	if err := r.Apply(registry.Registration{Name: "acme", ClientConfig: registry.ClientConfig{URL: "https://acme"}, Handlers: []registry.Handler{
		{Name: "p", Hook: hook.GroupVersionHook{Group: hook.Group, Version: hook.Version, Hook: "GeneratePatches"}, Timeout: 1, FailurePolicy: hook.Fail},
	}}); err != nil {
		t.Fatal(err)
	}
	c := registry.Chain{Name: "c", Hook: hook.GroupHook{Group: hook.Group, Hook: "GeneratePatches"}, Steps: []registry.ChainStep{{Handler: "p.acme"}}}
	r.SetChains([]registry.Chain{c})
	const want = `Calls fail: step 1: handler "p.acme" is not served: spec.hooks of ExtensionPolicy "vetted" does not list the hook GeneratePatches`
	if got := Judge(r.Snapshot(), &c, true); got.Message != want {
		t.Errorf("got %s, want %s", got.Message, want)
	}
}
