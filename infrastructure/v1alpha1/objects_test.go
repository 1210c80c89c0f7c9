// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/hookgate/hookgate/infrastructure/v1alpha1"
)

// fullObjects returns an object of each kind with all its fields.
func fullObjects() map[string]any {
	parameters := func() *apiextensionsv1.JSON { return &apiextensionsv1.JSON{Raw: []byte(`{"a":{"b":[1]}}`)} }
	conditions := []metav1.Condition{{
		Type: v1alpha1.ReadyCondition, Status: metav1.ConditionTrue, Reason: v1alpha1.ReadyReason,
		LastTransitionTime: metav1.Unix(0, 0),
	}}
	metadata := clusterv1.ObjectMeta{Labels: map[string]string{"a": "b"}}
	handlers := v1alpha1.Handlers{
		ReconcileCluster: "a", DeleteCluster: "b", ReconcileMachine: "c", DeleteMachine: "d",
		ReconcileMachinePool: "e", DeleteMachinePool: "f",
	}
	addresses := []clusterv1.MachineAddress{{Type: clusterv1.MachineInternalIP, Address: "10.0.0.1"}}
	initialization := v1alpha1.Initialization{Provisioned: new(false)}

	class := &v1alpha1.InfrastructureClass{}
	class.Spec = v1alpha1.InfrastructureClassSpec{
		ExtensionRef: v1alpha1.ExtensionReference{Name: "acme"}, Handlers: handlers,
		AllowedNamespaces: &v1alpha1.AllowedNamespaces{Names: []string{"a"}, Selector: &metav1.LabelSelector{}},
		CredentialsRef:    &v1alpha1.SecretReference{Name: "s", Namespace: "n"},
		DefaultParameters: v1alpha1.DefaultParameters{Cluster: parameters(), Machine: parameters(), MachinePool: parameters()},
	}
	class.Status = v1alpha1.InfrastructureClassStatus{
		Conditions: conditions, Handlers: handlers, ProviderIDPrefix: "acme://",
		Schemas: v1alpha1.ParameterSchemas{Cluster: parameters(), Machine: parameters(), MachinePool: parameters()},
		MachineCapacities: []v1alpha1.MachineCapacity{{
			Parameters: parameters(), Capacity: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")},
			NodeInfo: v1alpha1.NodeInfo{Architecture: "amd64", OperatingSystem: "linux"},
		}},
	}

	identity := &v1alpha1.HookgateClusterIdentity{}
	identity.Spec = v1alpha1.HookgateClusterIdentitySpec{
		CredentialsRef:    v1alpha1.LocalSecretReference{Name: "s"},
		AllowedNamespaces: &v1alpha1.AllowedNamespaces{Names: []string{"a"}, Selector: &metav1.LabelSelector{}},
	}
	identity.Status.Conditions = conditions

	cluster := &v1alpha1.HookgateCluster{}
	cluster.Spec = v1alpha1.HookgateClusterSpec{
		InfrastructureClassName: "acme", Parameters: parameters(), CredentialsRef: &v1alpha1.SecretReference{Name: "s"},
		ControlPlaneEndpoint: clusterv1.APIEndpoint{Host: "h", Port: 6443}, ExternalID: "c-1",
		IdentityRef: &v1alpha1.IdentityReference{Name: "i"},
	}
	cluster.Status = v1alpha1.HookgateClusterStatus{
		Conditions: conditions, Initialization: initialization, Outputs: parameters(),
		FailureDomains: []v1alpha1.FailureDomain{{Name: "a", ControlPlane: new(false), Attributes: map[string]string{"a": "b"}}},
	}

	machine := &v1alpha1.HookgateMachine{}
	machine.Spec = v1alpha1.HookgateMachineSpec{Parameters: parameters(), ProviderID: "acme://1", ExternalID: "m-1"}
	machine.Status = v1alpha1.HookgateMachineStatus{
		Conditions: conditions, Initialization: initialization, Addresses: addresses, FailureDomain: "a",
	}

	pool := &v1alpha1.HookgateMachinePool{}
	pool.Spec = v1alpha1.HookgateMachinePoolSpec{
		Parameters: parameters(), InstanceManagement: v1alpha1.InstanceManagementMachines, ProviderID: "acme://p",
		ProviderIDList: []string{"acme://1"}, ExternalID: "p-1",
	}
	pool.Status = v1alpha1.HookgateMachinePoolStatus{
		Conditions: conditions, Initialization: initialization, Ready: new(false), Replicas: new(int32(0)),
		InfrastructureMachineKind: v1alpha1.HookgateMachineKind,
		Capacity:                  corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")},
		NodeInfo:                  v1alpha1.NodeInfo{Architecture: "amd64", OperatingSystem: "linux"},
		Instances: []v1alpha1.MachinePoolInstance{{
			InstanceName: "i", ProviderID: "acme://1", Ready: new(false), Version: "v1.36.0", Revision: "r",
			FailureDomain: "a", Addresses: addresses,
		}},
	}

	clusters := &v1alpha1.HookgateClusterTemplate{}
	clusters.Spec.Template = v1alpha1.HookgateClusterTemplateResource{
		ObjectMeta: metadata, Spec: v1alpha1.HookgateClusterTemplateResourceSpec{
			InfrastructureClassName: "acme", Parameters: parameters(), CredentialsRef: &v1alpha1.SecretReference{Name: "s"},
			IdentityRef: &v1alpha1.IdentityReference{Name: "i"},
		},
	}
	machines := &v1alpha1.HookgateMachineTemplate{}
	machines.Spec.Template = v1alpha1.HookgateMachineTemplateResource{
		ObjectMeta: metadata, Spec: v1alpha1.HookgateMachineTemplateResourceSpec{Parameters: parameters()},
	}
	machines.Status = v1alpha1.HookgateMachineTemplateStatus{
		Conditions: conditions, Capacity: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")},
		NodeInfo: v1alpha1.NodeInfo{Architecture: "amd64", OperatingSystem: "linux"},
	}
	pools := &v1alpha1.HookgateMachinePoolTemplate{}
	pools.Spec.Template = v1alpha1.HookgateMachinePoolTemplateResource{
		ObjectMeta: metadata, Spec: v1alpha1.HookgateMachinePoolTemplateResourceSpec{
			Parameters: parameters(), InstanceManagement: v1alpha1.InstanceManagementMachines,
		},
	}
	return map[string]any{
		v1alpha1.InfrastructureClassKind: class, v1alpha1.HookgateClusterIdentityKind: identity, v1alpha1.HookgateClusterKind: cluster,
		v1alpha1.HookgateMachineKind: machine, v1alpha1.HookgateMachinePoolKind: pool,
		v1alpha1.HookgateClusterTemplateKind: clusters, v1alpha1.HookgateMachineTemplateKind: machines,
		v1alpha1.HookgateMachinePoolTemplateKind: pools,
	}
}
