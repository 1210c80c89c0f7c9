// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"fmt"
	"slices"
	"strings"

	"github.com/blang/semver/v4"

	"github.com/hookgate/hookgate/hook"
)

// ClusterAPIRelease is what a minor release of Cluster API has of the Runtime SDK. It is immutable.
type ClusterAPIRelease struct {
	// Name is that of the minor release, as in v1.14. Its patch releases have the same hooks.
	Name string
	// Hooks are those that it calls, by name. Callers must not change the slice.
	Hooks []ClusterAPIHook
}

// ClusterAPIHook is a hook that a release of Cluster API calls.
type ClusterAPIHook struct {
	hook.GroupVersionHook
	// Kind is what of Cluster API its request embeds: Cluster, Machine or MachineSet; or its answer: ClusterClassVariable.
	// It is empty for hooks that carry nothing of Cluster API but what providers define.
	Kind string
	// ObjectVersion is the version of it in cluster.x-k8s.io: v1beta1 or v1beta2; empty if Kind is.
	ObjectVersion string
}

// embeds says since when Cluster API calls a hook, and in which version what it embeds is. Minor releases are those of v1.
type embeds struct {
	hook    string
	since   uint64 // the oldest release of the table, or the one that added the hook
	kind    string
	v1beta2 uint64 // the first release with v1beta2; those before have v1beta1
}

// The releases that the table is about. Older ones are out of support, and newer ones not known.
const oldestClusterAPI, newestClusterAPI = 8, 14

// clusterAPIHooks is what Cluster API's packages of hooks have at their tags: exp/runtime/hooks/api/v1alpha1 until v1.10,
// api/runtime/hooks/v1alpha1 since. No release has taken a hook away. In v1.13 the objects changed inside one version of the
// hooks: what was there before had v1beta1 until then, and what v1.12 added had v1beta2 from the start, but for the two
// lifecycle hooks among it.
var clusterAPIHooks = []embeds{
	{hook: "AfterClusterUpgrade", since: oldestClusterAPI, kind: "Cluster", v1beta2: 13},
	{hook: "AfterControlPlaneInitialized", since: oldestClusterAPI, kind: "Cluster", v1beta2: 13},
	{hook: "AfterControlPlaneUpgrade", since: oldestClusterAPI, kind: "Cluster", v1beta2: 13},
	{hook: "AfterWorkersUpgrade", since: 12, kind: "Cluster", v1beta2: 13},
	{hook: "BeforeClusterCreate", since: oldestClusterAPI, kind: "Cluster", v1beta2: 13},
	{hook: "BeforeClusterDelete", since: oldestClusterAPI, kind: "Cluster", v1beta2: 13},
	{hook: "BeforeClusterUpgrade", since: oldestClusterAPI, kind: "Cluster", v1beta2: 13},
	{hook: "BeforeControlPlaneUpgrade", since: 12, kind: "Cluster", v1beta2: 13},
	{hook: "BeforeWorkersUpgrade", since: 12, kind: "Cluster", v1beta2: 13},
	{hook: "CanUpdateMachine", since: 12, kind: "Machine", v1beta2: 12},
	{hook: "CanUpdateMachineSet", since: 12, kind: "MachineSet", v1beta2: 12},
	{hook: "DiscoverVariables", since: oldestClusterAPI, kind: "ClusterClassVariable", v1beta2: 13},
	{hook: "Discovery", since: oldestClusterAPI},
	{hook: "GeneratePatches", since: oldestClusterAPI},
	{hook: "GenerateUpgradePlan", since: 12, kind: "Cluster", v1beta2: 12},
	{hook: "UpdateMachine", since: 12, kind: "Machine", v1beta2: 12},
	{hook: "ValidateTopology", since: oldestClusterAPI},
}

// ClusterAPIReleases returns the minor releases of Cluster API that are known, oldest first.
func ClusterAPIReleases() []*ClusterAPIRelease {
	releases := make([]*ClusterAPIRelease, 0, newestClusterAPI-oldestClusterAPI+1)
	for minor := uint64(oldestClusterAPI); minor <= newestClusterAPI; minor++ {
		r := &ClusterAPIRelease{Name: fmt.Sprintf("v1.%d", minor)}
		for _, e := range clusterAPIHooks {
			if minor < e.since {
				continue
			}
			h := ClusterAPIHook{GroupVersionHook: hook.GroupVersionHook{Group: hook.Group, Version: hook.Version, Hook: e.hook}, Kind: e.kind}
			switch {
			case e.kind == "":
			case minor < e.v1beta2:
				h.ObjectVersion = hook.ClusterAPIV1Beta1
			default:
				h.ObjectVersion = hook.ClusterAPIV1Beta2
			}
			r.Hooks = append(r.Hooks, h)
		}
		releases = append(releases, r)
	}
	return releases
}

// ClusterAPIReleaseOf returns the minor release that a version of Cluster API belongs to, such as v1.14, v1.14.2 or
// v1.14.0-rc.1. The error lists those that are known.
func ClusterAPIReleaseOf(version string) (*ClusterAPIRelease, error) {
	releases := ClusterAPIReleases()
	names := make([]string, len(releases))
	for i, r := range releases {
		names[i] = r.Name
	}
	v, err := semver.ParseTolerant(version)
	if err != nil || strings.Count(version, ".") == 0 {
		return nil, fmt.Errorf("%q is not a version; the known releases of Cluster API are %s", version, strings.Join(names, ", "))
	}
	i := slices.Index(names, fmt.Sprintf("v%d.%d", v.Major, v.Minor))
	if i < 0 {
		return nil, fmt.Errorf("release %s of Cluster API is not known here; the known ones are %s", version, strings.Join(names, ", "))
	}
	return releases[i], nil
}

// Hook returns the hook of that name as the release calls it, in whatever version.
func (r *ClusterAPIRelease) Hook(name string) (ClusterAPIHook, bool) {
	for _, h := range r.Hooks {
		if h.Hook == name {
			return h, true
		}
	}
	return ClusterAPIHook{}, false
}

// EverSent returns the versions in which releases that are known send what the hook embeds, oldest first. It is nothing for
// hooks that embed nothing of Cluster API, and for those that no release calls.
func EverSent(hookName string) []string {
	var versions []string
	for _, r := range ClusterAPIReleases() {
		if h, ok := r.Hook(hookName); ok && h.ObjectVersion != "" && !slices.Contains(versions, h.ObjectVersion) {
			versions = append(versions, h.ObjectVersion)
		}
	}
	return versions
}
