// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/reflect/protoreflect"

	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	infrastructurev1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/infrastructure/v1alpha1"
	"github.com/hookgate/hookgate/hook"
)

func TestEveryHookIsFound(t *testing.T) {
	c := New()
	if len(c.Hooks()) != 17 || len(c.Hubs()) != 17 {
		t.Errorf("the contract has %d hooks, %d of them hubs", len(c.Hooks()), len(c.Hubs()))
	}
	for _, h := range c.Hooks() {
		if got, ok := c.Lookup(h.GroupVersionHook); !ok || got != h {
			t.Errorf("Lookup of %s: %v", h, got)
		}
		if got, ok := c.ByName(strings.ToUpper(h.Hook)); !ok || got != h {
			t.Errorf("ByName of %s: %v", h, got)
		}
		if got, ok := c.ByMethod(h.Method); !ok || got != h {
			t.Errorf("ByMethod of %s: %v", h, got)
		}
		if h.Hub() != h {
			t.Errorf("%s has another hub", h)
		}
		if _, _, ok := h.Deprecated(); ok {
			t.Errorf("%s is deprecated", h)
		}
	}
}

// The properties of hooks follow from the contract: Cluster API merges only answers of lifecycle hooks, and waits if a
// hook's answer has retryAfterSeconds.
func TestWhatAnswersAllow(t *testing.T) {
	var singletons, mergeable, blocking []string
	for _, h := range New().Hooks() {
		if h.Singleton() {
			singletons = append(singletons, h.Hook)
		}
		if h.Mergeable {
			mergeable = append(mergeable, h.Hook)
		}
		if h.Blocking {
			blocking = append(blocking, h.Hook)
		}
	}
	lifecycle := []string{
		"AfterClusterUpgrade", "AfterControlPlaneInitialized", "AfterControlPlaneUpgrade", "AfterWorkersUpgrade",
		"BeforeClusterCreate",
		"BeforeClusterDelete", "BeforeClusterUpgrade", "BeforeControlPlaneUpgrade", "BeforeWorkersUpgrade",
	}
	if diff := cmp.Diff([]string{"Discovery"}, singletons); diff != "" {
		t.Errorf("singletons: -want +got:\n%s", diff)
	}
	if diff := cmp.Diff(lifecycle, mergeable); diff != "" {
		t.Errorf("mergeable: -want +got:\n%s", diff)
	}
	waits := append(
		slices.DeleteFunc(lifecycle, func(name string) bool { return name == "AfterControlPlaneInitialized" }),
		"UpdateMachine",
	)
	if diff := cmp.Diff(waits, blocking); diff != "" {
		t.Errorf("blocking: -want +got:\n%s", diff)
	}
}

// Versions and their successors are looked up by group and name, and removed ones are known.
func TestVersions(t *testing.T) {
	discovery := []protoreflect.FileDescriptor{hooksv1alpha1.File_hookgate_hooks_v1alpha1_discovery_proto}
	lifecycle := []protoreflect.FileDescriptor{hooksv1alpha1.File_hookgate_hooks_v1alpha1_lifecycle_hooks_proto}
	removed := Lifetime{Introduced: "v0.1.0", Deprecated: "v0.2.0", Removed: "v0.3.0"}
	c, err := Build(nil,
		Source{
			Group: "b", Version: "v1beta1", Lifetime: Lifetime{Introduced: "v0.1.0", Deprecated: "v0.4.0"},
			Files: discovery,
		},
		Source{Group: "b", Version: "v1", Lifetime: removed},
		Source{Group: "b", Version: "v1alpha1", Lifetime: removed},
		Source{
			Group: "a", Version: "v1", Lifetime: Lifetime{Introduced: "v0.1.0"},
			Files: append(lifecycle, infrastructurev1alpha1.File_hookgate_infrastructure_v1alpha1_discovery_proto),
		},
	)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, v := range c.Versions() {
		got = append(got, v.APIVersion()+" replaced by "+v.Instead())
		if found, ok := c.Version(v.Group, v.Name); !ok || found != v {
			t.Errorf("Version(%s, %s) = %v", v.Group, v.Name, found)
		}
	}
	want := []string{
		"a/v1 replaced by ", "b/v1 replaced by b/v1beta1", "b/v1beta1 replaced by ", "b/v1alpha1 replaced by b/v1beta1",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	for _, missing := range [][2]string{{"a", "v1beta1"}, {"c", "v1"}, {"b", "v2"}} {
		if v, ok := c.Version(missing[0], missing[1]); ok || v != nil {
			t.Errorf("Version(%s, %s) = %v", missing[0], missing[1], v)
		}
	}
	h, _ := c.ByName("Discovery")
	if since, instead, ok := h.Deprecated(); !ok || since != "v0.4.0" || instead != "b/v1beta1" {
		t.Errorf("Deprecated() = %s, %s, %t", since, instead, ok)
	}
	if other, ok := h.In("v1"); ok {
		t.Errorf("In of a removed version is %s", other)
	}
	if same, ok := h.In("v1beta1"); !ok || same != h {
		t.Errorf("In of its own version is %v", same)
	}
}

// The hooks of infrastructure are beside those of Cluster API, and neither changes the other.
func TestInfrastructure(t *testing.T) {
	c, err := With(Infrastructure()...)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, h := range c.Hubs() {
		if h.Group != hook.InfrastructureGroup {
			if _, ok := New().Lookup(h.GroupVersionHook); !ok || h.FailOnly {
				t.Errorf("%s is not a hook of Cluster API's, whose errors can be ignored", h)
			}
			continue
		}
		if !h.FailOnly || h.Mergeable || !h.TakesHandler() {
			t.Errorf("%s: FailOnly %t, Mergeable %t, TakesHandler %t", h, h.FailOnly, h.Mergeable, h.TakesHandler())
		}
		got = append(got, h.Hook)
	}
	want := []string{
		"DeleteCluster", "DeleteMachine", "DeleteMachinePool", "DiscoverInfrastructure", "ReconcileCluster",
		"ReconcileMachine", "ReconcileMachinePool",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("hooks: -want +got:\n%s", diff)
	}
	var discoveries []string
	for _, versions := range c.Discoveries() {
		discoveries = append(discoveries, versions[0].Hook)
	}
	if diff := cmp.Diff([]string{"Discovery", "DiscoverInfrastructure"}, discoveries); diff != "" {
		t.Errorf("discoveries, Cluster API's first: -want +got:\n%s", diff)
	}
	if h, _ := c.ByName("Discovery"); h.TakesHandler() {
		t.Error("Cluster API's Discovery takes a handler")
	}
	if len(New().Hubs())+len(want) != len(c.Hubs()) {
		t.Errorf("%d hooks, want %d more than Cluster API's", len(c.Hubs()), len(want))
	}
}

func TestSegments(t *testing.T) {
	for path, want := range map[string][3]int{
		"/a/b/c/d": {2, 4, 6}, "/a/b": {2, 4, 4}, "//b/": {1, 3, 4}, "/": {1, 1, 1}, "": {0, 0, 0}, "/a//c": {2, 3, 5},
	} {
		for n, end := range want {
			if got := segments(path, n+1); got != end {
				t.Errorf("segments(%q, %d) = %d, want %d", path, n+1, got, end)
			}
		}
	}
}

func TestByPath(t *testing.T) {
	c := New()
	const create = "/hooks.runtime.cluster.x-k8s.io/v1alpha1/beforeclustercreate"
	for path, want := range map[string]struct {
		hook, rest string
		wrong      bool // not its path
	}{
		create:                  {"BeforeClusterCreate", "", false},
		create + "/v.acme":      {"BeforeClusterCreate", "/v.acme", false},
		create + "/v.acme/more": {"BeforeClusterCreate", "/v.acme/more", false},
		create + "/":            {"BeforeClusterCreate", "/", false},
		"/hooks.runtime.cluster.x-k8s.io/v1alpha1/BeforeClusterCreate/V": {"BeforeClusterCreate", "/V", true},
		"/hooks.runtime.cluster.x-k8s.io/v1alpha2/beforeclustercreate":   {},
		"/hooks.runtime.cluster.X-K8s.io/v1alpha1/beforeclustercreate":   {},
		"/hooks.runtime.cluster.x-k8s.io/v1alpha1/":                      {},
		"/hooks.runtime.cluster.x-k8s.io/v1alpha1":                       {},
		"//": {},
		"/":  {},
		"":   {},
	} {
		h, rest, ok := c.ByPath(path)
		switch {
		case want.hook == "" && h == nil && !ok:
		case h == nil, h.Hook != want.hook, rest != want.rest, ok == want.wrong:
			t.Errorf("%q: got %v %q %t, want %+v", path, h, rest, ok, want)
		}
	}
}

func TestBuildRefuses(t *testing.T) {
	files := []protoreflect.FileDescriptor{hooksv1alpha1.File_hookgate_hooks_v1alpha1_discovery_proto}
	source := func(version string, l Lifetime, files ...protoreflect.FileDescriptor) Source {
		return Source{Group: hook.Group, Version: version, Lifetime: l, Files: files}
	}
	for name, tc := range map[string]struct {
		sources []Source
		want    string
	}{
		"Twice": {
			[]Source{source("v1", Lifetime{}, files...), source("v1", Lifetime{}, files...)},
			"version hooks.runtime.cluster.x-k8s.io/v1: occurs twice in the catalog",
		},
		"HookTwice": {
			[]Source{source("v1", Lifetime{}, files[0], files[0])},
			"version hooks.runtime.cluster.x-k8s.io/v1: hook Discovery: occurs twice in one version",
		},
		"NoHooks": {
			[]Source{source("v1", Lifetime{})},
			"version hooks.runtime.cluster.x-k8s.io/v1 has no hooks, although it was not removed",
		},
		"RemovedWithHooks": {
			[]Source{source("v1", Lifetime{Removed: "v0.2.0"}, files...)},
			"version hooks.runtime.cluster.x-k8s.io/v1 has hooks, although it was removed in v0.2.0",
		},
		"SameMessages": {
			[]Source{source("v1", Lifetime{}, files...), source("v2", Lifetime{}, files...)},
			"hook hooks.runtime.cluster.x-k8s.io/v1/Discovery: message hookgate.hooks.v1alpha1.DiscoveryRequest " +
				"already belongs to hooks.runtime.cluster.x-k8s.io/v2/Discovery\n" +
				"hook hooks.runtime.cluster.x-k8s.io/v1/Discovery: message hookgate.hooks.v1alpha1.DiscoveryResponse " +
				"already belongs to hooks.runtime.cluster.x-k8s.io/v2/Discovery",
		},
		"NoDiscovery": {
			[]Source{
				source("v1", Lifetime{}, files...),
				{Group: "b", Version: "v1", Files: []protoreflect.FileDescriptor{
					infrastructurev1alpha1.File_hookgate_infrastructure_v1alpha1_machine_proto,
				}},
			},
			"group b: its DiscoveryService has 0 hooks, but must have exactly one, which lists the handlers of the group",
		},
		"TwoDiscoveries": {
			[]Source{source("v1", Lifetime{}, append(
				files, infrastructurev1alpha1.File_hookgate_infrastructure_v1alpha1_discovery_proto)...)},
			"group hooks.runtime.cluster.x-k8s.io: its DiscoveryService has 2 hooks, but must have exactly one, " +
				"which lists the handlers of the group",
		},
		"Everything": {
			[]Source{source("v1", Lifetime{}), source("v2", Lifetime{Removed: "v0.2.0"}, files...)},
			"version hooks.runtime.cluster.x-k8s.io/v1 has no hooks, although it was not removed\n" +
				"version hooks.runtime.cluster.x-k8s.io/v2 has hooks, although it was removed in v0.2.0",
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Build(nil, tc.sources...)
			if err == nil || err.Error() != tc.want {
				t.Errorf("got %v, want %s", err, tc.want)
			}
		})
	}
}

// Hooks are known by their names alone, so that a group cannot have that of another group, except to list handlers.
func TestNamesAcrossGroups(t *testing.T) {
	lifecycle := hooksv1alpha1.File_hookgate_hooks_v1alpha1_lifecycle_hooks_proto
	_, err := Build(nil,
		Source{
			Group: "b", Version: "v1",
			Files: []protoreflect.FileDescriptor{hooksv1alpha1.File_hookgate_hooks_v1alpha1_discovery_proto, lifecycle},
		},
		Source{
			Group: "a", Version: "v1",
			Files: []protoreflect.FileDescriptor{
				infrastructurev1alpha1.File_hookgate_infrastructure_v1alpha1_discovery_proto, lifecycle,
			},
		},
	)
	const want = "hook b/v1/BeforeClusterCreate: group a has a hook of this name already"
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
}

// TestReadOnly checks what is derived from the messages and services of hooks that change nothing.
func TestReadOnly(t *testing.T) {
	c, err := With(Own()...)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string][]string{}
	for _, h := range c.Hubs() {
		for name, is := range map[string]bool{
			"ReadOnly": h.ReadOnly(), "Deterministic": h.Deterministic(), "InParallel": h.InParallel(),
		} {
			if is {
				got[name] = append(got[name], h.Hook)
			}
		}
	}
	want := map[string][]string{
		"ReadOnly": {
			"CanUpdateMachine", "CanUpdateMachineSet", "DiscoverVariables", "GeneratePatches", "GenerateUpgradePlan",
			"ValidateTopology",
		},
		"Deterministic": {"DiscoverVariables", "GeneratePatches", "ValidateTopology"},
		"InParallel":    {"DiscoverVariables", "ValidateTopology"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	const names = "GeneratePatches, ValidateTopology, DiscoverVariables, CanUpdateMachine, CanUpdateMachineSet and " +
		"GenerateUpgradePlan"
	if got := c.ReadOnlyNames(); got != names {
		t.Errorf("got %s, want %s", got, names)
	}
}
