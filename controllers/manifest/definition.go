// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apivalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/hookgate/hookgate/convert"
)

// decodeDefinition reads the name and the labels of a CustomResourceDefinition, and nothing else of it: providers publish theirs with
// schemas of many thousand lines, which are not decoded.
func decodeDefinition(d *document) (*Object, []Problem) {
	members, problems := d.only("metadata").members()
	if problems != nil {
		return d.refused(problems)
	}
	if metadata, ok := members["metadata"].(map[string]any); ok {
		read := map[string]any{}
		for _, name := range []string{"name", "labels"} {
			if v, ok := metadata[name]; ok {
				read[name] = v
			}
		}
		members["metadata"] = read
	}
	definition := &metav1.PartialObjectMetadata{}
	if problems := d.decodeStrict(members, definition); problems != nil {
		return d.refused(problems)
	}
	d.name = definition.Name
	errs := apivalidation.ValidateLabels(definition.Labels, field.NewPath("metadata", "labels"))
	if path := field.NewPath("metadata", "name"); d.name == "" {
		errs = append(errs, field.Required(path, "must be the plural of the kind, a dot, and the group"))
	} else if len(validation.IsDNS1123Subdomain(d.name)) > 0 || !strings.Contains(d.name, ".") {
		errs = append(errs, field.Invalid(path, d.name, "must be the plural of the kind, a dot, and the group"))
	}
	if len(errs) > 0 {
		return d.refused(d.fieldProblems(errs))
	}
	return &Object{Place: d.Place, Name: d.name, Contracts: &convert.CRD{Name: d.name, Labels: definition.Labels}}, nil
}

// only returns the document without the members that have other names. Members that come by a merge key stay.
func (d *document) only(name string) *document {
	mapping := *d.node
	mapping.Content = nil
	for i := 0; i+1 < len(d.node.Content); i += 2 {
		if key := d.node.Content[i]; key.Value == name || key.ShortTag() == "!!merge" {
			mapping.Content = append(mapping.Content, key, d.node.Content[i+1])
		}
	}
	slim := *d
	slim.node = &mapping
	return &slim
}
