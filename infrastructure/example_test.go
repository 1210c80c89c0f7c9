// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package infrastructure_test

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/hookgate/hookgate/infrastructure"
)

// The manager of the controllers needs their scheme: with the kinds of Hookgate, those of Cluster API and Kubernetes
// that they read.
func ExampleAddToScheme() {
	scheme := runtime.NewScheme()
	if err := infrastructure.AddToScheme(scheme); err != nil {
		fmt.Println(err)
		return
	}
	options := manager.Options{Scheme: scheme}
	for _, kind := range []schema.GroupKind{
		{Group: "infrastructure.hookgate.dev", Kind: "HookgateMachine"}, {Group: "cluster.x-k8s.io", Kind: "Machine"}, {Kind: "Secret"},
	} {
		fmt.Println(kind.Kind, options.Scheme.IsGroupRegistered(kind.Group))
	}
	// Output:
	// HookgateMachine true
	// Machine true
	// Secret true
}
