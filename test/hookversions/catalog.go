// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package hookversions

import (
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/hookgate/hookgate/catalog"
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

// Versions are those that are served, oldest first.
func Versions() []string { return []string{"v1alpha1", "v1beta1", "v1"} }

// New returns the catalog of the group. It panics if a conversion is wrong.
func New() *catalog.Catalog {
	c, err := catalog.Build(Releases(), Sources()...)
	if err != nil {
		panic("hookversions: " + err.Error())
	}
	return c
}

// Releases are the releases of a gateway that has lived for three years.
func Releases() []catalog.Release {
	return []catalog.Release{
		{Version: "v0.1.0", Date: "2023-01-10"},
		{Version: "v0.2.0", Date: "2024-01-10"},
		{Version: "v0.3.0", Date: "2025-01-10"},
		{Version: "v0.4.0", Date: "2026-01-10"},
	}
}

// Sources are the versions of the group.
func Sources() []catalog.Source {
	return []catalog.Source{
		{Group: Group, Version: "v0alpha1", Lifetime: catalog.Lifetime{Introduced: "v0.1.0", Deprecated: "v0.2.0", Removed: "v0.3.0"}},
		{
			Group: Group, Version: "v1alpha1", Lifetime: catalog.Lifetime{Introduced: "v0.2.0", Deprecated: "v0.4.0"},
			Files:  []protoreflect.FileDescriptor{v1alpha1.File_hookversions_v1alpha1_hooks_proto},
			Spokes: alphaSpokes(),
		},
		{
			Group: Group, Version: "v1beta1", Lifetime: catalog.Lifetime{Introduced: "v0.3.0"},
			Files:  []protoreflect.FileDescriptor{v1beta1.File_hookversions_v1beta1_hooks_proto},
			Spokes: betaSpokes(),
		},
		{
			Group: Group, Version: "v1", Lifetime: catalog.Lifetime{Introduced: "v0.4.0"},
			Files: []protoreflect.FileDescriptor{v1.File_hookversions_v1_hooks_proto},
		},
	}
}
