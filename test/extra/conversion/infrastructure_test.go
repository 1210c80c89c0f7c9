// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"os"
	"path/filepath"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/cluster-api/util/contract"
)

// Cluster API computes the name of a definition to find its labels; the definitions must have these names.
func TestNamesOfInfrastructureDefinitions(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("..", "..", "..", "deploy", "crd", "infrastructure", "*_*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%d definitions, %v", len(files), err)
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
		if want := contract.CalculateCRDName(d.Spec.Group, d.Spec.Names.Kind); d.Name != want {
			t.Errorf("%s is named %s, want %s", d.Spec.Names.Kind, d.Name, want)
		}
	}
}
