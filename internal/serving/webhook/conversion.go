// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"fmt"
	"net/http"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	runtimev1alpha1 "sigs.k8s.io/cluster-api/api/runtime/v1alpha1"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/webhook/conversion"
)

// newConverter returns the handler of requests for conversion of ExtensionConfigs in a group.
func newConverter(scheme *runtime.Scheme, group string) (http.Handler, error) {
	newHub := conversion.NewHubSpokeConverter(&runtimev1.ExtensionConfig{},
		conversion.NewSpokeConverter(&runtimev1alpha1.ExtensionConfig{}, toV1alpha1, fromV1alpha1))
	converter, err := newHub(scheme)
	if err != nil {
		return nil, fmt.Errorf("converter of ExtensionConfig: %w", err)
	}
	converters := conversion.NewRegistry()
	kind := schema.GroupKind{Group: group, Kind: "ExtensionConfig"}
	if err := converters.RegisterConverter(kind, converter); err != nil {
		return nil, fmt.Errorf("converter of ExtensionConfig: %w", err)
	}
	return conversion.NewWebhookHandler(scheme, converters), nil
}

// fromV1alpha1 and toV1alpha1 need no annotation: each version can express all that the other can. They differ in
// absent values: v1alpha1 has pointers, and its schema refuses zero values.

func fromV1alpha1(_ context.Context, from *runtimev1alpha1.ExtensionConfig, to *runtimev1.ExtensionConfig) error {
	return runtimev1alpha1.Convert_v1alpha1_ExtensionConfig_To_v1beta2_ExtensionConfig(from, to, nil)
}

func toV1alpha1(_ context.Context, from *runtimev1.ExtensionConfig, to *runtimev1alpha1.ExtensionConfig) error {
	if err := runtimev1alpha1.Convert_v1beta2_ExtensionConfig_To_v1alpha1_ExtensionConfig(from, to, nil); err != nil {
		return err
	}
	client := &to.Spec.ClientConfig
	client.URL = nilIfZero(client.URL)
	if client.Service != nil {
		client.Service.Path = nilIfZero(client.Service.Path)
	}
	for i := range to.Status.Handlers {
		to.Status.Handlers[i].TimeoutSeconds = nilIfZero(to.Status.Handlers[i].TimeoutSeconds)
	}
	return nil
}

// nilIfZero returns p, or nil if p points to a zero value.
func nilIfZero[T comparable](p *T) *T {
	var zero T
	if p == nil || *p == zero {
		return nil
	}
	return p
}
