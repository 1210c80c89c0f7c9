// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package hookversions

import (
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/hookversion"
	v1 "github.com/hookgate/hookgate/test/hookversions/gen/hookversions/v1"
	v1alpha1 "github.com/hookgate/hookgate/test/hookversions/gen/hookversions/v1alpha1"
	v1beta1 "github.com/hookgate/hookgate/test/hookversions/gen/hookversions/v1beta1"
)

// Group is the API group of the hooks.
const Group = "hooks.test.hookgate.dev"

// The hooks, besides Discovery.
const (
	BeforeNodeDrain = "BeforeNodeDrain" // its answers are merged
	PlanDrains      = "PlanDrains"      // its answers are not
)

// Versions returns the versions that have not been removed, oldest first.
func Versions() []string { return []string{"v1alpha1", "v1beta1", "v1"} }

// New returns the catalog of the group.
func New() *catalog.Catalog {
	c, err := catalog.Build(Releases(), Sources()...)
	if err != nil {
		panic("hookversions: " + err.Error())
	}
	return c
}

// NewConverter returns the conversions of the group's hooks.
func NewConverter(hooks *catalog.Catalog) *hookversion.Converter {
	c, err := hookversion.Build(hooks, Spokes())
	if err != nil {
		panic("hookversions: " + err.Error())
	}
	return c
}

// Spokes returns the conversions of the older versions.
func Spokes() hookversion.Spokes {
	spokes := hookversion.Spokes{}
	for version, hooks := range map[string]map[string]hookversion.Spoke{
		"v1alpha1": alphaSpokes(), "v1beta1": betaSpokes(),
	} {
		for name, s := range hooks {
			spokes[hook.GroupVersionHook{Group: Group, Version: version, Hook: name}] = s
		}
	}
	return spokes
}

// Releases returns the releases of a gateway over three years.
func Releases() []catalog.Release {
	return []catalog.Release{
		{Version: "v0.1.0", Date: "2023-01-10"},
		{Version: "v0.2.0", Date: "2024-01-10"},
		{Version: "v0.3.0", Date: "2025-01-10"},
		{Version: "v0.4.0", Date: "2026-01-10"},
	}
}

// Sources returns the versions of the group.
func Sources() []catalog.Source {
	return []catalog.Source{
		{
			Group: Group, Version: "v0alpha1",
			Lifetime: catalog.Lifetime{Introduced: "v0.1.0", Deprecated: "v0.2.0", Removed: "v0.3.0"},
		},
		{
			Group: Group, Version: "v1alpha1", Lifetime: catalog.Lifetime{Introduced: "v0.2.0", Deprecated: "v0.4.0"},
			Files: []protoreflect.FileDescriptor{v1alpha1.File_hookversions_v1alpha1_hooks_proto},
		},
		{
			Group: Group, Version: "v1beta1", Lifetime: catalog.Lifetime{Introduced: "v0.3.0"},
			Files: []protoreflect.FileDescriptor{v1beta1.File_hookversions_v1beta1_hooks_proto},
		},
		{
			Group: Group, Version: "v1", Lifetime: catalog.Lifetime{Introduced: "v0.4.0"},
			Files: []protoreflect.FileDescriptor{v1.File_hookversions_v1_hooks_proto},
		},
	}
}
