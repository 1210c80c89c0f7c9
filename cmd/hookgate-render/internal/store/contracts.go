// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/contract"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

var crd = schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}

//go:embed providers.yaml
var providersFile []byte

// provider are kinds of a provider that follow the same contracts.
type provider struct {
	Provider  string            `json:"provider"`
	Release   string            `json:"release"`
	Group     string            `json:"group"`
	Contracts map[string]string `json:"contracts"` // the versions that follow each, joined by _
	Kinds     []string          `json:"kinds"`     // each stands for its template as well
}

// readProviders returns the entries of providers.yaml.
var readProviders = sync.OnceValue(func() (all []provider) {
	if err := yaml.UnmarshalStrict(providersFile, &all); err != nil {
		panic(err) // a mistake of the program
	}
	return all
})

// providerLabels returns the labels of the CustomResourceDefinitions of providers, by name.
var providerLabels = sync.OnceValue(func() map[string]map[string]string {
	all := map[string]map[string]string{}
	for _, p := range readProviders() {
		labels := map[string]string{}
		for name, versions := range p.Contracts {
			labels[clusterv1.GroupVersion.Group+"/"+name] = versions
		}
		for _, kind := range p.Kinds {
			all[contract.CalculateCRDName(p.Group, kind)] = labels
			all[contract.CalculateCRDName(p.Group, kind+clusterv1.TemplateSuffix)] = labels
		}
	}
	return all
})

// contracts returns the CustomResourceDefinition of a kind that is known without; nil for others.
func contracts(gvk schema.GroupVersionKind, k client.ObjectKey) *unstructured.Unstructured {
	labels, ok := providerLabels()[k.Name]
	if !ok || gvk.Kind != crd.Kind {
		return nil
	}
	return definition(k.Name, labels)
}

// definition returns a CustomResourceDefinition of which only the name and the labels are known.
func definition(name string, labels map[string]string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(crd)
	o.SetName(name)
	o.SetLabels(labels)
	return o
}

// CheckContracts returns an error that says what to give if the contract of a kind is not known: for the control plane,
// that of its version, which decides where members are; for others, that of any version.
func (s *Store) CheckContracts(
	ctx context.Context, controlPlane schema.GroupVersionKind, others ...schema.GroupVersionKind,
) error {
	var lacking []string
	var version string // of the first that lacks
	for i, gvk := range append([]schema.GroupVersionKind{controlPlane}, others...) {
		name := contract.CalculateCRDName(gvk.Group, gvk.Kind)
		versions, err := s.versions(ctx, name)
		if err != nil {
			return fmt.Errorf("read CustomResourceDefinition %q: %w", name, err)
		}
		if len(versions) > 0 && (i > 0 || slices.Contains(versions, gvk.Version)) || slices.Contains(lacking, name) {
			continue
		}
		if lacking = append(lacking, name); version == "" {
			version = gvk.Version
		}
	}
	if len(lacking) == 0 {
		return nil
	}
	return fmt.Errorf(`which contract of Cluster API do these kinds follow: %[1]s?
Give their CustomResourceDefinitions with -f, or --context of a cluster that has them. Each needs only its
name, and the label of the contract, whose value lists the versions that follow the contract, such as v1alpha1_v1beta1:
  apiVersion: apiextensions.k8s.io/v1
  kind: CustomResourceDefinition
  metadata: {name: %[2]s, labels: {%[3]s/v1beta1: %[4]s}}`,
		strings.Join(lacking, ", "), lacking[0], clusterv1.GroupVersion.Group, version)
}

// versions returns the versions of a kind that follow any contract, as its CustomResourceDefinition says.
func (s *Store) versions(ctx context.Context, name string) ([]string, error) {
	var versions []string
	m := &metav1.PartialObjectMetadata{}
	m.SetGroupVersionKind(crd)
	if err := s.Get(ctx, client.ObjectKey{Name: name}, m); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	for label, value := range m.Labels {
		if strings.HasPrefix(label, clusterv1.GroupVersion.Group+"/v") {
			versions = append(versions, strings.Split(value, "_")...)
		}
	}
	return versions, nil
}
