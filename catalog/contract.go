// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"google.golang.org/protobuf/reflect/protoreflect"

	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/hook"
)

// New returns the catalog of Cluster API's hooks.
func New() *Catalog {
	c, err := With()
	if err != nil {
		panic("catalog: " + err.Error()) // a mistake below, which every test sees
	}
	return c
}

// With returns the catalog of Cluster API's hooks and of further groups. The error is that of Build.
func With(more ...Source) (*Catalog, error) { return Build(releases(), append(sources(), more...)...) }

// releases lists the releases of the gateway, oldest first. The next release has no date yet.
func releases() []Release {
	return []Release{
		{Version: "v0.1.0", Date: "2026-11-22"},
		{Version: "v0.2.0"},
	}
}

// sources lists the versions of Cluster API's hooks. A removed version loses its files but stays in the list, so that
// errors can name what replaced it.
func sources() []Source {
	return []Source{
		{
			Group: hook.Group, Version: hook.Version,
			Lifetime: Lifetime{Introduced: "v0.1.0"},
			Files: []protoreflect.FileDescriptor{
				hooksv1alpha1.File_hookgate_hooks_v1alpha1_discovery_proto,
				hooksv1alpha1.File_hookgate_hooks_v1alpha1_lifecycle_hooks_proto,
				hooksv1alpha1.File_hookgate_hooks_v1alpha1_topology_mutation_proto,
				hooksv1alpha1.File_hookgate_hooks_v1alpha1_in_place_update_proto,
				hooksv1alpha1.File_hookgate_hooks_v1alpha1_upgrade_plan_proto,
			},
		},
	}
}
