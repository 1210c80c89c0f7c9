// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"fmt"
	"strings"

	"github.com/blang/semver/v4"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/hook"
)

// Target holds the releases that would run after the upgrade, and those that run now.
type Target struct {
	// ClusterAPI is the release of Cluster API that would run; nil if only the gateway is upgraded.
	ClusterAPI *catalog.ClusterAPIRelease
	// From is the release of Cluster API that runs now; nil if it is not known.
	From *catalog.ClusterAPIRelease
	// FromSource says who names From, for people: a flag, or an object in the cluster.
	FromSource string
	// Gateway is the release of the gateway that would run, as in v0.2.0; empty if only Cluster API is upgraded.
	Gateway string
	// Hooks are the hooks of the gateway, with the releases in which versions come and go.
	Hooks *catalog.Catalog
	// HookLosses returns the paths that a call can lose between the caller's and the handler's version of a hook.
	HookLosses func(caller, handler *catalog.Hook) []string
	// Lossy returns the paths that a conversion of a kind of Cluster API objects can lose.
	Lossy func(kind, from, to string) []string
	// Changes returns what releases of Cluster API changed for the handlers of a hook after one release, or of all if it
	// is nil, up to another, besides the version of objects. It may be nil, for nothing.
	Changes func(hookName string, after, upTo *catalog.ClusterAPIRelease) []catalog.ClusterAPIChange
}

// The names of the components that may be upgraded, with which targets begin.
const (
	ClusterAPI = "cluster-api"
	Gateway    = "hookgate"
)

// ParseTarget reads targets of the form cluster-api=v1.14.0 and hookgate=v0.2.0, at most one of each, into t. Releases
// that are not known are an error that lists those that are.
func (t *Target) ParseTarget(text string) error {
	name, version, ok := strings.Cut(text, "=")
	switch {
	case !ok || version == "":
	case name == ClusterAPI && t.ClusterAPI != nil, name == Gateway && t.Gateway != "":
		return fmt.Errorf("%q: %s has a target already", text, name)
	case name == ClusterAPI:
		release, err := catalog.ClusterAPIReleaseOf(version)
		if err != nil {
			return err
		}
		t.ClusterAPI = release
		return nil
	case name == Gateway:
		return t.parseGateway(version)
	}
	return fmt.Errorf("%q: want %s=VERSION or %s=VERSION, as in %s=v1.14.0", text, ClusterAPI, Gateway, ClusterAPI)
}

func (t *Target) parseGateway(version string) error {
	v, err := semver.ParseTolerant(version)
	var known []string
	found := false
	for _, r := range t.Hooks.Releases() {
		known = append(known, r.Version)
		k, kerr := semver.ParseTolerant(r.Version)
		found = found || err == nil && kerr == nil && k.Major == v.Major && k.Minor == v.Minor
	}
	switch {
	case err != nil || !strings.Contains(version, "."):
		return fmt.Errorf("%q is not a version; the known releases of Hookgate are %s", version,
			strings.Join(known, ", "))
	case !found:
		return fmt.Errorf("release %s of Hookgate is not known here; the known ones are %s. Use the hookgate of the "+
			"release that you upgrade to",
			version, strings.Join(known, ", "))
	}
	t.Gateway = "v" + v.String()
	return nil
}

// names returns the targets in the form of ParseTarget.
func (t *Target) names() []string {
	names := []string{}
	if t.ClusterAPI != nil {
		names = append(names, ClusterAPI+"="+t.ClusterAPI.Name)
	}
	if t.Gateway != "" {
		names = append(names, Gateway+"="+t.Gateway)
	}
	return names
}

// release returns the release of the gateway that would run: the newest, unless Gateway names another.
func (t *Target) release() string {
	if releases := t.Hooks.Releases(); t.Gateway == "" && len(releases) > 0 {
		return releases[len(releases)-1].Version
	}
	return t.Gateway
}

// reached reports whether the gateway's release is at or after the release of an event in the lifetime of a version.
// What belongs to another program is as the program at hand has it.
func (t *Target) reached(v *catalog.Version, event string) bool {
	if event == "" || v.Releases != nil {
		return event != ""
	}
	at, err := semver.ParseTolerant(t.release())
	when, err2 := semver.ParseTolerant(event)
	at.Pre = nil // a candidate has what its release has
	return err == nil && err2 == nil && when.LTE(at)
}

// convertible reports whether the gateway converts between versions of Cluster API objects.
func convertible(from, to string) bool {
	return hook.CheckClusterAPIVersion(from) == nil && hook.CheckClusterAPIVersion(to) == nil
}
