// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"slices"

	"google.golang.org/protobuf/reflect/protoreflect"

	machinesv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/machines/v1alpha1"
	"github.com/hookgate/hookgate/hook"
)

// Machines returns the hooks that accompany single Machines, as a group for With.
func Machines() []Source {
	return []Source{
		{
			Group: hook.MachinesGroup, Version: hook.MachinesVersion,
			Lifetime: Lifetime{Introduced: "v0.2.0"},
			Files: []protoreflect.FileDescriptor{
				machinesv1alpha1.File_hookgate_machines_v1alpha1_discovery_proto,
				machinesv1alpha1.File_hookgate_machines_v1alpha1_lifecycle_proto,
				machinesv1alpha1.File_hookgate_machines_v1alpha1_remediation_proto,
			},
			FailOnly: true, // without an answer, a remediation would be taken for done
		},
	}
}

// Own returns the groups of hooks that Hookgate has besides Cluster API's, for With.
func Own() []Source { return slices.Concat(Infrastructure(), Machines()) }
