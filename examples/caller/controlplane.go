// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var groupVersion = schema.GroupVersion{Group: "controlplane.acme.example", Version: "v1alpha1"}

// AcmeControlPlane is the control plane of a Cluster, whose name is in its label cluster.x-k8s.io/cluster-name.
type AcmeControlPlane struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	Spec   AcmeControlPlaneSpec   `json:"spec"`
	Status AcmeControlPlaneStatus `json:"status,omitzero"`
}

// AcmeControlPlaneSpec is what is wanted.
type AcmeControlPlaneSpec struct {
	Version string `json:"version"`
}

// AcmeControlPlaneStatus is what there is.
type AcmeControlPlaneStatus struct {
	Version    string             `json:"version,omitempty"`
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// DeepCopyObject implements runtime.Object.
func (p *AcmeControlPlane) DeepCopyObject() runtime.Object {
	out := *p
	p.DeepCopyInto(&out.ObjectMeta)
	out.Status.Conditions = append([]metav1.Condition(nil), p.Status.Conditions...)
	return &out
}

// AcmeControlPlaneList is a list of them.
type AcmeControlPlaneList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`

	Items []AcmeControlPlane `json:"items"`
}

// DeepCopyObject implements runtime.Object.
func (l *AcmeControlPlaneList) DeepCopyObject() runtime.Object {
	out := *l
	out.Items = nil
	for i := range l.Items {
		out.Items = append(out.Items, *l.Items[i].DeepCopyObject().(*AcmeControlPlane)) //nolint:forcetypeassert // it is one
	}
	return &out
}

var _ client.Object = (*AcmeControlPlane)(nil)

func addToScheme(s *runtime.Scheme) {
	s.AddKnownTypes(groupVersion, &AcmeControlPlane{}, &AcmeControlPlaneList{})
	metav1.AddToGroupVersion(s, groupVersion)
}
