// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package hook

import (
	"fmt"
	"strings"
)

const (
	// Group is the API group of the hooks of Cluster API.
	Group = "hooks.runtime.cluster.x-k8s.io"
	// Version is the only version of them in Cluster API.
	Version = "v1alpha1"
	// APIVersion is the apiVersion of every request and answer: Group and Version.
	APIVersion = Group + "/" + Version

	// Discovery is the hook of Group that lists the handlers of an extension. It is the only one without handlers.
	Discovery = "Discovery"

	// InfrastructureGroup is the API group of the hooks through which an extension provides infrastructure.
	InfrastructureGroup = "infrastructure.hookgate.dev"
	// InfrastructureVersion is the only version of them.
	InfrastructureVersion = "v1alpha1"

	// MachinesGroup is the API group of the hooks that accompany single Machines.
	MachinesGroup = "hooks.machines.hookgate.dev"
	// MachinesVersion is the only version of them.
	MachinesVersion = "v1alpha1"
)

// GroupVersionHook names a hook in one version.
type GroupVersionHook struct {
	Group   string
	Version string
	Hook    string
}

// GroupHook names a hook, whatever its version.
type GroupHook struct {
	Group string
	Hook  string
}

// GroupHook returns g without its version.
func (g GroupVersionHook) GroupHook() GroupHook { return GroupHook{Group: g.Group, Hook: g.Hook} }

// APIVersion returns group and version in the form of the member apiVersion.
func (g GroupVersionHook) APIVersion() string { return g.Group + "/" + g.Version }

// String returns the form group/version/hook, for messages.
func (g GroupVersionHook) String() string { return g.Group + "/" + g.Version + "/" + g.Hook }

// String returns the form group/hook, for messages.
func (g GroupHook) String() string { return g.Group + "/" + g.Hook }

// Path returns the URL path at which a handler answers the hook, in lower case as Cluster API requires. handler is
// empty for Discovery, and for the only handler of an extension.
func (g GroupVersionHook) Path(handler string) string {
	p := "/" + g.Group + "/" + g.Version + "/" + strings.ToLower(g.Hook)
	if handler != "" {
		p += "/" + strings.ToLower(handler)
	}
	return p
}

// Parse returns the GroupVersionHook of an apiVersion ("group/version") and the name of a hook.
func Parse(apiVersion, name string) (GroupVersionHook, error) {
	group, version, ok := strings.Cut(apiVersion, "/")
	if !ok || group == "" || version == "" || strings.Contains(version, "/") {
		return GroupVersionHook{}, fmt.Errorf("apiVersion %q is not of the form group/version", apiVersion)
	}
	if name == "" {
		return GroupVersionHook{}, fmt.Errorf("hook of apiVersion %q has no name", apiVersion)
	}
	return GroupVersionHook{Group: group, Version: version, Hook: name}, nil
}

// The versions of the Cluster API objects, of the API group cluster.x-k8s.io, that requests and answers embed.
const (
	ClusterAPIV1Beta1 = "v1beta1"
	ClusterAPIV1Beta2 = "v1beta2"
)

// CheckClusterAPIVersion returns an error unless version is a version of Cluster API objects that can be converted.
func CheckClusterAPIVersion(version string) error {
	if version != ClusterAPIV1Beta1 && version != ClusterAPIV1Beta2 {
		return fmt.Errorf("%q is neither %q nor %q", version, ClusterAPIV1Beta1, ClusterAPIV1Beta2)
	}
	return nil
}

// FailurePolicy decides what becomes of a call that could not be completed.
type FailurePolicy string

// The failure policies of Cluster API. An absent one means Fail.
const (
	Fail   FailurePolicy = "Fail"
	Ignore FailurePolicy = "Ignore"
)
