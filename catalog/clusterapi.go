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

// ClusterAPIRelease describes the hooks of a minor release of Cluster API. It is immutable.
type ClusterAPIRelease struct {
	// Name is the minor release, such as v1.14. Its patch releases have the same hooks.
	Name string
	// Hooks lists the hooks that the release calls, ordered by name. Callers must not change the slice.
	Hooks []ClusterAPIHook
	// Announced is set if the release is not out: all about it is as announced, and may still change.
	Announced bool
}

// ClusterAPIHook is a hook that a release of Cluster API calls.
type ClusterAPIHook struct {
	hook.GroupVersionHook
	// Kind is the kind of Cluster API object in the request (Cluster, Machine or MachineSet) or in the answer
	// (ClusterClassVariable). It is empty for hooks that carry only objects of providers.
	Kind string
	// ObjectVersion is the version of Kind in cluster.x-k8s.io, v1beta1 or v1beta2. It is empty if Kind is.
	ObjectVersion string
}

// clusterAPIHook is a row of the table below. Its numbers are minor releases of v1.
type clusterAPIHook struct {
	hook    string
	since   uint64 // the release that added the hook, or the oldest one of the table
	kind    string
	v1beta2 uint64 // the first release that sends v1beta2; earlier ones send v1beta1
}

// The range of releases in the table, and the one after them, of which only announcements are known. Older releases are
// out of support.
const oldestClusterAPI, newestClusterAPI, announcedClusterAPI = 8, 14, 15

// clusterAPIHooks lists the hooks in Cluster API's packages at its release tags: exp/runtime/hooks/api/v1alpha1 up to
// v1.10, api/runtime/hooks/v1alpha1 since. No release has removed a hook. In v1.13 the version of objects changed
// within one version of the hooks: earlier hooks carried v1beta1 until then. Of the hooks that v1.12 added, the
// lifecycle hooks did, too; the others carried v1beta2 from the start.
var clusterAPIHooks = []clusterAPIHook{
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

// ClusterAPIReleases returns the known minor releases of Cluster API that are out, oldest first.
func ClusterAPIReleases() []*ClusterAPIRelease {
	releases := make([]*ClusterAPIRelease, 0, newestClusterAPI-oldestClusterAPI+1)
	for minor := uint64(oldestClusterAPI); minor <= newestClusterAPI; minor++ {
		releases = append(releases, clusterAPIRelease(minor))
	}
	return releases
}

func clusterAPIRelease(minor uint64) *ClusterAPIRelease {
	r := &ClusterAPIRelease{Name: fmt.Sprintf("v1.%d", minor), Announced: minor > newestClusterAPI}
	for _, e := range clusterAPIHooks {
		if minor < e.since {
			continue
		}
		gvh := hook.GroupVersionHook{Group: hook.Group, Version: hook.Version, Hook: e.hook}
		h := ClusterAPIHook{GroupVersionHook: gvh, Kind: e.kind}
		switch {
		case e.kind == "":
		case minor < e.v1beta2:
			h.ObjectVersion = hook.ClusterAPIV1Beta1
		default:
			h.ObjectVersion = hook.ClusterAPIV1Beta2
		}
		r.Hooks = append(r.Hooks, h)
	}
	return r
}

// ClusterAPIReleaseOf returns the minor release of a version of Cluster API, such as v1.14, v1.14.2 or v1.14.0-rc.1.
// It knows the next release, too, as announced. The error lists the known releases.
func ClusterAPIReleaseOf(version string) (*ClusterAPIRelease, error) {
	releases := ClusterAPIReleases()
	names := make([]string, len(releases))
	for i, r := range releases {
		names[i] = r.Name
	}
	next := clusterAPIRelease(announcedClusterAPI)
	known := strings.Join(names, ", ") + ", and " + next.Name + " (announced)"
	v, err := semver.ParseTolerant(version)
	if err != nil || strings.Count(version, ".") == 0 {
		return nil, fmt.Errorf("%q is not a version; the known releases of Cluster API are %s", version, known)
	}
	name := fmt.Sprintf("v%d.%d", v.Major, v.Minor)
	if name == next.Name {
		return next, nil
	}
	i := slices.Index(names, name)
	if i < 0 {
		return nil, fmt.Errorf("release %s of Cluster API is not known here; the known ones are %s", version, known)
	}
	return releases[i], nil
}

// Hook returns the hook with the given name as the release calls it.
func (r *ClusterAPIRelease) Hook(name string) (ClusterAPIHook, bool) {
	for _, h := range r.Hooks {
		if h.Hook == name {
			return h, true
		}
	}
	return ClusterAPIHook{}, false
}

// EverSent returns the versions, oldest first, in which known releases send the Cluster API objects of a hook. It
// returns nil for hooks without such objects and for hooks that no release calls.
func EverSent(hookName string) []string {
	var versions []string
	for _, r := range ClusterAPIReleases() {
		if h, ok := r.Hook(hookName); ok && h.ObjectVersion != "" && !slices.Contains(versions, h.ObjectVersion) {
			versions = append(versions, h.ObjectVersion)
		}
	}
	return versions
}

// ObjectVersion returns the version in which a release, such as v1.12, sends the Cluster API objects of a hook; empty
// if there are none, or it does not call the hook.
func ObjectVersion(hookName, release string) string {
	for _, r := range ClusterAPIReleases() {
		if h, ok := r.Hook(hookName); ok && r.Name == release {
			return h.ObjectVersion
		}
	}
	return ""
}

// Sends reports whether the release sends Cluster API objects of a version, in any hook.
func (r *ClusterAPIRelease) Sends(objectVersion string) bool {
	return slices.ContainsFunc(r.Hooks, func(h ClusterAPIHook) bool { return h.ObjectVersion == objectVersion })
}
