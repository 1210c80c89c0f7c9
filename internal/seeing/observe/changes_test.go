// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"

	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/status"
	"github.com/hookgate/hookgate/registry"
)

func extensionAt(name, url string, handlers ...string) registry.Registration {
	r := registry.Registration{Name: name, ClientConfig: registry.ClientConfig{Owner: name, URL: url}}
	for _, h := range handlers {
		r.Handlers = append(r.Handlers, registry.Handler{
			Name: h, Timeout: time.Second, FailurePolicy: hook.Fail,
			Hook: hook.GroupVersionHook{Group: hook.Group, Version: hook.Version, Hook: "BeforeClusterCreate"},
		})
	}
	return r
}

// rule answers as a HookRule with some content.
type rule struct{ content string }

func (rule) Kind() string { return "HookRule" }

func (rule) Answer(context.Context, proto.Message, registry.Guard) (proto.Message, error) {
	return nil, nil
}

func ruleWith(content string) []registry.Registration {
	r := extensionAt("size", "", "rule")
	r.ClientConfig, r.InProcess = registry.ClientConfig{}, rule{content}
	return []registry.Registration{r}
}

func register(t *testing.T, r *registry.Registry, regs ...registry.Registration) {
	t.Helper()
	for i, err := range r.ApplyAll(regs) {
		if err != nil {
			t.Fatalf("%s: %v", regs[i].Name, err)
		}
	}
}

// told returns the texts of the changes from a time on, about an extension or all.
func told(c *changes, since time.Time, extension string) []string {
	texts := []string{}
	for _, change := range c.Since(since, extension) {
		texts = append(texts, change.Text)
	}
	return texts
}

func TestChangesOfTheRegistry(t *testing.T) {
	var c changes
	r := registry.New()
	register(t, r, extensionAt("acme", "https://acme", "a"))
	c.look(time.Unix(1, 0), r.Snapshot()) // not ready
	r.SetReady()
	c.look(time.Unix(2, 0), r.Snapshot())
	if got := told(&c, time.Time{}, ""); len(got) != 0 {
		t.Errorf("%q, want nothing: this is how it starts", got)
	}
	first, second := &registry.Policy{Name: "first"}, &registry.Policy{Name: "first"}
	many := func(names func(name string)) {
		for i := range 8 {
			names(fmt.Sprintf("many-%d", i))
		}
	}
	for i, step := range []struct {
		name   string
		change func()
		want   []string
	}{
		{"nothing", func() { register(t, r, extensionAt("acme", "https://acme", "a")) }, []string{}},
		{"one more", func() { register(t, r, extensionAt("quota", "https://quota", "a")) }, []string{"quota registered"}},
		{"elsewhere", func() { register(t, r, extensionAt("acme", "https://other", "a")) }, []string{"acme got another URL"}},
		{"more handlers", func() { register(t, r, extensionAt("acme", "https://other", "a", "b")) }, []string{"acme got other handlers"}},
		{"a policy", func() { r.SetPolicies("acme", registry.Policies{All: first}) }, []string{"policy first added"}},
		{"another content", func() { r.SetPolicies("acme", registry.Policies{All: second}) }, []string{"policy first changed"}},
		{"another target", func() {
			r.SetAllPolicies(map[string]registry.Policies{"acme": {}, "quota": {Handlers: map[string]*registry.Policy{"a": second}}})
		}, []string{"policy first changed"}},
		{"no policy", func() { r.SetPolicies("quota", registry.Policies{}) }, []string{"policy first removed"}},
		{"a rule", func() { r.SetLocal("HookRule", ruleWith("small")) }, []string{"HookRule size registered"}},
		{"another rule", func() { r.SetLocal("HookRule", ruleWith("large")) }, []string{"HookRule size changed"}},
		{"the same rule", func() { r.SetLocal("HookRule", ruleWith("large")) }, []string{}},
		{"no rule", func() { r.SetLocal("HookRule", nil) }, []string{"HookRule size removed"}},
		{"one less, and one more", func() { r.Remove("acme"); register(t, r, extensionAt("dns", "https://dns", "a")) }, []string{"dns registered", "acme removed"}},
		{"many", func() {
			many(func(name string) { register(t, r, extensionAt(name, "https://many", "a")) })
		}, []string{"many-0, many-1, many-2, many-3, many-4 and 3 more registered"}},
		{"none of them", func() { many(func(name string) { r.Remove(name) }) }, []string{"many-0, many-1, many-2, many-3, many-4 and 3 more removed"}},
	} {
		at := time.Unix(int64(10+i), 0)
		step.change()
		c.look(at, r.Snapshot())
		c.look(at, r.Snapshot()) // which finds nothing again
		got := told(&c, at, "")
		if diff := cmp.Diff(step.want, got); diff != "" {
			t.Errorf("%s: -want +got\n%s", step.name, diff)
		}
	}
	want := []string{"quota registered", "policy first changed", "policy first removed"}
	if diff := cmp.Diff(want, told(&c, time.Time{}, "quota")); diff != "" {
		t.Errorf("about quota: -want +got\n%s", diff)
	}
}

func TestChangesOfRollouts(t *testing.T) {
	var c changes
	of := func(stable, candidate string, moved int) status.Rollout {
		return status.Rollout{Name: "acme", Stable: stable, Candidate: candidate, Moved: moved}
	}
	for i, step := range []struct {
		now  status.Rollout
		want []string
	}{
		{of("v6", "", 0), []string{}}, // this is how it starts
		{of("v6", "v7", 0), []string{"rollout acme: v7 beside v6"}},
		{of("v6", "v7", 1), []string{"rollout acme: 1 Cluster moved to v7, 1 in all"}},
		{of("v6", "v7", 4), []string{"rollout acme: 3 Clusters moved to v7, 4 in all"}},
		{of("v6", "v7", 4), []string{}},
		{of("v6", "v7", 3), []string{"rollout acme: Clusters that have moved to v7: 1 fewer, 3 in all"}},
		{of("v7", "", 0), []string{"rollout acme: all Clusters to v7"}},
	} {
		at := time.Unix(int64(i), 0)
		c.lookAtRollouts(at, []status.Rollout{step.now})
		if diff := cmp.Diff(step.want, told(&c, at, "")); diff != "" {
			t.Errorf("step %d: -want +got\n%s", i, diff)
		}
	}
	if got := told(&c, time.Unix(6, 0), "v6"); len(got) != 1 {
		t.Errorf("%q is about the version that all Clusters have left, want one change", got)
	}
}
