// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"encoding/json"
	"maps"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apivalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/hookgate/hookgate/internal/contract/convert"
)

// decodeDefinition reads the name and the labels of a CustomResourceDefinition, and nothing else of it: providers
// publish theirs with schemas of many thousand lines, which are not decoded.
func decodeDefinition(d *document) (*Object, []Problem) {
	slim := *d
	slim.node = d.node.Only("metadata")
	members, problems := slim.members()
	if problems != nil {
		return d.refusedAs(nil, problems)
	}
	var metadata map[string]json.RawMessage
	if json.Unmarshal(members["metadata"], &metadata) == nil {
		maps.DeleteFunc(metadata,
			func(name string, _ json.RawMessage) bool { return name != "name" && name != "labels" })
		members["metadata"], _ = json.Marshal(metadata) // of JSON, which always can be written
	}
	definition := &metav1.PartialObjectMetadata{}
	if problems := d.decodeStrict(members, definition); problems != nil {
		return d.refusedAs(nil, problems)
	}
	d.name = definition.Name
	errs := apivalidation.ValidateLabels(definition.Labels, field.NewPath("metadata", "labels"))
	if path := field.NewPath("metadata", "name"); d.name == "" {
		errs = append(errs, field.Required(path, "must be the plural of the kind, a dot, and the group"))
	} else if len(validation.IsDNS1123Subdomain(d.name)) > 0 || !strings.Contains(d.name, ".") {
		errs = append(errs, field.Invalid(path, d.name, "must be the plural of the kind, a dot, and the group"))
	}
	if len(errs) > 0 {
		return d.refusedAs(nil, d.fieldProblems(errs))
	}
	return &Object{Place: d.Place, Name: d.name, Contracts: &convert.CRD{Name: d.name, Labels: definition.Labels}}, nil
}
