// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Command generate writes the CustomResourceDefinitions of ExtensionConfig, one for each group that the gateway can
// watch. The schema is Cluster API's, read from its module, with the texts that explain it.
//
//	generate CLUSTER_API_MODULE OUTPUT
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"sigs.k8s.io/yaml"

	"github.com/hookgate/hookgate/controllers"
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
	name := controllers.ClusterAPIGroup + "_extensionconfigs.yaml"
	source, err := os.ReadFile(filepath.Join(module, "core", "config", "crd", "bases", name))
	if err != nil {
		return err
	}
	for _, group := range []string{controllers.ClusterAPIGroup, controllers.HookgateGroup} {
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
	if group != controllers.ClusterAPIGroup {
		names, ok := crd.Spec["names"].(map[string]any)
		if !ok {
			return nil, fmt.Errorf("spec.names is a %T", crd.Spec["names"])
		}
		// Both groups may be installed side by side, and a short name should mean one thing.
		names["shortNames"] = []string{"hext"}
		names["categories"] = []string{"hookgate"}
		if err := setColumns(crd.Spec); err != nil {
			return nil, err
		}
	}
	content, err := yaml.Marshal(crd)
	if err != nil {
		return nil, err
	}
	return append([]byte("# Made by `make generate` from the module sigs.k8s.io/cluster-api. Do not edit.\n"), content...), nil
}

// columns are what kubectl shows of an ExtensionConfig of Hookgate's group. The gateway writes the condition Served for
// two of them.
//
//nolint:lll // a line for each column
var columns = []any{
	column("Discovered", `.status.conditions[?(@.type=="Discovered")].status`, 0, "Whether the extension has answered its discovery"),
	column("Reason", `.status.conditions[?(@.type=="Discovered")].reason`, 0, "The reason of the condition Discovered"),
	column("Handlers", `.status.conditions[?(@.type=="Served")].message`, 0, "How many handlers are served, and whether these are the last known ones"),
	column("Protocol", `.status.conditions[?(@.type=="Served")].reason`, 0, "The protocol of calls to the extension"),
	column("URL", ".spec.clientConfig.url", 1, "The address of the extension"),
	column("Service", ".spec.clientConfig.service.name", 1, "The Service of the extension, if there is no URL"),
	column("Available", `.status.conditions[?(@.type=="Available")].status`, 1, "Whether calls to the extension are sent"),
	column("Paused", `.status.conditions[?(@.type=="Paused")].status`, 1, "Whether the ExtensionConfig is paused"),
	column("Message", `.status.conditions[?(@.type=="Discovered")].message`, 1, "What discovery says"),
}

func column(name, path string, priority int, description string) map[string]any {
	c := map[string]any{"name": name, "jsonPath": path, "description": description, "type": "string"}
	if priority != 0 { // which programs with Go types leave out
		c["priority"] = priority
	}
	return c
}

// setColumns replaces the columns of the version that is stored. The age stays last.
func setColumns(spec map[string]any) error {
	versions, _ := spec["versions"].([]any)
	for _, v := range versions {
		version, ok := v.(map[string]any)
		if ok && version["storage"] == true {
			age := map[string]any{"name": "Age", "jsonPath": ".metadata.creationTimestamp", "type": "date"}
			version["additionalPrinterColumns"] = append(slices.Clone(columns), age)
			return nil
		}
	}
	return errors.New("no version is stored")
}
