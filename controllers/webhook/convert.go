// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"

	runtimev1alpha1 "sigs.k8s.io/cluster-api/api/runtime/v1alpha1"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/webhook/conversion"

	"k8s.io/apimachinery/pkg/runtime"
)

// newConverter returns what makes the converter of ExtensionConfigs for a scheme. v1beta2 is the hub; v1alpha1 can say all
// that it says.
func newConverter() func(*runtime.Scheme) (conversion.Converter, error) {
	return conversion.NewHubSpokeConverter(&runtimev1.ExtensionConfig{},
		conversion.NewSpokeConverter(&runtimev1alpha1.ExtensionConfig{}, toV1Alpha1, fromV1Alpha1))
}

func fromV1Alpha1(_ context.Context, in *runtimev1alpha1.ExtensionConfig, out *runtimev1.ExtensionConfig) error {
	return runtimev1alpha1.Convert_v1alpha1_ExtensionConfig_To_v1beta2_ExtensionConfig(in, out, nil)
}

// toV1Alpha1 converts to the version in which what is not set is nil, where v1beta2 has the zero value. The generated
// conversion makes pointers to zero values of them, which v1alpha1's schema does not allow.
func toV1Alpha1(_ context.Context, in *runtimev1.ExtensionConfig, out *runtimev1alpha1.ExtensionConfig) error {
	if err := runtimev1alpha1.Convert_v1beta2_ExtensionConfig_To_v1alpha1_ExtensionConfig(in, out, nil); err != nil {
		return err
	}
	client := &out.Spec.ClientConfig
	unset(&client.URL)
	if client.Service != nil {
		unset(&client.Service.Path)
	}
	for i := range out.Status.Handlers {
		unset(&out.Status.Handlers[i].TimeoutSeconds)
	}
	return nil
}

// unset makes a pointer to a zero value nil.
func unset[T comparable](p **T) {
	var zero T
	if *p != nil && **p == zero {
		*p = nil
	}
}
