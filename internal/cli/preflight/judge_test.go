// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/hookgate/hookgate/catalog"
	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/test/hookversions"
)

// testHooks is the catalog of a group with versions that the product does not have, together with those of the product,
// of which Cluster API's are deprecated there.
func testHooks(t *testing.T) *catalog.Catalog {
	t.Helper()
	sources := append(hookversions.Sources(), catalog.Source{
		Group: hook.Group, Version: hook.Version, Lifetime: catalog.Lifetime{Introduced: "v0.1.0", Deprecated: "v0.4.0"},
		Files: []protoreflect.FileDescriptor{
			hooksv1alpha1.File_hookgate_hooks_v1alpha1_discovery_proto,
			hooksv1alpha1.File_hookgate_hooks_v1alpha1_lifecycle_hooks_proto,
		},
	})
	c, err := catalog.Build(hookversions.Releases(), append(sources, catalog.Infrastructure()...)...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// ownHooks is the catalog of the command.
func ownHooks(t *testing.T) *catalog.Catalog {
	t.Helper()
	c, err := catalog.With(catalog.Own()...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// ofMachines makes a handler one of a Machine.
func ofMachines(h *Handler) {
	h.Hook.Group, h.Hook.Version = hook.MachinesGroup, hook.MachinesVersion
}

// drain makes a handler one of the group with several versions.
func drain(version string) func(*Handler) {
	return func(h *Handler) {
		h.Hook = hook.GroupVersionHook{Group: hookversions.Group, Version: version, Hook: hookversions.BeforeNodeDrain}
	}
}

// lossy says that every conversion to an older version loses one member.
func lossy(kind, from, to string) []string {
	if from <= to {
		return nil
	}
	return []string{strings.ToLower(kind) + ".spec.new"}
}

func handler(name, hookName string, change ...func(*Handler)) Handler {
	h := Handler{Name: name, Hook: hook.GroupVersionHook{Group: hook.Group, Version: hook.Version, Hook: hookName}}
	for _, c := range change {
		c(&h)
	}
	return h
}

func states(version string) func(*Handler)    { return func(h *Handler) { h.States = version } }
func ofVersion(version string) func(*Handler) { return func(h *Handler) { h.Hook.Version = version } }
func policed(name, states string, forAll bool) func(*Handler) {
	return func(h *Handler) { h.Policy = &Policy{Name: name, States: states, ForAll: forAll} }
}

func TestJudge(t *testing.T) {
	// calls is a release of Cluster API that calls a hook of the test's group.
	calls := func(version string) *catalog.ClusterAPIRelease {
		return &catalog.ClusterAPIRelease{Name: "v9.9", Hooks: []catalog.ClusterAPIHook{
			{GroupVersionHook: hook.GroupVersionHook{Group: hookversions.Group, Version: version, Hook: hookversions.BeforeNodeDrain}},
		}}
	}
	const change = "break objects-change "
	for name, tt := range map[string]struct {
		reason   string
		targets  []string
		from     string
		hooks    func(*testing.T) *catalog.Catalog // the product's, if nil
		release  *catalog.ClusterAPIRelease        // in place of a target
		handlers []Handler
		want     []string // level, rule and handler of all findings
		problem  string   // of the first
		remedy   string   // of the first
		lost     []string // of the first
		policies []string // name and version
	}{
		"Changed": {
			reason: "an extension of v1.12 would read members that are not there", targets: []string{"cluster-api=v1.14.0"}, from: "v1.12.4",
			handlers: []Handler{handler("create", "BeforeClusterCreate"), handler("patch", "GeneratePatches")},
			want:     []string{change + "create", "ok ok patch"},
			problem:  "Cluster API v1.12 sends Clusters as v1beta1, but Cluster API v1.14 sends them as v1beta2; nothing states which version the handler understands, so it may read members that are not there",
			remedy:   "if the extension was built for v1beta1, apply ExtensionPolicy acme-cluster-api; if it understands v1beta2, state this version instead",
			policies: []string{"acme-cluster-api for : v1beta1"},
		},
		"ChangedWithInPlace": {
			reason: "in-place handlers got v1beta2 all along, so that the policy for all is not for them", targets: []string{"cluster-api=v1.14.0"}, from: "v1.12.4",
			handlers: []Handler{handler("create", "BeforeClusterCreate"), handler("can", "CanUpdateMachine"), handler("plan", "GenerateUpgradePlan"), handler("patch", "GeneratePatches")},
			want:     []string{change + "create", "ok ok can", "ok ok patch", "ok ok plan"},
			remedy:   "if the extension was built for v1beta1, apply ExtensionPolicy acme-can-cluster-api, acme-cluster-api, acme-plan-cluster-api; if it understands v1beta2, state this version instead",
			policies: []string{"acme-can-cluster-api for can: v1beta2", "acme-cluster-api for : v1beta1", "acme-plan-cluster-api for plan: v1beta2"},
		},
		"ChangedWithPolicyForAll": {
			reason: "there is one policy for a target, which is completed", targets: []string{"cluster-api=v1.14"}, from: "v1.12.0",
			handlers: []Handler{handler("create", "BeforeClusterCreate", policed("p", "", true)), handler("can", "CanUpdateMachine", policed("p", "", true))},
			want:     []string{change + "create", "ok ok can"},
			remedy:   "if the extension was built for v1beta1, add clusterAPIVersion: v1beta1 to the spec of ExtensionPolicy p, and apply ExtensionPolicy acme-can-cluster-api; if it understands v1beta2, state this version instead",
			policies: []string{"acme-can-cluster-api for can: v1beta2"},
		},
		"ChangedWithOwnPolicy": {
			reason: "a handler has one policy, which is completed", targets: []string{"cluster-api=v1.14"}, from: "v1.12.0",
			handlers: []Handler{handler("create", "BeforeClusterCreate", policed("p", "", false)), handler("can", "CanUpdateMachine")},
			want:     []string{change + "create", "ok ok can"},
			remedy:   "if the extension was built for v1beta1, add clusterAPIVersion: v1beta1 to the spec of ExtensionPolicy p; if it understands v1beta2, state this version instead",
		},
		"ChangedBesideAnOwnPolicy": {
			reason: "a policy for one handler takes the version from the one for all", targets: []string{"cluster-api=v1.14"}, from: "v1.12.0",
			handlers: []Handler{handler("create", "BeforeClusterCreate"), handler("can", "CanUpdateMachine", policed("p", "", false))},
			want:     []string{change + "create", "ok ok can"},
			remedy:   "if the extension was built for v1beta1, add clusterAPIVersion: v1beta2 to the spec of ExtensionPolicy p, and apply ExtensionPolicy acme-cluster-api; if it understands v1beta2, state this version instead",
			policies: []string{"acme-cluster-api for : v1beta1"},
		},
		"SameAsNow": {
			reason: "from v1.13 to v1.14 nothing changes", targets: []string{"cluster-api=v1.14.0"}, from: "v1.13.0",
			handlers: []Handler{handler("create", "BeforeClusterCreate")}, want: []string{"ok ok create"},
			problem: "Cluster API sends Clusters of v1beta2 both now (v1.13) and after the upgrade (v1.14)",
		},
		"Downgrade": {
			reason: "an extension for v1.13 behind v1.12", targets: []string{"cluster-api=v1.12.0"}, from: "v1.13.0",
			handlers: []Handler{handler("create", "BeforeClusterCreate")}, want: []string{change + "create"}, policies: []string{"acme-cluster-api for : v1beta2"},
		},
		"NotStated": {
			reason: "without a statement and without --from, it is not known", targets: []string{"cluster-api=v1.14.0"},
			handlers: []Handler{handler("create", "BeforeClusterCreate"), handler("variables", "DiscoverVariables"), handler("can", "CanUpdateMachine"), handler("patch", "GeneratePatches")},
			want:     []string{"warn not-stated create", "warn not-stated variables", "ok ok can", "ok ok patch"},
			problem:  "Cluster API v1.14 sends Clusters as v1beta2, older releases sent them as v1beta1, and nothing states which version the handler understands",
			remedy:   "give --from cluster-api=VERSION to say which Cluster API runs now, or set clusterAPIVersion in an ExtensionPolicy to the version that the handler understands",
		},
		"NotCalledNow": {
			reason: "a hook that v1.11 does not call says nothing about the version that the handler was built for", targets: []string{"cluster-api=v1.14.0"}, from: "v1.11.0",
			handlers: []Handler{handler("workers", "BeforeWorkersUpgrade"), handler("can", "CanUpdateMachine")}, want: []string{"warn not-stated workers", "ok ok can"},
			remedy: "set clusterAPIVersion in an ExtensionPolicy to the version that the handler understands: the version cannot be told from v1.11, which does not call the handler",
		},
		"Converted": {
			reason: "a policy makes the gateway convert, which loses what v1beta1 does not have", targets: []string{"cluster-api=v1.14.0"},
			handlers: []Handler{handler("create", "BeforeClusterCreate", policed("p", "v1beta1", true))}, want: []string{"degrade members-lost create"},
			problem: "Cluster API v1.14 sends Clusters of v1beta2, which the gateway converts to v1beta1: members that this version cannot express never reach the handler",
		},
		"ConvertedUp": {
			reason: "nothing is lost on the way up", targets: []string{"cluster-api=v1.12.0"},
			handlers: []Handler{handler("create", "BeforeClusterCreate", states("v1beta2"))}, want: []string{"ok ok create"},
			problem: "the gateway converts Clusters from v1beta1 to v1beta2 without a loss",
		},
		"Stated": {
			reason: "the extension itself says so", targets: []string{"cluster-api=v1.14.0"}, from: "v1.12.0",
			handlers: []Handler{handler("create", "BeforeClusterCreate", states("v1beta2")), handler("delete", "BeforeClusterDelete", states("v1beta1"))},
			want:     []string{"degrade members-lost delete", "ok ok create"},
		},
		"PolicyWins": {
			reason: "what the policy says takes the place of what the extension states", targets: []string{"cluster-api=v1.14.0"},
			handlers: []Handler{handler("create", "BeforeClusterCreate", states("v1beta1"), policed("p", "v1beta2", false))}, want: []string{"ok ok create"},
		},
		"CannotConvert": {
			reason: "a version without a conversion", targets: []string{"cluster-api=v1.14.0"},
			handlers: []Handler{handler("create", "BeforeClusterCreate", states("v1alpha4"))}, want: []string{"break cannot-convert create"},
		},
		"NeverSent": {
			reason: "a policy for all also holds for in-place handlers", targets: []string{"cluster-api=v1.14.0"},
			handlers: []Handler{handler("can", "CanUpdateMachine", policed("p", "v1beta1", true)), handler("update", "UpdateMachine", policed("own", "v1beta1", false))},
			want:     []string{"degrade members-lost can", "degrade members-lost update", "warn never-sent can"}, policies: []string{"acme-can-cluster-api for can: v1beta2"},
		},
		"Variables": {
			reason: "of variables, only the metadata changes its place", targets: []string{"cluster-api=v1.14.0"}, from: "v1.12.0",
			handlers: []Handler{handler("variables", "DiscoverVariables")}, want: []string{"degrade variables-metadata variables"},
			problem:  "Cluster API v1.12 reads the metadata of a variable from the member metadata, but Cluster API v1.14 reads it from deprecatedV1Beta1Metadata; nothing states which member the handler sets",
			policies: []string{"acme-cluster-api for : v1beta1"},
		},
		"NotCalled": {
			reason: "an older Cluster API lacks the hook", targets: []string{"cluster-api=v1.11.0"},
			handlers: []Handler{handler("plan", "GenerateUpgradePlan")}, want: []string{"break hook-not-called plan"},
			problem: "Cluster API v1.11 does not call the hook",
		},
		"Infrastructure": {
			reason: "hooks of infrastructure are not Cluster API's, and it need not call them", targets: []string{"cluster-api=v1.14.0", "hookgate=v0.1.0"},
			handlers: []Handler{{Name: "machines", Hook: hook.GroupVersionHook{
				Group: hook.InfrastructureGroup, Version: hook.InfrastructureVersion, Hook: "ReconcileMachine",
			}}}, hooks: testHooks, want: []string{"ok ok machines"},
		},
		"InfrastructureInDiscovery": {
			reason: "Cluster API refuses a Discovery with a handler of infrastructure", targets: []string{"cluster-api=v1.14.0"}, hooks: testHooks,
			handlers: []Handler{{Name: "machines", Useless: "hook does not belong to the group of Discovery: remove the handler from the answer to Discovery"}}, want: []string{"break hook-unknown machines"},
			problem: "hook does not belong to the group of Discovery: remove the handler from the answer to Discovery",
		},
		"UnknownHook": {
			reason: "a hook of a newer extension", targets: []string{"cluster-api=v1.14.0"},
			handlers: []Handler{handler("coffee", "BeforeCoffee"), handler("v2", "BeforeClusterCreate", ofVersion("v2")), {Name: "skipped", Useless: "no such hook"}, handler("d", "Discovery")},
			want:     []string{"break hook-unknown coffee", "break hook-unknown d", "break hook-unknown skipped", "break hook-unknown v2"},
			problem:  "hooks.runtime.cluster.x-k8s.io/v1alpha1 has no hook BeforeCoffee that can have handlers",
		},
		"Removed": {
			reason: "the release does not serve a version any more", targets: []string{"hookgate=v0.3.0"}, hooks: testHooks,
			handlers: []Handler{handler("old", "", drain("v0alpha1")), handler("new", "", drain("v1beta1"))}, want: []string{"break hook-removed old", "ok ok new"},
			problem: "release v0.3.0 of the gateway has removed hooks of hooks.test.hookgate.dev/v0alpha1",
			remedy:  "upgrade the extension to a version that implements hooks of hooks.test.hookgate.dev/v1 before you upgrade the gateway",
		},
		"NotYetRemoved": {
			reason: "an older release still has it", targets: []string{"hookgate=v0.2.3"}, hooks: testHooks,
			handlers: []Handler{handler("old", "", drain("v0alpha1")), handler("newer", "", drain("v1beta1"))},
			want:     []string{"break hook-unknown newer", "warn hook-deprecated old"},
			problem:  "hooks of hooks.test.hookgate.dev/v1beta1 came with release v0.3.0 of the gateway, but the target is v0.2.3",
		},
		"InALaterRelease": {
			reason: "a release does not have what comes later", targets: []string{"hookgate=v0.1.0"}, hooks: ownHooks,
			handlers: []Handler{handler("create", "BeforeClusterCreate"), handler("drain", "BeforeMachineDrain", ofMachines)},
			want:     []string{"break hook-unknown drain", "ok ok create"},
			problem:  "hooks of hooks.machines.hookgate.dev/v1alpha1 came with release v0.2.0 of the gateway, but the target is v0.1.0",
		},
		"GatewayStays": {
			reason: "the gateway that has them stays", targets: []string{"cluster-api=v1.14.0"}, hooks: ownHooks,
			handlers: []Handler{handler("drain", "BeforeMachineDrain", ofMachines)}, want: []string{"ok ok drain"},
		},
		"Deprecated": {
			reason: "a deprecated version works, and goes some day", targets: []string{"hookgate=v0.4.0-rc.1"}, hooks: testHooks,
			handlers: []Handler{handler("aged", "", drain("v1alpha1")), handler("new", "", drain("v1"))}, want: []string{"warn hook-deprecated aged", "ok ok new"},
			problem: "hooks of hooks.test.hookgate.dev/v1alpha1 are deprecated since release v0.4.0 of the gateway",
		},
		"NotYetDeprecated": {
			reason: "before that release it is not", targets: []string{"hookgate=v0.3.0"}, hooks: testHooks,
			handlers: []Handler{handler("aged", "", drain("v1alpha1"))}, want: []string{"ok ok aged"}, problem: "the gateway has the hook",
		},
		"Both": {
			reason: "both at once", targets: []string{"hookgate=v0.4.0", "cluster-api=v1.14.0"}, from: "v1.12.0", hooks: testHooks,
			handlers: []Handler{handler("create", "BeforeClusterCreate")}, want: []string{change + "create", "warn hook-deprecated create"},
			policies: []string{"acme-cluster-api for : v1beta1"},
		},
		"AnyVersionOfTheHook": {
			reason: "Cluster API calls a hook in one version, the handler has it in another, and what the conversion can lose is listed", release: calls("v1"), hooks: testHooks,
			handlers: []Handler{handler("a", "", drain("v1beta1")), handler("b", "", drain("v1"))}, want: []string{"degrade members-lost a", "ok ok b"},
			problem: "Cluster API v9.9 calls version hooks.test.hookgate.dev/v1 of the hook, which the gateway converts to hooks.test.hookgate.dev/v1beta1: members that one of the two versions cannot express are lost",
			lost:    []string{"forced", "graceSeconds", "reason", "volumes[*].encrypted"},
		},
		"VersionThatTheGatewayLacks": {
			reason: "Cluster API is ahead of the gateway", release: calls("v2"), hooks: testHooks,
			handlers: []Handler{handler("a", "", drain("v1beta1"))}, want: []string{"break hook-not-called a"},
			problem: "Cluster API v9.9 calls version hooks.test.hookgate.dev/v2 of the hook, which the gateway cannot convert",
		},
	} {
		t.Run(name, func(t *testing.T) {
			target := Target{Hooks: catalog.New(), Lossy: lossy}
			if tt.hooks != nil {
				target.Hooks = tt.hooks(t)
			}
			if _, ok := target.Hooks.Version(hookversions.Group, "v1"); ok {
				target.HookLosses = hookversions.NewConverter(target.Hooks).CallLosses
			}
			for _, text := range tt.targets {
				if err := target.ParseTarget(text); err != nil {
					t.Fatal(err)
				}
			}
			if tt.release != nil {
				target.ClusterAPI = tt.release
			}
			if tt.from != "" {
				var err error
				if target.From, err = catalog.ClusterAPIReleaseOf(tt.from); err != nil {
					t.Fatal(err)
				}
			}
			report := Judge(Inventory{Extensions: []Extension{{Name: "acme", Handlers: tt.handlers}}}, target)
			slices.Reverse(tt.handlers)
			if again := Judge(Inventory{Extensions: []Extension{{Name: "acme", Handlers: tt.handlers}}}, target); !cmp.Equal(report, again, cmp.AllowUnexported(ProposedPolicy{})) {
				t.Error("the order of handlers makes a difference")
			}
			var got, policies []string
			for _, f := range report.Findings {
				got = append(got, fmt.Sprintf("%s %s %s", f.Level, f.Rule, f.Handler))
				if f.Problem == "" || (f.Remedy == "") != (f.Level == OK) {
					t.Errorf("a finding does not say what is and what to do: %+v", f)
				}
			}
			for _, p := range report.Policies {
				policies = append(policies, fmt.Sprintf("%s for %s: %s", p.Name, p.Handler, p.States))
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tt.reason, diff)
			}
			if diff := cmp.Diff(tt.policies, policies); diff != "" {
				t.Errorf("%s: policies (-want +got):\n%s", tt.reason, diff)
			}
			if first := report.Findings[0]; tt.problem != "" && first.Problem != tt.problem || tt.remedy != "" && first.Remedy != tt.remedy {
				t.Errorf("%s:\n got  %s\n      %s\n want %s\n      %s", tt.reason, first.Problem, first.Remedy, tt.problem, tt.remedy)
			}
			if diff := cmp.Diff(tt.lost, report.Findings[0].Lost); tt.lost != nil && diff != "" {
				t.Errorf("%s: lost (-want +got):\n%s", tt.reason, diff)
			}
		})
	}
}

// TestFindingsWithoutAHandlerAreCounted holds the findings about ExtensionConfigs, policies and manifests.
func TestFindingsWithoutAHandlerAreCounted(t *testing.T) {
	target := Target{Hooks: ownHooks(t), Lossy: lossy}
	if err := target.ParseTarget("cluster-api=v1.14.0"); err != nil {
		t.Fatal(err)
	}
	var gateway []Handler
	for _, h := range target.Hooks.Hubs() {
		if h.Mergeable && h.Group == hook.Group { // what a gateway offers Cluster API
			gateway = append(gateway, handler(strings.ToLower(h.Hook), h.Hook))
		}
	}
	report := Judge(Inventory{
		Extensions: []Extension{
			{Name: "late", Undiscovered: "it has no status", Discover: "ask", Location: Location{"late.yaml", 1}},
			{Name: "gate", Handlers: gateway},
			{Name: "acme", Handlers: []Handler{handler("can", "CanUpdateMachine", policed("p", "v1beta1", true))}},
		},
		Ignored:    []IgnoredPolicy{{Name: "q", ExtensionConfig: "acme", Location: Location{"q.yaml", 3}, Reason: "ExtensionPolicy \"p\" is older"}},
		Unreadable: []Unreadable{{Location: Location{"bad.yaml", 2}, Reason: "not YAML"}},
	}, target)
	counts := map[Level]int{}
	for _, l := range []Level{Break, Unknown, Degrade, Warn, OK} {
		counts[l] = report.Count(l)
	}
	if diff := cmp.Diff(map[Level]int{Break: 1, Unknown: 1, Degrade: 1, Warn: 2, OK: 9}, counts); diff != "" {
		t.Errorf("subjects (-want +got):\n%s", diff)
	}
	if report.Worst() != Break || report.Handlers != 10 || report.ExtensionConfigs != 3 {
		t.Errorf("got %s, %d handlers of %d ExtensionConfigs", report.Worst(), report.Handlers, report.ExtensionConfigs)
	}
	var rules []string
	for _, f := range report.Findings {
		if f.Rule != ruleOK {
			rules = append(rules, f.Rule+" "+f.Object())
		}
	}
	want := []string{"unreadable bad.yaml:2", "not-discovered late", "members-lost can.acme", "policy-ignored acme", "never-sent can.acme", "gateway gate"}
	if diff := cmp.Diff(want, rules); diff != "" {
		t.Errorf("findings (-want +got):\n%s", diff)
	}
}

// TestClustersNeedKnownReferences holds that a conversion of Clusters to v1beta1 needs the versions of what they refer
// to.
func TestClustersNeedKnownReferences(t *testing.T) {
	for name, tt := range map[string]struct {
		reason     string
		unresolved []string
		unchecked  string
		want       []string
		problem    string
	}{
		"Resolved":   {"all are known", nil, "", []string{"ok ok down", "ok ok same"}, ""},
		"Unresolved": {"every call would fail", []string{"a", "b", "c", "d"}, "", []string{"break cannot-convert down", "ok ok same"}, "the gateway cannot convert some Clusters in use to v1beta1: a; b; c; and 1 more"},
		"Unchecked":  {"no permission to look", nil, "forbidden", []string{"warn references-unchecked down", "ok ok same"}, ""},
	} {
		target := Target{Hooks: catalog.New(), Lossy: func(string, string, string) []string { return nil }}
		if err := target.ParseTarget("cluster-api=v1.14.0"); err != nil {
			t.Fatal(err)
		}
		report := Judge(Inventory{Unresolved: tt.unresolved, Unchecked: tt.unchecked, Extensions: []Extension{{Name: "acme", Handlers: []Handler{
			handler("down", "BeforeClusterCreate", states("v1beta1")), handler("same", "BeforeClusterCreate", states("v1beta2")),
		}}}}, target)
		var got []string
		for _, f := range report.Findings {
			got = append(got, fmt.Sprintf("%s %s %s", f.Level, f.Rule, f.Handler))
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s: %s (-want +got):\n%s", name, tt.reason, diff)
		}
		if tt.problem != "" && report.Findings[0].Problem != tt.problem {
			t.Errorf("%s: got %s", name, report.Findings[0].Problem)
		}
	}
}

// TestRulesAreInOrderAndUnique holds the list of rules.
func TestRulesAreInOrderAndUnique(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range Rules() {
		if seen[r.ID] || r.Text == "" || r.Level.rank() < 0 {
			t.Errorf("rule %+v", r)
		}
		seen[r.ID] = true
	}
	if !slices.IsSortedFunc(Rules(), func(a, b Rule) int { return a.Level.rank() - b.Level.rank() }) {
		t.Error("the rules are not in the order of their levels")
	}
}

func TestParseTarget(t *testing.T) {
	for text, want := range map[string]string{
		"cluster-api=v1.99.0": "release v1.99.0 of Cluster API is not known here; the known ones are v1.8, ",
		"cluster-api=":        `"cluster-api=": want cluster-api=VERSION or hookgate=VERSION, as in cluster-api=v1.14.0`,
		"cluster-api v1.14.0": `want cluster-api=VERSION`,
		"v1.14.0":             "want cluster-api=VERSION",
		"kubernetes=v1.34":    "want cluster-api=VERSION",
		"hookgate=v9.0.0":     "release v9.0.0 of Hookgate is not known here; the known ones are v0.1.0, v0.2.0, v0.3.0, v0.4.0. Use the hookgate of the release that you upgrade to",
		"hookgate=v0.5.0":     "release v0.5.0 of Hookgate is not known here",
		"hookgate=v1.4.0":     "release v1.4.0 of Hookgate is not known here",
		"hookgate=v0":         `"v0" is not a version`,
		"hookgate=newest":     `"newest" is not a version; the known releases of Hookgate are v0.1.0, `,
	} {
		target := Target{Hooks: testHooks(t)}
		if err := target.ParseTarget(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", text, err, want)
		}
	}
	target := Target{Hooks: testHooks(t)}
	for _, text := range []string{"cluster-api=v1.14.0", "hookgate=0.2.0"} {
		if err := target.ParseTarget(text); err != nil {
			t.Error(err)
		}
		if err := target.ParseTarget(text); err == nil || !strings.Contains(err.Error(), "has a target already") {
			t.Errorf("twice: %v", err)
		}
	}
	if diff := cmp.Diff([]string{"cluster-api=v1.14", "hookgate=v0.2.0"}, target.names()); diff != "" {
		t.Errorf("targets (-want +got):\n%s", diff)
	}
}

func TestManifests(t *testing.T) {
	r := Report{Policies: []ProposedPolicy{newPolicy("acme", "", "v1beta1", ""), newPolicy("acme", "can", "v1beta2", "blue")}}
	const want = `apiVersion: hookgate.dev/v1alpha1
kind: ExtensionPolicy
metadata:
  name: acme-cluster-api
spec:
  targetRef:
    name: acme
  clusterAPIVersion: v1beta1
---
apiVersion: hookgate.dev/v1alpha1
kind: ExtensionPolicy
metadata:
  name: acme-can-cluster-api
  labels:
    cluster.x-k8s.io/watch-filter: "blue"
spec:
  targetRef:
    name: acme
    handler: can
  clusterAPIVersion: v1beta2
`
	if diff := cmp.Diff(want, r.Manifests()); diff != "" {
		t.Errorf("manifests (-want +got):\n%s", diff)
	}
}
