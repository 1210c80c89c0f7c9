// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// contractOf holds, for groups and kinds whose CustomResourceDefinitions have not been read, the labels that state
// which versions follow which contract of Cluster API.
var contractOf = map[string]map[string]string{
	"controlplane.cluster.x-k8s.io":   both,
	"bootstrap.cluster.x-k8s.io":      both,
	"infrastructure.cluster.x-k8s.io": both,
	"infrastructure.hookgate.dev":     {"cluster.x-k8s.io/v1beta2": "v1alpha1"},
}

var both = map[string]string{"cluster.x-k8s.io/v1beta1": "v1beta1", "cluster.x-k8s.io/v1beta2": "v1beta2"}

// own are the kinds whose versions follow contractOf. Of control planes, the contract decides where members are; other
// kinds have their versions in the ClusterClass, so that those of their group are taken for theirs.
var own = []string{"kubeadmcontrolplane", "hookgate", "dev", "docker", "kubeadmconfig"}

// contracts returns the CustomResourceDefinition of a kind that is known without; nil for others.
func contracts(gvk schema.GroupVersionKind, k client.ObjectKey) *unstructured.Unstructured {
	if gvk.Kind != "CustomResourceDefinition" {
		return nil
	}
	plural, group, _ := strings.Cut(k.Name, ".")
	labels, ok := contractOf[group]
	if !ok {
		return nil
	}
	for _, prefix := range own {
		if strings.HasPrefix(plural, prefix) {
			return definition(k.Name, labels)
		}
	}
	return nil
}

// definition returns a CustomResourceDefinition of which only the name and the labels are known.
func definition(name string, labels map[string]string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
	}}
	o.SetName(name)
	o.SetLabels(labels)
	return o
}
