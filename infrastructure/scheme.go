// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package infrastructure

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

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

// NewReader returns a client of the objects of the provider in a cluster. It does not connect yet.
func NewReader(config *rest.Config) (client.Reader, error) {
	scheme := runtime.NewScheme()
	if err := AddToScheme(scheme); err != nil {
		return nil, err
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("connect to the cluster: %w", err)
	}
	return c, nil
}

// namespaceMetadata and secretMetadata return an empty Namespace and Secret, of which only the metadata is read.
func namespaceMetadata() *metav1.PartialObjectMetadata { return metadataOf("Namespace") }

func secretMetadata() *metav1.PartialObjectMetadata { return metadataOf("Secret") }

func metadataOf(kind string) *metav1.PartialObjectMetadata {
	o := &metav1.PartialObjectMetadata{}
	o.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(kind))
	return o
}
