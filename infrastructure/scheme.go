// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package infrastructure

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	infrav1 "github.com/hookgate/hookgate/infrastructure/v1alpha1"
)

// AddToScheme adds the kinds that the controllers use to a scheme.
func AddToScheme(s *runtime.Scheme) error {
	for _, add := range []func(*runtime.Scheme) error{
		infrav1.AddToScheme, clusterv1.AddToScheme, corev1.AddToScheme,
	} {
		if err := add(s); err != nil {
			return err
		}
	}
	return nil
}

// namespaceMetadata and secretMetadata return an empty Namespace and Secret, of which only the metadata is read.
func namespaceMetadata() *metav1.PartialObjectMetadata { return metadataOf("Namespace") }

func secretMetadata() *metav1.PartialObjectMetadata { return metadataOf("Secret") }

func metadataOf(kind string) *metav1.PartialObjectMetadata {
	o := &metav1.PartialObjectMetadata{}
	o.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(kind))
	return o
}
