// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog_test

import (
	"fmt"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/hookgate/hookgate/catalog"
	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
)

// A gateway of Cluster API's hooks uses the catalog of the contract.
func ExampleNew() {
	hooks := catalog.New()
	h, ok := hooks.ByName("generatepatches")
	fmt.Println(h, ok)
	fmt.Println("POST", h.Path("patch.acme"))
	fmt.Println(h.Method)
	fmt.Println("answers can be merged:", h.Mergeable)
	// Output:
	// hooks.runtime.cluster.x-k8s.io/v1alpha1/GeneratePatches true
	// POST /hooks.runtime.cluster.x-k8s.io/v1alpha1/generatepatches/patch.acme
	// /hookgate.hooks.v1alpha1.TopologyMutationHooksService/GeneratePatches
	// answers can be merged: false
}

// A gateway of other hooks builds a catalog from the descriptors of their protos. This example reuses the descriptors
// of Discovery and of the lifecycle hooks in another group.
func ExampleBuild() {
	hooks, err := catalog.Build(
		[]catalog.Release{{Version: "v0.1.0"}},
		catalog.Source{
			Group: "hooks.example.com", Version: "v1alpha1",
			Lifetime: catalog.Lifetime{Introduced: "v0.1.0"},
			Files: []protoreflect.FileDescriptor{
				hooksv1alpha1.File_hookgate_hooks_v1alpha1_discovery_proto,
				hooksv1alpha1.File_hookgate_hooks_v1alpha1_lifecycle_hooks_proto,
			},
		},
	)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, h := range hooks.Hubs() {
		if h.Category == catalog.Lifecycle && h.Blocking {
			fmt.Println(h.Path(""))
		}
	}
	// Output:
	// /hooks.example.com/v1alpha1/afterclusterupgrade
	// /hooks.example.com/v1alpha1/aftercontrolplaneupgrade
	// /hooks.example.com/v1alpha1/afterworkersupgrade
	// /hooks.example.com/v1alpha1/beforeclustercreate
	// /hooks.example.com/v1alpha1/beforeclusterdelete
	// /hooks.example.com/v1alpha1/beforeclusterupgrade
	// /hooks.example.com/v1alpha1/beforecontrolplaneupgrade
	// /hooks.example.com/v1alpha1/beforeworkersupgrade
}
