// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/hook"
)

// TestRulesBeginAndEndAtTheirRelease holds each rule that depends on a release at the last release without it and the
// first with it, and its patch releases and candidates.
func TestRulesBeginAndEndAtTheirRelease(t *testing.T) {
	for name, tt := range map[string]struct {
		rule    string
		handler Handler
		hooks   func(*testing.T) *catalog.Catalog // the product's, if nil
		found   []string                          // FROM>TARGET or TARGET, in which the rule is found
		not     []string                          // in which it is not
	}{
		"a hook that v1.12 has added": {
			rule: ruleNotCalled, handler: handler("h", "CanUpdateMachine"),
			found: []string{"cluster-api=v1.8.0", "cluster-api=v1.11", "cluster-api=v1.11.99"},
			not:   []string{"cluster-api=v1.12.0-rc.0", "cluster-api=v1.12", "cluster-api=v1.12.0", "cluster-api=v1.14.0"},
		},
		"objects that v1.13 has changed": {
			rule: ruleObjectsChange, handler: handler("h", "BeforeClusterCreate"),
			found: []string{"v1.8.0>cluster-api=v1.13.0", "v1.12.99>cluster-api=v1.13.0", "v1.12.0>cluster-api=v1.13.0-rc.0", "v1.13.0>cluster-api=v1.12.99"},
			not: []string{"v1.8.0>cluster-api=v1.12.99", "v1.13.0>cluster-api=v1.14.0", "v1.13.0-rc.0>cluster-api=v1.13.0", "v1.12.0>cluster-api=v1.12.4",
				"cluster-api=v1.13.0"},
		},
		"objects of a hook that has had one version only": {
			rule: ruleObjectsChange, handler: handler("h", "CanUpdateMachine"), not: []string{"v1.12.0>cluster-api=v1.13.0", "v1.11.0>cluster-api=v1.14.0"},
		},
		"objects of a handler that states the older version": {
			rule: ruleMembersLost, handler: handler("h", "BeforeClusterCreate", states("v1beta1")),
			found: []string{"cluster-api=v1.13.0", "v1.12.0>cluster-api=v1.14.0"}, not: []string{"cluster-api=v1.12.99", "v1.13.0>cluster-api=v1.12.0"},
		},
		"objects of a handler that states the newer version": {
			rule: ruleMembersLost, handler: handler("h", "BeforeClusterCreate", states("v1beta2")), not: []string{"cluster-api=v1.12.0", "cluster-api=v1.13.0"},
		},
		"objects of a handler that states nothing": {
			rule: ruleNotStated, handler: handler("h", "BeforeWorkersUpgrade"),
			found: []string{"cluster-api=v1.12.0", "cluster-api=v1.13.0", "v1.11.99>cluster-api=v1.13.0"},
			not:   []string{"v1.12.0>cluster-api=v1.13.0", "v1.13.0>cluster-api=v1.14.0", "cluster-api=v1.11.0"},
		},
		"variables, whose metadata v1.13 has moved": {
			rule: ruleVariables, handler: handler("h", "DiscoverVariables"),
			found: []string{"v1.12.99>cluster-api=v1.13.0", "v1.13.0>cluster-api=v1.12.99"}, not: []string{"v1.11.0>cluster-api=v1.12.99", "v1.13.0>cluster-api=v1.14.0"},
		},
		"a version without a conversion": {
			rule: ruleCannotConvert, handler: handler("h", "BeforeClusterCreate", states("v1alpha4")),
			found: []string{"cluster-api=v1.12.0", "cluster-api=v1.13.0"}, not: []string{"hookgate=v0.1.0"},
		},
		"a policy for all, of a version that was never sent": {
			rule: ruleNeverSent, handler: handler("h", "UpdateMachine", policed("p", "v1beta1", true)), found: []string{"cluster-api=v1.12.0", "cluster-api=v1.14.0"},
			not: []string{"cluster-api=v1.11.0"},
		},
		"a policy for all, of a version that was sent once": {
			rule: ruleNeverSent, handler: handler("h", "BeforeClusterCreate", policed("p", "v1beta1", true)), not: []string{"cluster-api=v1.12.0", "cluster-api=v1.14.0"},
		},
		"a policy for one handler": {
			rule: ruleNeverSent, handler: handler("h", "UpdateMachine", policed("p", "v1beta1", false)), not: []string{"cluster-api=v1.14.0"},
		},
		"a version of hooks that came with v0.3": {
			rule: ruleHookUnknown, handler: handler("h", "", drain("v1beta1")), hooks: testHooks,
			found: []string{"hookgate=v0.1.0", "hookgate=v0.2.99"}, not: []string{"hookgate=v0.3.0-rc.1", "hookgate=v0.3.0", "hookgate=v0.4.0"},
		},
		"a version of hooks that goes with v0.3": {
			rule: ruleHookRemoved, handler: handler("h", "", drain("v0alpha1")), hooks: testHooks,
			found: []string{"hookgate=v0.3.0-rc.1", "hookgate=v0.3.0", "hookgate=v0.4.0"}, not: []string{"hookgate=v0.1.0", "hookgate=v0.2.99"},
		},
		"a version of hooks that is deprecated from v0.2 to v0.3": {
			rule: ruleDeprecated, handler: handler("h", "", drain("v0alpha1")), hooks: testHooks,
			found: []string{"hookgate=v0.2.0-rc.1", "hookgate=v0.2.0", "hookgate=v0.2.99"}, not: []string{"hookgate=v0.1.99", "hookgate=v0.3.0"},
		},
		"a version of hooks that is deprecated since v0.4": {
			rule: ruleDeprecated, handler: handler("h", "", drain("v1alpha1")), hooks: testHooks,
			found: []string{"hookgate=v0.4.0-rc.1", "hookgate=v0.4.0", "hookgate=v0.4.1"}, not: []string{"hookgate=v0.3.99"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			for i, questions := range [][]string{tt.found, tt.not} {
				for _, question := range questions {
					target := Target{Hooks: catalog.New(), Lossy: lossy}
					if tt.hooks != nil {
						target.Hooks = tt.hooks(t)
					}
					from, text, ok := strings.Cut(question, ">")
					if !ok {
						from, text = "", question
					}
					if err := target.ParseTarget(text); err != nil {
						t.Fatal(err)
					}
					if from != "" {
						var err error
						if target.From, err = catalog.ClusterAPIReleaseOf(from); err != nil {
							t.Fatal(err)
						}
					}
					report := Judge(Inventory{Extensions: []Extension{{Name: "acme", Handlers: []Handler{tt.handler}}}}, target)
					found := slices.ContainsFunc(report.Findings, func(f Finding) bool { return f.Rule == tt.rule })
					if want := i == 0; found != want {
						t.Errorf("%s: %s found: %v, want %v: %+v", question, tt.rule, found, want, report.Findings)
					}
				}
			}
		})
	}
}

// TestAGatewayHasAllLifecycleHooks holds that an extension without one of them is judged as any other.
func TestAGatewayHasAllLifecycleHooks(t *testing.T) {
	target := Target{Hooks: catalog.New(), Lossy: lossy}
	if err := target.ParseTarget("cluster-api=v1.14.0"); err != nil {
		t.Fatal(err)
	}
	var all []Handler
	for _, h := range target.Hooks.Hubs() {
		if h.Mergeable {
			all = append(all, handler(strings.ToLower(h.Hook), h.Hook))
		}
	}
	renamed := slices.Clone(all)
	renamed[0].Name += "-mine"
	for name, tt := range map[string]struct {
		handlers []Handler
		gateway  bool
	}{
		"all":                          {all, true},
		"all and one more":             {append(slices.Clone(all), handler("mine", "GeneratePatches")), true},
		"all but the last":             {all[:len(all)-1], false},
		"one of them has another name": {renamed, false},
		"none":                         {nil, false},
	} {
		report := Judge(Inventory{Extensions: []Extension{{Name: "gate", Handlers: tt.handlers}}}, target)
		if got := slices.ContainsFunc(report.Findings, func(f Finding) bool { return f.Rule == ruleGateway }); got != tt.gateway {
			t.Errorf("%s: gateway: %v, want %v", name, got, tt.gateway)
		}
		if want := len(tt.handlers); report.Handlers != want || len(report.Findings) < want {
			t.Errorf("%s: %d handlers and %d findings, want %d of each at least", name, report.Handlers, len(report.Findings), want)
		}
	}
}

// TestUnresolvedReferencesAreCutAfterThree holds the text at the limit and one beyond.
func TestUnresolvedReferencesAreCutAfterThree(t *testing.T) {
	for want, unresolved := range map[string][]string{
		"a":                   {"a"},
		"a; b; c":             {"a", "b", "c"},
		"a; b; c; and 1 more": {"a", "b", "c", "d"},
		"a; b; c; and 2 more": {"a", "b", "c", "d", "e"},
	} {
		target := Target{Hooks: catalog.New(), Lossy: func(string, string, string) []string { return nil }}
		if err := target.ParseTarget("cluster-api=v1.13.0"); err != nil {
			t.Fatal(err)
		}
		report := Judge(Inventory{Unresolved: unresolved, Unchecked: "forbidden", Extensions: []Extension{{Name: "acme", Handlers: []Handler{
			handler("a", "BeforeClusterCreate", states("v1beta1")), handler("b", "CanUpdateMachine", states("v1beta1")),
		}}}}, target)
		if got := report.Findings[0]; got.Rule != ruleCannotConvert || !strings.HasSuffix(got.Problem, "in use to v1beta1: "+want) {
			t.Errorf("got %s: %s, want it to end with %s", got.Rule, got.Problem, want)
		}
		// Machines refer to nothing whose version must be known.
		if n := len(report.Findings); n != 2 || report.Findings[1].Level != OK {
			t.Errorf("%d findings, want one and that all is well with the other handler: %+v", n, report.Findings)
		}
	}
}

// TestSubjectsCountOnce holds that a handler with several findings counts as its worst one, and an empty report as
// well.
func TestSubjectsCountOnce(t *testing.T) {
	one := func(levels ...Level) []Finding {
		var list []Finding
		for _, l := range levels {
			list = append(list, Finding{Level: l, ExtensionConfig: "acme", Handler: "h"})
		}
		return list
	}
	for name, tt := range map[string]struct {
		findings []Finding
		worst    Level
		counts   [4]int // break, degrade, warn, ok
	}{
		"none":                {nil, OK, [4]int{}},
		"ok":                  {one(OK), OK, [4]int{0, 0, 0, 1}},
		"warn and degrade":    {one(Warn, Degrade, Warn), Degrade, [4]int{0, 1, 0, 0}},
		"break, last":         {one(OK, Warn, Break), Break, [4]int{1, 0, 0, 0}},
		"of two subjects":     {append(one(Warn), Finding{Level: Warn, ExtensionConfig: "acme"}), Warn, [4]int{0, 0, 2, 0}},
		"same name elsewhere": {append(one(Warn), Finding{Level: Break, ExtensionConfig: "other", Handler: "h"}), Break, [4]int{1, 0, 1, 0}},
	} {
		r := Report{Findings: tt.findings}
		got := [4]int{r.Count(Break), r.Count(Degrade), r.Count(Warn), r.Count(OK)}
		if r.Worst() != tt.worst || got != tt.counts {
			t.Errorf("%s: worst %s, counts %v, want %s and %v", name, r.Worst(), got, tt.worst, tt.counts)
		}
	}
	for i, l := range []Level{Break, Degrade, Warn, OK} {
		for j, o := range []Level{Break, Degrade, Warn, OK} {
			if got := l.AtLeast(o); got != (i <= j) {
				t.Errorf("%s.AtLeast(%s) = %v", l, o, got)
			}
		}
	}
}

// TestPoliciesCarryTheWatchFilter holds that what is proposed is seen by the gateway that asked for it.
func TestPoliciesCarryTheWatchFilter(t *testing.T) {
	for _, filter := range []string{"", "blue"} {
		target := Target{Hooks: catalog.New(), Lossy: lossy}
		if err := target.ParseTarget("cluster-api=v1.13.0"); err != nil {
			t.Fatal(err)
		}
		target.From = releaseOf(t, "v1.12.0")
		report := Judge(Inventory{WatchFilter: filter, Extensions: []Extension{{Name: "acme", Handlers: []Handler{
			handler("create", "BeforeClusterCreate"), handler("update", "UpdateMachine", policed("p", hook.ClusterAPIV1Beta1, true)),
		}}}}, target)
		if len(report.Policies) != 2 {
			t.Fatalf("%d policies, want one for all and one for update: %+v", len(report.Policies), report.Policies)
		}
		for _, p := range report.Policies {
			label := fmt.Sprintf("cluster.x-k8s.io/watch-filter: %q", filter)
			if got := strings.Contains(p.Manifest, label); got != (filter != "") {
				t.Errorf("filter %q: manifest has the label: %v\n%s", filter, got, p.Manifest)
			}
		}
	}
}

func releaseOf(t *testing.T, version string) *catalog.ClusterAPIRelease {
	t.Helper()
	r, err := catalog.ClusterAPIReleaseOf(version)
	if err != nil {
		t.Fatal(err)
	}
	return r
}
