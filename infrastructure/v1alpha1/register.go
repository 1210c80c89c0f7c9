// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the group and version of the kinds in this package.
var GroupVersion = schema.GroupVersion{Group: "infrastructure.hookgate.dev", Version: "v1alpha1"}

// The names of the kinds.
const (
	InfrastructureClassKind         = "InfrastructureClass"
	HookgateClusterIdentityKind     = "HookgateClusterIdentity"
	HookgateClusterKind             = "HookgateCluster"
	HookgateClusterTemplateKind     = "HookgateClusterTemplate"
	HookgateMachineKind             = "HookgateMachine"
	HookgateMachineTemplateKind     = "HookgateMachineTemplate"
	HookgateMachinePoolKind         = "HookgateMachinePool"
	HookgateMachinePoolTemplateKind = "HookgateMachinePoolTemplate"
)

// AddToScheme adds the kinds of this package to a scheme.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion,
		&InfrastructureClass{}, &InfrastructureClassList{},
		&HookgateClusterIdentity{}, &HookgateClusterIdentityList{},
		&HookgateCluster{}, &HookgateClusterList{},
		&HookgateClusterTemplate{}, &HookgateClusterTemplateList{},
		&HookgateMachine{}, &HookgateMachineList{},
		&HookgateMachineTemplate{}, &HookgateMachineTemplateList{},
		&HookgateMachinePool{}, &HookgateMachinePoolList{},
		&HookgateMachinePoolTemplate{}, &HookgateMachinePoolTemplateList{},
	)
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}
