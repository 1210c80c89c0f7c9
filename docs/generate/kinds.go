// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
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
	"InfrastructureClass", "HookgateCluster", "HookgateMachine", "HookgateMachinePool",
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
		var b bytes.Buffer
		b.WriteString(kindsIntroduction)
		for _, kind := range kindOrder {
			if err := writeKind(&b, all[kind]); err != nil {
				return fmt.Errorf("%s: %w", kind, err)
			}
		}
		_, err = w.Write(b.Bytes())
		return err
	}
}

//nolint:lll // lines of the page
const kindsIntroduction = `# The kinds of an infrastructure provider

<!-- Made by ` + "`make generate`" + ` from deploy/crd/infrastructure. Do not edit. -->

The kinds of the API group ` + "`infrastructure.hookgate.dev`" + `, version ` + "`v1alpha1`" + `, which follow the contract ` + "`v1beta2`" + ` of Cluster API.
` + "`kubectl explain`" + ` has the same texts. Sizes of strings are in characters. What the schemas cannot express, webhooks and
conditions report; [limits](limits.md#infrastructure) lists the other limits.

Where the documents of the contract and the code of Cluster API v1.14 differ, the kinds follow the code:

- Of a pool, Cluster API reads ` + "`status.ready`" + `, not ` + "`status.initialization.provisioned`" + `. Both are set.
- No kind has ` + "`status.failureReason`" + ` and ` + "`status.failureMessage`" + `: with them on a pool, Cluster API's controller panics.
- ` + "`status.failureDomains`" + ` is a list, as in v1beta2. The documents of v1beta1 have a map.
- ` + "`spec.controlPlaneEndpoint`" + ` may be absent, and is not immutable: users and hosted control planes set it too.
- Of a template, ` + "`spec.template.spec`" + ` is immutable, and ` + "`spec.template.metadata`" + ` is not, as in Cluster API's own providers.
`

func writeKind(b *bytes.Buffer, d *apiextensionsv1.CustomResourceDefinition) error {
	if d == nil || len(d.Spec.Versions) != 1 || len(d.Spec.Names.ShortNames) != 1 {
		return errors.New("a definition with one version and one short name is missing")
	}
	root := d.Spec.Versions[0].Schema.OpenAPIV3Schema
	fmt.Fprintf(b, "\n## %s\n\n%s\n\nShort name: `%s`. Scope: %s.\n\n| field | type | |\n|---|---|---|\n",
		d.Spec.Names.Kind, line(root.Description), d.Spec.Names.ShortNames[0], strings.ToLower(string(d.Spec.Scope)))
	for _, part := range []string{"spec", "status"} {
		if s, ok := root.Properties[part]; ok {
			writeRules(b, part, &s)
			writeFields(b, part, &s)
		}
	}
	return nil
}

// writeRules writes a row for each rule for an object.
func writeRules(b *bytes.Buffer, path string, s *apiextensionsv1.JSONSchemaProps) {
	for _, rule := range s.XValidations {
		fmt.Fprintf(b, "| `%s` | rule | %s |\n", path, cell(rule.Message))
	}
}

// writeFields writes a row for each field below a path.
func writeFields(b *bytes.Buffer, path string, s *apiextensionsv1.JSONSchemaProps) {
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		below, required := s.Properties[name], slices.Contains(s.Required, name)
		describe := typeOf(&below)
		if required {
			describe += ", required"
		}
		if len(below.Properties) == 0 {
			for _, rule := range below.XValidations {
				describe += ", " + cell(rule.Message)
			}
		}
		at := path + "." + name
		fmt.Fprintf(b, "| `%s` | %s | %s |\n", at, describe, cell(below.Description))
		if len(below.Properties) > 0 {
			writeRules(b, at, &below)
		}
		switch {
		case slices.Contains(known, name):
		case below.Items != nil && below.Items.Schema != nil:
			writeFields(b, at+"[]", below.Items.Schema)
		default:
			writeFields(b, at, &below)
		}
	}
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
		return "list" + upTo(s.MaxItems, "elements") + " of " + typeOf(s.Items.Schema)
	case s.XPreserveUnknownFields != nil:
		return "any JSON object" + upTo(s.MaxProperties, "members")
	case s.AdditionalProperties != nil:
		return "map" + upTo(s.MaxProperties, "members")
	case s.Type == "string":
		return "string" + upTo(s.MaxLength, "characters")
	case s.Type == "integer" && s.Minimum != nil && s.Maximum != nil:
		return fmt.Sprintf("integer from %.0f to %.0f", *s.Minimum, *s.Maximum)
	default:
		return s.Type
	}
}

func upTo(limit *int64, what string) string {
	if limit == nil {
		return ""
	}
	return fmt.Sprintf(" (at most %d %s)", *limit, what)
}

// line returns a text as one line, and cell as the cell of a table.
func line(text string) string { return strings.Join(strings.Fields(text), " ") }

func cell(text string) string { return strings.ReplaceAll(line(text), "|", `\|`) }
