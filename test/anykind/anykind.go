// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package anykind makes definitions of kinds whose schemas admit every object.
package anykind

import (
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// Of returns the definition of a namespaced kind.
func Of(group, version, kind string) *apiextensionsv1.CustomResourceDefinition {
	singular := strings.ToLower(kind)
	d := &apiextensionsv1.CustomResourceDefinition{}
	d.Name = singular + "s." + group
	d.Spec = apiextensionsv1.CustomResourceDefinitionSpec{
		Group: group, Scope: apiextensionsv1.NamespaceScoped,
		Names: apiextensionsv1.CustomResourceDefinitionNames{
			Kind: kind, ListKind: kind + "List", Plural: singular + "s", Singular: singular,
		},
		Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
			Name: version, Served: true, Storage: true,
			Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: new(anything(nil))},
		}},
	}
	return d
}

// OfClusterAPI returns the definition of a kind of Cluster API. As there, the status is a subresource, in which
// conditions are merged by their types.
func OfClusterAPI(kind string) *apiextensionsv1.CustomResourceDefinition {
	type properties = map[string]apiextensionsv1.JSONSchemaProps
	condition := anything(properties{"type": {Type: "string"}})
	condition.Required = []string{"type"}
	d := Of(clusterv1.GroupVersion.Group, clusterv1.GroupVersion.Version, kind)
	v := &d.Spec.Versions[0]
	v.Subresources = &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}}
	v.Schema.OpenAPIV3Schema.Properties = properties{"status": anything(properties{"conditions": {
		Type: "array", XListType: new("map"), XListMapKeys: []string{"type"},
		Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &condition},
	}})}
	return d
}

// anything returns the schema of an object that may have other properties, too.
func anything(properties map[string]apiextensionsv1.JSONSchemaProps) apiextensionsv1.JSONSchemaProps {
	return apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: new(true), Properties: properties}
}
