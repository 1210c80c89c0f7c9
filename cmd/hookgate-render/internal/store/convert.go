// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	bootstrapv1beta1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta1"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	controlplanev1beta1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta1"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1beta1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	bootstrapconversion "sigs.k8s.io/cluster-api/bootstrap/kubeadm/webhooks/conversion"
	controlplaneconversion "sigs.k8s.io/cluster-api/controlplane/kubeadm/webhooks/conversion"
	coreconversion "sigs.k8s.io/cluster-api/core/webhooks/conversion"
)

// hubs convert objects of v1beta1 to v1beta2, as Cluster API's webhooks do for the API server.
var hubs = map[schema.GroupVersionKind]func(context.Context, map[string]any) (runtime.Object, error){
	clusterv1beta1.GroupVersion.WithKind("Cluster"):            hub(coreconversion.ConvertClusterV1Beta1ToHub),
	clusterv1beta1.GroupVersion.WithKind("ClusterClass"):       hub(coreconversion.ConvertClusterClassV1Beta1ToHub),
	clusterv1beta1.GroupVersion.WithKind("MachineDeployment"):  hub(coreconversion.ConvertMachineDeploymentV1Beta1ToHub),
	clusterv1beta1.GroupVersion.WithKind("MachinePool"):        hub(coreconversion.ConvertMachinePoolV1Beta1ToHub),
	clusterv1beta1.GroupVersion.WithKind("MachineHealthCheck"): hub(coreconversion.ConvertMachineHealthCheckV1Beta1ToHub),
	bootstrapv1beta1.GroupVersion.WithKind("KubeadmConfigTemplate"): hub(
		bootstrapconversion.ConvertKubeadmConfigTemplateV1Beta1ToHub),
	controlplanev1beta1.GroupVersion.WithKind("KubeadmControlPlaneTemplate"): hub(
		controlplaneconversion.ConvertKubeadmControlPlaneTemplateV1Beta1ToHub),
}

// hub returns the entry of hubs for one of Cluster API's functions.
func hub[S, H any](convert func(context.Context, *S, *H) error) func(
	context.Context, map[string]any,
) (runtime.Object, error) {
	return func(ctx context.Context, object map[string]any) (runtime.Object, error) {
		spoke, converted := new(S), new(H)
		if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object, spoke, true); err != nil {
			return nil, err
		}
		if err := convert(ctx, spoke, converted); err != nil {
			return nil, err
		}
		o, _ := any(converted).(runtime.Object)
		return o, nil
	}
}

// newest returns an object in v1beta2 if it is one of Cluster API's own in v1beta1; otherwise the object itself.
func newest(ctx context.Context, o *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	gvk := o.GroupVersionKind()
	convert, ok := hubs[gvk]
	if !ok {
		return o, nil
	}
	converted, err := convert(ctx, o.Object)
	if err != nil {
		return nil, fmt.Errorf("convert %s %q to v1beta2: %w", gvk.Kind, o.GetName(), err)
	}
	members, err := runtime.DefaultUnstructuredConverter.ToUnstructured(converted)
	if err != nil {
		return nil, err
	}
	result := &unstructured.Unstructured{Object: members}
	result.SetGroupVersionKind(gvk.GroupKind().WithVersion(clusterv1.GroupVersion.Version))
	return result, nil
}

// Scheme returns the types of Cluster API that renders use; other kinds are unstructured.
func Scheme() *runtime.Scheme {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clusterv1.AddToScheme, bootstrapv1.AddToScheme, controlplanev1.AddToScheme, addOthers,
	} {
		if err := add(s); err != nil {
			panic(err) // a mistake of the program
		}
	}
	return s
}
