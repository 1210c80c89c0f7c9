// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// kindOrder is the order of the kinds on their page.
var kindOrder = []string{
	"InfrastructureClass", "HookgateClusterIdentity", "HookgateCluster", "HookgateMachine", "HookgateMachinePool",
	"HookgateClusterTemplate", "HookgateMachineTemplate", "HookgateMachinePoolTemplate",
}

// known are fields whose members Kubernetes documents.
var known = []string{"conditions", "selector", "metadata"}

// kinds returns a function that writes the page about the kinds whose definitions are in a directory.
func kinds(dir string) func(io.Writer) error {
	return func(w io.Writer) error {
		files, err := filepath.Glob(filepath.Join(dir, "*_*.yaml"))
		if err != nil {
			return err
		}
		all := map[string]*apiextensionsv1.CustomResourceDefinition{}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			d := &apiextensionsv1.CustomResourceDefinition{}
			if err := yaml.UnmarshalStrict(text, d); err != nil {
				return fmt.Errorf("%s: %w", file, err)
			}
			all[d.Spec.Names.Kind] = d
		}
		if len(all) != len(kindOrder) {
			return fmt.Errorf("%s has %d kinds, want %d", dir, len(all), len(kindOrder))
		}
		p := page{objects: map[string]string{}}
		p.WriteString(kindsIntroduction)
		for _, kind := range kindOrder {
			if err := p.writeKind(all[kind]); err != nil {
				return fmt.Errorf("%s: %w", kind, err)
			}
		}
		_, err = w.Write(p.Bytes())
		return err
	}
}

//nolint:lll // lines of the page
const kindsIntroduction = `# The kinds of an infrastructure provider

<!-- Made by ` + "`make generate`" + ` from deploy/crd/infrastructure. Do not edit. -->

The kinds of the API group ` + "`infrastructure.hookgate.dev`" + `, version ` + "`v1alpha1`" + `, for the contract ` + "`v1beta2`" + ` of Cluster API.
` + "`kubectl explain`" + ` shows the same texts. *≤ n* is the largest number of characters, elements or members. Webhooks and conditions check
everything that schemas cannot express. Further [limits](limits.md) apply.

Where the documents of the contract and the code of Cluster API v1.14 differ, the kinds follow the code:

- For a pool, Cluster API reads ` + "`status.ready`" + `, not ` + "`status.initialization.provisioned`" + `. Both are set.
- The kinds have neither ` + "`status.failureReason`" + ` nor ` + "`status.failureMessage`" + `: Cluster API's controller panics if a pool has these fields.
- ` + "`status.failureDomains`" + ` is a list, as in v1beta2, and not a map, as in v1beta1.
- ` + "`spec.controlPlaneEndpoint`" + ` may be absent and may change: users and hosted control planes also set it.
- As in Cluster API's own providers, ` + "`spec.template.spec`" + ` of a template is immutable, but ` + "`spec.template.metadata`" + ` can be changed.
`

// page is the page that is being written.
type page struct {
	bytes.Buffer
	kind string
	// objects has the place of the first object with the same fields, by their JSON.
	objects map[string]string
}

func (p *page) writeKind(d *apiextensionsv1.CustomResourceDefinition) error {
	if d == nil || len(d.Spec.Versions) != 1 || len(d.Spec.Names.ShortNames) != 1 {
		return errors.New("want a definition with exactly one version and one short name")
	}
	p.kind = d.Spec.Names.Kind
	root := d.Spec.Versions[0].Schema.OpenAPIV3Schema
	fmt.Fprintf(p, "\n## %s\n\n%s\n\nShort name: `%s`. Scope: %s.\n\n| field | type | |\n|---|---|---|\n",
		p.kind, line(root.Description), d.Spec.Names.ShortNames[0], strings.ToLower(string(d.Spec.Scope)))
	for _, part := range []string{"spec", "status"} {
		if s, ok := root.Properties[part]; ok {
			p.writeRules(part, &s)
			if err := p.writeFields(part, &s); err != nil {
				return err
			}
		}
	}
	return nil
}

// writeRules writes a row for each rule for an object.
func (p *page) writeRules(path string, s *apiextensionsv1.JSONSchemaProps) {
	for _, rule := range s.XValidations {
		fmt.Fprintf(p, "| `%s` | rule | %s |\n", path, cell(rule.Message))
	}
}

// writeFields writes a row for each field below a path.
func (p *page) writeFields(path string, s *apiextensionsv1.JSONSchemaProps) error {
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		below := s.Properties[name]
		at := path + "." + name
		first, err := p.firstWith(name, &below, at)
		if err != nil {
			return err
		}
		describe := typeOf(&below)
		if first != "" {
			describe += " with the fields of " + first
		}
		if slices.Contains(s.Required, name) {
			describe += "; required"
		}
		if len(below.Properties) == 0 {
			for _, rule := range below.XValidations {
				describe += "; " + cell(rule.Message)
			}
		}
		fmt.Fprintf(p, "| `%s` | %s | %s |\n", at, describe, cell(meaning(name, below.Description)))
		if len(below.Properties) > 0 {
			p.writeRules(at, &below)
		}
		switch {
		case first != "" || slices.Contains(known, name):
		case below.Items != nil && below.Items.Schema != nil:
			err = p.writeFields(at+"[]", below.Items.Schema)
		default:
			err = p.writeFields(at, &below)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// firstWith returns where the page has the fields of an object already, or "" if it has not.
func (p *page) firstWith(name string, s *apiextensionsv1.JSONSchemaProps, at string) (string, error) {
	if slices.Contains(known, name) {
		return "", nil
	}
	if s.Items != nil && s.Items.Schema != nil {
		s, at = s.Items.Schema, at+"[]"
	}
	if len(s.Properties) == 0 {
		return "", nil
	}
	fields, err := json.Marshal(s.Properties)
	if err != nil {
		return "", err
	}
	first := p.objects[string(fields)]
	if first == "" {
		p.objects[string(fields)] = fmt.Sprintf("`%s` of %s", at, p.kind)
	}
	return first, nil
}

// meaning returns the description of a field without the words that repeat its name, where a phrase is left.
func meaning(name, description string) string {
	for _, verb := range []string{"is", "are", "holds", "says"} {
		if rest, ok := strings.CutPrefix(description, name+" "+verb+" "); ok {
			return rest
		}
	}
	return description
}

// typeOf returns the type of a field with its limits.
func typeOf(s *apiextensionsv1.JSONSchemaProps) string {
	switch {
	case len(s.Enum) > 0:
		values := make([]string, len(s.Enum))
		for i, value := range s.Enum {
			values[i] = "`" + strings.Trim(string(value.Raw), `"`) + "`"
		}
		return strings.Join(values, ", ")
	case s.Type == "array" && s.Items != nil && s.Items.Schema != nil:
		return "list" + upTo(s.MaxItems) + " of " + typeOf(s.Items.Schema)
	case s.XPreserveUnknownFields != nil:
		return "any JSON object" + upTo(s.MaxProperties)
	case s.AdditionalProperties != nil:
		return "map" + upTo(s.MaxProperties)
	case s.Type == "string":
		return "string" + upTo(s.MaxLength)
	case s.Type == "integer" && s.Minimum != nil && s.Maximum != nil:
		return fmt.Sprintf("integer from %.0f to %.0f", *s.Minimum, *s.Maximum)
	default:
		return s.Type
	}
}

func upTo(limit *int64) string {
	if limit == nil {
		return ""
	}
	return fmt.Sprintf(" (≤ %d)", *limit)
}

// line returns a text as one line, and cell as the cell of a table.
func line(text string) string { return strings.Join(strings.Fields(text), " ") }

func cell(text string) string { return strings.ReplaceAll(line(text), "|", `\|`) }
