// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"google.golang.org/protobuf/reflect/protoreflect"

	infrastructurev1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/infrastructure/v1alpha1"
	"github.com/hookgate/hookgate/hook"
)

// Infrastructure returns the hooks through which an extension provides infrastructure for Cluster API, as a group for
// With.
func Infrastructure() []Source {
	return []Source{
		{
			Group: hook.InfrastructureGroup, Version: hook.InfrastructureVersion,
			Lifetime: Lifetime{Introduced: "v0.1.0"},
			Files: []protoreflect.FileDescriptor{
				infrastructurev1alpha1.File_hookgate_infrastructure_v1alpha1_discovery_proto,
				infrastructurev1alpha1.File_hookgate_infrastructure_v1alpha1_cluster_proto,
				infrastructurev1alpha1.File_hookgate_infrastructure_v1alpha1_machine_proto,
				infrastructurev1alpha1.File_hookgate_infrastructure_v1alpha1_machine_pool_proto,
			},
			FailOnly: true, // without an answer, nothing is known to exist, or to be gone
		},
	}
}
