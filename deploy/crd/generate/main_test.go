// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// definitions returns the definitions of deploy/crd by their file names.
func definitions(t *testing.T) map[string]*apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	all := map[string]*apiextensionsv1.CustomResourceDefinition{}
	for _, pattern := range []string{"*_*.yaml", filepath.Join("infrastructure", "*_*.yaml"), filepath.Join("machines", "*_*.yaml")} {
		files, err := filepath.Glob(filepath.Join("..", pattern))
		if err != nil || len(files) == 0 {
			t.Fatalf("%d definitions of %s: %v", len(files), pattern, err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			d := &apiextensionsv1.CustomResourceDefinition{}
			if err := yaml.UnmarshalStrict(text, d); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			all[filepath.Base(file)] = d
		}
	}
	return all
}

// TestEveryFieldIsExplained requires that `kubectl explain` has a text for each field of each kind.
func TestEveryFieldIsExplained(t *testing.T) {
	fields := 0
	var walk func(at string, s *apiextensionsv1.JSONSchemaProps)
	walk = func(at string, s *apiextensionsv1.JSONSchemaProps) {
		for name, field := range s.Properties {
			below := at + "." + name
			if fields++; field.Description == "" {
				t.Errorf("%s has no description", below)
			}
			walk(below, &field)
		}
		if s.Items != nil && s.Items.Schema != nil {
			walk(at+"[]", s.Items.Schema)
		}
		if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
			walk(at+"{}", s.AdditionalProperties.Schema)
		}
	}
	for name, d := range definitions(t) {
		for _, v := range d.Spec.Versions {
			root := v.Schema.OpenAPIV3Schema
			delete(root.Properties, "metadata") // every kind has it, and the API server explains it
			if root.Description == "" {
				t.Errorf("%s %s has no description", name, v.Name)
			}
			walk(name+" "+v.Name, root)
		}
	}
	if fields < 200 {
		t.Errorf("%d fields were found: the kinds have more", fields)
	}
}

// TestColumns requires what kubectl shows of an ExtensionConfig at a glance, and one category for both kinds.
func TestColumns(t *testing.T) {
	all := definitions(t)
	config, policies := all["runtime.hookgate.dev_extensionconfigs.yaml"], all["hookgate.dev_extensionpolicies.yaml"]
	shown := map[int32][]string{}
	for _, v := range config.Spec.Versions {
		if !v.Storage {
			continue
		}
		for _, c := range v.AdditionalPrinterColumns {
			shown[c.Priority] = append(shown[c.Priority], c.Name)
		}
	}
	if want := []string{"Discovered", "Reason", "Handlers", "Protocol", "Age"}; !slices.Equal(shown[0], want) {
		t.Errorf("columns are %q, want %q", shown[0], want)
	}
	if want := []string{"URL", "Service", "Available", "Paused", "Message"}; !slices.Equal(shown[1], want) {
		t.Errorf("wide columns are %q, want %q", shown[1], want)
	}
	for _, d := range []*apiextensionsv1.CustomResourceDefinition{config, policies} {
		if !slices.Contains(d.Spec.Names.Categories, "hookgate") {
			t.Errorf("%s is not in the category hookgate: %q", d.Name, d.Spec.Names.Categories)
		}
	}
}
