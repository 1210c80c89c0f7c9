// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Command generate writes the CustomResourceDefinitions of ExtensionConfig, one for each group that the gateway can watch.
// The schema is Cluster API's, read from its module; texts that explain it stay there.
//
//	generate CLUSTER_API_MODULE OUTPUT
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"sigs.k8s.io/yaml"

	"github.com/hookgate/hookgate/controllers/source/cluster"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: generate CLUSTER_API_MODULE OUTPUT")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintf(os.Stderr, "generate: %v\n", err)
		os.Exit(1)
	}
}

func run(module, output string) error {
	name := cluster.ClusterAPIGroup + "_extensionconfigs.yaml"
	source, err := os.ReadFile(filepath.Join(module, "core", "config", "crd", "bases", name))
	if err != nil {
		return err
	}
	for _, group := range []string{cluster.ClusterAPIGroup, cluster.HookgateGroup} {
		content, err := render(source, group)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if err := os.WriteFile(filepath.Join(output, group+"_extensionconfigs.yaml"), content, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// render returns the definition for a group.
func render(source []byte, group string) ([]byte, error) {
	var crd struct {
		APIVersion string         `json:"apiVersion"`
		Kind       string         `json:"kind"`
		Metadata   map[string]any `json:"metadata"`
		Spec       map[string]any `json:"spec"`
	}
	if err := yaml.UnmarshalStrict(source, &crd); err != nil {
		return nil, err
	}
	crd.Metadata = map[string]any{"name": "extensionconfigs." + group}
	crd.Spec["group"] = group
	if group != cluster.ClusterAPIGroup {
		names, ok := crd.Spec["names"].(map[string]any)
		if !ok {
			return nil, fmt.Errorf("spec.names is a %T", crd.Spec["names"])
		}
		// Both groups may be installed side by side, and a short name should mean one thing.
		names["shortNames"] = []string{"hext"}
		names["categories"] = []string{"hookgate"}
	}
	strip(crd.Spec)
	content, err := yaml.Marshal(crd)
	if err != nil {
		return nil, err
	}
	return append([]byte("# Made by `make generate` from the module sigs.k8s.io/cluster-api. Do not edit.\n"), content...), nil
}

// strip removes the descriptions. A property that is called description is an object and stays.
func strip(value any) {
	switch v := value.(type) {
	case map[string]any:
		if _, ok := v["description"].(string); ok {
			delete(v, "description")
		}
		for _, child := range v {
			strip(child)
		}
	case []any:
		for _, child := range v {
			strip(child)
		}
	}
}
