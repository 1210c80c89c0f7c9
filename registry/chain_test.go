// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package registry_test

import (
	"strings"
	"testing"

	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/registry"
)

// A chain is called only if each step has a handler of its hook; what keeps it from that is said for every step.
func TestStepsOf(t *testing.T) {
	gh := hook.GroupHook{Group: hook.Group, Hook: "CanUpdateMachine"}
	steps := func(names ...string) []registry.ChainStep {
		var all []registry.ChainStep
		for _, n := range names {
			name, optional := strings.CutSuffix(n, "?")
			all = append(all, registry.ChainStep{Handler: name, Optional: optional})
		}
		return all
	}
	for reason, tt := range map[string]struct {
		chain registry.Chain
		want  string // names of steps, or the error
	}{
		"all registered":                   {registry.Chain{Steps: steps("a.one", "b.one")}, "a.one b.one"},
		"optional and not registered":      {registry.Chain{Steps: steps("a.one", "x.one?", "x.none?")}, "a.one"},
		"not registered":                   {registry.Chain{Steps: steps("x.one", "y.none")}, "step 1: no handler \"x.one\" is registered\nstep 2: no handler \"y.none\" is registered"},
		"optional and not known yet":       {registry.Chain{Steps: steps("x.late?")}, `step 1: handler "x.late" is not known yet`},
		"another hook":                     {registry.Chain{Steps: steps("patch.one")}, `step 1: handler "patch.one" serves the hook GeneratePatches, not CanUpdateMachine`},
		"Ignore":                           {registry.Chain{Strict: true, Steps: steps("ignored.one")}, `step 1: handler "ignored.one" has failurePolicy Ignore, so a failure would look like an answer: set failurePolicy: Fail in its ExtensionPolicy`},
		"Ignore in a hook that allows it":  {registry.Chain{Steps: steps("ignored.one")}, "ignored.one"},
		"the name of an ExtensionConfig":   {registry.Chain{Name: "one"}, ""},
		"the name of one not known yet":    {registry.Chain{Name: "late"}, ""},
		"the label of a handler":           {registry.Chain{Name: "a--one"}, ""},
		"the name of a handler for a hook": {registry.Chain{Name: "beforeclustercreate"}, `its name is also the name of the gateway's own handler of BeforeClusterCreate: rename the chain`},
	} {
		r := registry.New(hook.GroupHook{Group: hook.Group, Hook: "BeforeClusterCreate"})
		handler := func(name, h string, p hook.FailurePolicy) registry.Handler {
			return registry.Handler{
				Name: name, Hook: hook.GroupVersionHook{Group: hook.Group, Version: "v1alpha1", Hook: h}, Timeout: 1, FailurePolicy: p,
			}
		}
		if err := r.Apply(registry.Registration{
			Name: "one", ClientConfig: registry.ClientConfig{URL: "https://one"}, Handlers: []registry.Handler{
				handler("a", gh.Hook, hook.Fail), handler("b", gh.Hook, hook.Fail), handler("ignored", gh.Hook, hook.Ignore),
				handler("patch", "GeneratePatches", hook.Fail),
			},
		}); err != nil {
			t.Fatal(err)
		}
		r.SetUndiscovered([]registry.Undiscovered{{Name: "late", Default: hook.Fail}})
		if tt.chain.Name == "" {
			tt.chain.Name = "chain"
		}
		tt.chain.Hook = gh
		r.SetChains([]registry.Chain{tt.chain})
		c, ok := r.Snapshot().Chain(strings.ToUpper(tt.chain.Name))
		if !ok {
			t.Fatalf("%s: the chain is not found", reason)
		}
		found, err := r.Snapshot().StepsOf(c)
		var got []string
		for _, s := range found {
			got = append(got, s.Entry.Name)
		}
		text := strings.Join(got, " ")
		if err != nil {
			text = err.Error()
		}
		if text != tt.want {
			t.Errorf("%s: got %s, want %s", reason, text, tt.want)
		}
	}
}

// While a file cannot be read, an optional step of an ExtensionConfig that it may define is not passed over.
func TestStepsOfUnreadableFiles(t *testing.T) {
	r := registry.New()
	r.SetUndiscovered([]registry.Undiscovered{{Unreadable: "file x.yaml", Default: hook.Fail}})
	r.SetChains([]registry.Chain{{Name: "chain", Steps: []registry.ChainStep{{Handler: "a.none", Optional: true}}}})
	if _, err := r.Snapshot().StepsOf(r.Snapshot().Chains()[0]); err == nil {
		t.Error("the step is passed over")
	}
}

// Chains stand for their steps, and are offered beside the handlers that are no steps, unless their names are taken.
func TestOfferedOf(t *testing.T) {
	gh := hook.GroupHook{Group: hook.Group, Hook: "UpdateMachine"}
	r := registry.New(hook.GroupHook{Group: hook.Group, Hook: "Taken"})
	var handlers []registry.Handler
	for _, name := range []string{"a", "b", "c"} {
		handlers = append(handlers, registry.Handler{
			Name: name, Hook: hook.GroupVersionHook{Group: hook.Group, Version: hook.Version, Hook: gh.Hook}, Timeout: 1, FailurePolicy: hook.Fail,
		})
	}
	if err := r.Apply(registry.Registration{Name: "one", ClientConfig: registry.ClientConfig{URL: "https://one"}, Handlers: handlers}); err != nil {
		t.Fatal(err)
	}
	chain := func(name, hookName string, steps ...string) registry.Chain {
		c := registry.Chain{Name: name, Hook: hook.GroupHook{Group: hook.Group, Hook: hookName}, OneHandler: true}
		for _, s := range steps {
			c.Steps = append(c.Steps, registry.ChainStep{Handler: s})
		}
		return c
	}
	for reason, tt := range map[string]struct {
		chains []registry.Chain
		want   string
	}{
		"no chain":                        {nil, "a--one b--one c--one"},
		"one for some":                    {[]registry.Chain{chain("z", gh.Hook, "a.one", "b.one")}, "c--one z"},
		"one for all, one step not there": {[]registry.Chain{chain("z", gh.Hook, "a.one", "b.one", "c.one", "d.none")}, "z"},
		"two":                             {[]registry.Chain{chain("z", gh.Hook, "a.one"), chain("y", gh.Hook, "a.one", "b.one")}, "c--one y z"},
		"one with the name of an ExtensionConfig": {[]registry.Chain{chain("one", gh.Hook, "a.one", "b.one")}, "c--one one"},
		"one whose name is taken":                 {[]registry.Chain{chain("taken", gh.Hook, "a.one", "b.one", "c.one")}, "a--one b--one c--one"},
		"one of another hook":                     {[]registry.Chain{chain("z", "CanUpdateMachine", "a.one")}, "a--one b--one c--one"},
	} {
		r.SetChains(tt.chains)
		if got := strings.Join(r.Snapshot().OfferedOf(gh), " "); got != tt.want {
			t.Errorf("%s: %s, want %s", reason, got, tt.want)
		}
		if chains, steps := r.Snapshot().StandsFor(gh); len(tt.chains) > 0 && tt.chains[0].Name == "taken" && len(chains)+len(steps) > 0 {
			t.Errorf("%s: it stands for %v", reason, steps)
		}
	}
}
