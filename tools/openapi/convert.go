// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/controller-tools/pkg/crd"
	"sigs.k8s.io/controller-tools/pkg/loader"

	"github.com/hookgate/hookgate/internal/contract/openapi/document"
)

// schema is a schema of OpenAPI 3.0 as JSON.
type schema = document.Schema

const (
	definitions = "#/definitions/"
	components  = "#/components/schemas/"
	openObject  = "x-kubernetes-preserve-unknown-fields"
	intOrString = "x-kubernetes-int-or-string"
)

// converter makes components from the schemata of the parser: each struct and each enum becomes one, and everything
// else is inlined.
type converter struct {
	parser     *crd.Parser
	packages   map[string]*loader.Package
	components map[string]schema
}

// component adds the component of a type and of the types that it refers to.
func (c *converter) component(ident crd.TypeIdent) error {
	name, err := componentName(ident)
	if err != nil {
		return err
	}
	if _, known := c.components[name]; known {
		return nil
	}
	c.components[name] = nil // until it is made, for types that refer to themselves
	made, err := c.structure(ident)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	c.components[name] = made
	return nil
}

// structure returns the schema of a type, including the members of embedded types.
func (c *converter) structure(ident crd.TypeIdent) (schema, error) {
	props, ok := c.parser.Schemata[ident]
	if !ok {
		return nil, fmt.Errorf("type %s was not read", ident)
	}
	embedded := props.AllOf
	if props.Type == "object" {
		props.AllOf = nil
	}
	made, err := c.inline(props, ident.Package)
	if err != nil || props.Type != "object" {
		return made, err
	}
	members, _ := made["properties"].(map[string]any)
	if members == nil {
		if len(embedded) == 0 {
			return made, nil
		}
		members = map[string]any{}
	}
	required, _ := made["required"].([]any)
	for _, e := range embedded {
		if e.Ref == nil {
			return nil, fmt.Errorf("type %s: what is embedded has no name", ident)
		}
		target, err := c.resolve(*e.Ref, ident.Package)
		if err != nil {
			return nil, err
		}
		from, err := c.structure(target)
		if err != nil {
			return nil, err
		}
		maps.Copy(members, from["properties"].(map[string]any))
		more, _ := from["required"].([]any)
		required = append(required, more...)
	}
	made["properties"] = members
	if len(required) > 0 {
		slices.SortFunc(required, func(a, b any) int { return strings.Compare(a.(string), b.(string)) })
		made["required"] = required
	}
	if info := c.parser.Types[ident]; info != nil {
		for name := range nullable(info, ident.Package) {
			members[name].(schema)["nullable"] = true
		}
	}
	return made, nil
}

// inline returns the schema of an unnamed type.
func (c *converter) inline(props apiextensionsv1.JSONSchemaProps, pkg *loader.Package) (schema, error) {
	text, err := json.Marshal(props)
	if err != nil {
		return nil, err
	}
	var made schema
	if err := json.Unmarshal(text, &made); err != nil {
		return nil, err
	}
	return c.rewrite(made, pkg)
}

// rewrite turns a schema of a CustomResourceDefinition, with its subschemas, into one of OpenAPI 3.0.
func (c *converter) rewrite(s schema, pkg *loader.Package) (schema, error) {
	var err error
	for _, key := range []string{"items", "additionalProperties", "not"} {
		if nested, ok := s[key].(map[string]any); ok {
			if s[key], err = c.rewrite(nested, pkg); err != nil {
				return nil, err
			}
		}
	}
	for _, key := range []string{"allOf", "anyOf", "oneOf"} {
		if list, ok := s[key].([]any); ok {
			for i, nested := range list {
				if list[i], err = c.rewrite(nested.(map[string]any), pkg); err != nil {
					return nil, err
				}
			}
		}
	}
	if members, ok := s["properties"].(map[string]any); ok {
		for name, nested := range members {
			if members[name], err = c.rewrite(nested.(map[string]any), pkg); err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	if s[intOrString] == true {
		if _, isQuantity := s["pattern"]; !isQuantity {
			s["oneOf"] = s["anyOf"]
			delete(s, "anyOf")
		}
	}
	if s[openObject] == true && s["type"] == nil {
		s["nullable"] = true // any JSON, so null too
	}
	if _, ok := s["$ref"]; ok {
		return c.reference(s, pkg)
	}
	return s, nil
}

// reference replaces a reference by one to the component, or by the schema itself if it is not a component. In
// OpenAPI 3.0, members beside a $ref are ignored, so they move to a schema around it.
func (c *converter) reference(s schema, pkg *loader.Package) (schema, error) {
	ident, err := c.resolve(s["$ref"].(string), pkg)
	if err != nil {
		return nil, err
	}
	target, ok := c.parser.Schemata[ident]
	if !ok {
		return nil, fmt.Errorf("type %s was not read", ident)
	}
	delete(s, "$ref")
	delete(s, "type") // the parser puts them there for its own checks
	delete(s, "format")
	if len(target.Properties) == 0 && len(target.AllOf) == 0 && len(target.Enum) == 0 && !isEnum(ident) {
		made, err := c.structure(ident)
		if err != nil {
			return nil, err
		}
		maps.Copy(made, s)
		return made, nil
	}
	name, err := componentName(ident)
	if err != nil {
		return nil, err
	}
	if err := c.component(ident); err != nil {
		return nil, err
	}
	to := schema{"$ref": components + name}
	if len(s) == 0 {
		return to, nil
	}
	if all, ok := s["allOf"].([]any); ok {
		s["allOf"] = append([]any{to}, all...)
	} else {
		s["allOf"] = []any{to}
	}
	return s, nil
}

// isEnum reports whether a type without marked values is an enum of the contract, which has the values.
func isEnum(ident crd.TypeIdent) bool {
	return ident.Package.PkgPath == hooksPackage && (ident.Name == "ResponseStatus" || ident.Name == "FailurePolicy")
}

// resolve returns the type that a reference in a schema of package pkg names.
func (c *converter) resolve(ref string, pkg *loader.Package) (crd.TypeIdent, error) {
	name, ok := strings.CutPrefix(ref, definitions)
	if !ok {
		return crd.TypeIdent{}, fmt.Errorf("reference %q is not one to a definition", ref)
	}
	path, local, found := strings.Cut(name, "~0")
	if !found {
		return crd.TypeIdent{Package: pkg, Name: name}, nil
	}
	path = strings.ReplaceAll(path, "~1", "/")
	in, ok := c.packages[path]
	if !ok {
		return crd.TypeIdent{}, fmt.Errorf("reference %q: package %s was not read", ref, path)
	}
	return crd.TypeIdent{Package: in, Name: local}, nil
}
