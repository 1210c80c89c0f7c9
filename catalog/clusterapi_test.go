// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	runtimecatalog "sigs.k8s.io/cluster-api/api/runtime/catalog"
	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"

	"github.com/hookgate/hookgate/hook"
)

// embedded returns the kinds of Cluster API that a type of hooks embeds, in requests as objects, in answers as
// variables, with the version of their package.
func embedded(t reflect.Type, seen map[reflect.Type]bool, found map[string]string) {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || seen[t] {
		return
	}
	seen[t] = true
	const core = "sigs.k8s.io/cluster-api/api/core/"
	if version, ok := strings.CutPrefix(t.PkgPath(), core); ok {
		found[t.Name()] = version
		return
	}
	for field := range t.Fields() {
		embedded(field.Type, seen, found)
	}
}

// TestNewestClusterAPIRelease compares the row of the newest release with the pinned API module of Cluster API.
func TestNewestClusterAPIRelease(t *testing.T) {
	upstream := runtimecatalog.New()
	if err := runtimehooksv1.AddToCatalog(upstream); err != nil {
		t.Fatal(err)
	}
	var want []ClusterAPIHook
	for gvh, description := range upstream.AllKnownHooks() {
		if description.Metadata.Deprecated {
			t.Errorf("%s is deprecated in Cluster API, which the table does not say", gvh)
		}
		found := map[string]string{}
		for _, of := range []func(runtimecatalog.GroupVersionHook) (any, error){
			func(g runtimecatalog.GroupVersionHook) (any, error) { return upstream.NewRequest(g) },
			func(g runtimecatalog.GroupVersionHook) (any, error) { return upstream.NewResponse(g) },
		} {
			message, err := of(gvh)
			if err != nil {
				t.Fatal(err)
			}
			embedded(reflect.TypeOf(message), map[reflect.Type]bool{}, found)
		}
		h := ClusterAPIHook{
			GroupVersionHook: hook.GroupVersionHook{Group: gvh.Group, Version: gvh.Version, Hook: gvh.Hook},
		}
		if len(found) > 1 {
			t.Errorf("%s embeds %v: the table has room for one", gvh, found)
		}
		for kind, version := range found {
			h.Kind, h.ObjectVersion = kind, version
		}
		want = append(want, h)
	}
	slices.SortFunc(want, func(a, b ClusterAPIHook) int { return strings.Compare(a.Hook, b.Hook) })
	releases := ClusterAPIReleases()
	newest := releases[len(releases)-1]
	if diff := cmp.Diff(want, newest.Hooks); diff != "" {
		t.Errorf("%s (-cluster API +table):\n%s", newest.Name, diff)
	}
}

func TestClusterAPIReleases(t *testing.T) {
	for name, tt := range map[string]struct {
		reason, version, hook string
		kind, object          string // empty: the release does not call the hook
	}{
		"Lifecycle1.12": {
			"before v1.13, lifecycle hooks had v1beta1", "v1.12.4", "BeforeClusterCreate", "Cluster", "v1beta1",
		},
		"Lifecycle1.13": {"since v1.13, they have v1beta2", "v1.13", "BeforeClusterCreate", "Cluster", "v1beta2"},
		"Lifecycle1.8":  {"the oldest", "1.8.0", "BeforeClusterUpgrade", "Cluster", "v1beta1"},
		"NewLifecycle1.12": {
			"those that v1.12 added had v1beta1, too", "v1.12.0", "BeforeWorkersUpgrade", "Cluster", "v1beta1",
		},
		"NewLifecycle1.11": {"they were not there before", "v1.11.0", "BeforeWorkersUpgrade", "", ""},
		"Plan1.12": {
			"the plan had v1beta2 from the start", "v1.12.0", "GenerateUpgradePlan", "Cluster", "v1beta2",
		},
		"InPlace1.12": {"so had the in-place hooks", "v1.12.0-rc.1", "CanUpdateMachine", "Machine", "v1beta2"},
		"InPlace1.11": {"which v1.12 added", "v1.11.0", "CanUpdateMachine", "", ""},
		"Variables1.12": {
			"variables were v1beta1 before v1.13", "v1.12.0", "DiscoverVariables", "ClusterClassVariable", "v1beta1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			release, err := ClusterAPIReleaseOf(tt.version)
			if err != nil {
				t.Fatal(err)
			}
			got, ok := release.Hook(tt.hook)
			if ok != (tt.kind != "") || got.Kind != tt.kind || got.ObjectVersion != tt.object {
				t.Errorf(
					"%s: %s calls %s with %s %s, %t", tt.reason, release.Name, tt.hook, got.Kind, got.ObjectVersion, ok,
				)
			}
		})
	}
	for _, version := range []string{"v1.7.0", "v1.99.0", "v2.14.0", "", "v1", "latest", "v1.x"} {
		const known = "v1.8, v1.9, v1.10, v1.11, v1.12, v1.13, v1.14"
		if _, err := ClusterAPIReleaseOf(version); err == nil || !strings.Contains(err.Error(), known) {
			t.Errorf("%q: %v, want an error with the releases that are known", version, err)
		}
	}
}

// TestAnnounced holds the next release, of which only announcements are known.
func TestAnnounced(t *testing.T) {
	known := ClusterAPIReleases()
	newest := known[len(known)-1]
	next, err := ClusterAPIReleaseOf("v1.15.0")
	if err != nil || !next.Announced || next.Name != "v1.15" || newest.Announced {
		t.Fatalf("%+v, %v after %+v", next, err, newest)
	}
	if diff := cmp.Diff(newest.Hooks, next.Hooks); diff != "" {
		t.Errorf("the announcements name no change of hooks (-v1.14 +v1.15):\n%s", diff)
	}
	if names := ComparedReleases(); names[0] != "v1.11" || names[len(names)-1] != newest.Name {
		t.Errorf("compared are %v", names)
	}
	for _, c := range ClusterAPIChanges("", nil, nil) {
		if c.Announced != (c.Release == next.Name) {
			t.Errorf("%s: announced %t", c.Release, c.Announced)
		}
		if !slices.IsSorted(c.Hooks) || c.Text == "" || (c.Kind == RequestGains) != (len(c.Members) > 0 || c.Templates != NoTemplates) {
			t.Errorf("%s: %+v", c.Release, c)
		}
		for _, name := range c.Hooks {
			if _, ok := next.Hook(name); !ok {
				t.Errorf("%s: there is no hook %s", c.Release, name)
			}
		}
	}
	for _, c := range Gained("BeforeClusterCreate", newest.Name) {
		t.Errorf("what is announced is taken out: %+v", c)
	}
}

func TestEverSent(t *testing.T) {
	for name, want := range map[string][]string{
		"BeforeClusterCreate": {"v1beta1", "v1beta2"}, "UpdateMachine": {"v1beta2"}, "GenerateUpgradePlan": {"v1beta2"},
		"GeneratePatches": nil, "Coffee": nil,
	} {
		if diff := cmp.Diff(want, EverSent(name)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestClusterAPIHooksAreKnown: the gateway has every hook of the newest release, so that the tables agree.
func TestClusterAPIHooksAreKnown(t *testing.T) {
	c := New()
	releases := ClusterAPIReleases()
	for _, h := range releases[len(releases)-1].Hooks {
		if _, ok := c.Lookup(h.GroupVersionHook); !ok {
			t.Errorf("%s is not in the catalog", h.GroupVersionHook)
		}
	}
}
