// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/gobuffalo/flect"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/hookgate/hookgate/infrastructure/v1alpha1"
)

// kinds are the kinds of the group; true are those of the contracts of Cluster API.
var kinds = map[string]bool{
	"InfrastructureClass":         false,
	"HookgateClusterIdentity":     false,
	"HookgateCluster":             true,
	"HookgateClusterTemplate":     true,
	"HookgateMachine":             true,
	"HookgateMachineTemplate":     true,
	"HookgateMachinePool":         true,
	"HookgateMachinePoolTemplate": true,
}

// definitions returns the CustomResourceDefinitions by kind.
func definitions(t testing.TB) map[string]*apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "..", "deploy", "crd", "infrastructure", "*_*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]*apiextensionsv1.CustomResourceDefinition{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		d := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.UnmarshalStrict(text, d); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		all[d.Spec.Names.Kind] = d
	}
	if got, want := slices.Sorted(maps.Keys(all)), slices.Sorted(maps.Keys(kinds)); !slices.Equal(got, want) {
		t.Fatalf("definitions of %v, want %v", got, want)
	}
	return all
}

// Cluster API reads a CRD by the name that it computes from group and kind, and takes the version from its label.
func TestDefinitionsKeepTheContract(t *testing.T) {
	for kind, d := range definitions(t) {
		t.Run(kind, func(t *testing.T) {
			plural := flect.Pluralize(strings.ToLower(kind)) // as contract.CalculateCRDName of Cluster API
			if want := plural + ".infrastructure.hookgate.dev"; d.Name != want || d.Spec.Names.Plural != plural {
				t.Errorf("name %s of plural %s, want %s", d.Name, d.Spec.Names.Plural, want)
			}
			if got := d.Labels["cluster.x-k8s.io/v1beta2"]; got != "v1alpha1" {
				t.Errorf("label of contract v1beta2 is %q, want v1alpha1", got)
			}
			if !slices.Contains(d.Spec.Names.Categories, "cluster-api") || len(d.Spec.Names.ShortNames) != 1 {
				t.Errorf("categories %v and short names %v", d.Spec.Names.Categories, d.Spec.Names.ShortNames)
			}
			if namespaced := d.Spec.Scope == apiextensionsv1.NamespaceScoped; namespaced != kinds[kind] {
				t.Errorf("scope %s", d.Spec.Scope)
			}
			if d.Spec.Names.ListKind != kind+"List" {
				t.Errorf("list kind %s", d.Spec.Names.ListKind)
			}
			if d.Spec.Conversion != nil {
				t.Errorf("conversion %v: one version needs none, and clusterctl waits for no webhook then", d.Spec.Conversion)
			}
			if len(d.Spec.Versions) != 1 {
				t.Fatalf("%d versions, want 1", len(d.Spec.Versions))
			}
			version := d.Spec.Versions[0]
			if version.Name != "v1alpha1" || !version.Served || !version.Storage {
				t.Errorf("version %s, served %t, storage %t", version.Name, version.Served, version.Storage)
			}
			root := version.Schema.OpenAPIV3Schema
			_, observed := root.Properties["status"]
			if got := version.Subresources != nil && version.Subresources.Status != nil; got != observed {
				t.Errorf("subresource status: %t, but the kind has a status: %t", got, observed)
			}
			if !slices.Contains(root.Required, "spec") {
				t.Error("spec is not required: rules that compare it with the old one would not apply to an object without it")
			}
		})
	}
}

// kubectl explain has a text for each field. What Kubernetes itself describes, metadata and conditions, comes with texts of
// its own.
func TestFieldsAreDescribed(t *testing.T) {
	for kind, d := range definitions(t) {
		root := d.Spec.Versions[0].Schema.OpenAPIV3Schema
		walk(kind, root, func(path string, s *apiextensionsv1.JSONSchemaProps) {
			if path != kind+".metadata" && strings.TrimSpace(s.Description) == "" {
				t.Errorf("%s has no description", path)
			}
			if s.Default != nil {
				t.Errorf("%s has a default: Cluster API would see a difference to what it wrote", path)
			}
		})
	}
}

// unbounded are strings, lists and maps whose size Kubernetes or Cluster API bounds, or the size of the object alone.
var unbounded = []string{
	".apiVersion", ".kind",
	".spec.template.metadata.labels", ".spec.template.metadata.annotations", // checked at admission
	".spec.allowedNamespaces.selector.matchLabels",
	".spec.allowedNamespaces.selector.matchExpressions",
	".spec.allowedNamespaces.selector.matchExpressions[].key",
	".spec.allowedNamespaces.selector.matchExpressions[].operator",
	".spec.allowedNamespaces.selector.matchExpressions[].values",
	".spec.allowedNamespaces.selector.matchExpressions[].values[]",
	".status.schemas.cluster", ".status.schemas.machine", ".status.schemas.machinePool", // bounded in bytes
	".status.capacity", ".status.machineCapacities[].capacity", // bounded by a rule
	".status.machineCapacities[].parameters", // bounded in bytes
}

// Each string, list and map has a limit, so that no field alone fills an object.
func TestFieldsAreBounded(t *testing.T) {
	for kind, d := range definitions(t) {
		walk(kind, d.Spec.Versions[0].Schema.OpenAPIV3Schema, func(path string, s *apiextensionsv1.JSONSchemaProps) {
			if slices.Contains(unbounded, strings.TrimPrefix(path, kind)) {
				return
			}
			free := s.AdditionalProperties != nil || s.XPreserveUnknownFields != nil && *s.XPreserveUnknownFields
			switch {
			case s.Type == "string" && s.MaxLength == nil && len(s.Enum) == 0 && s.Format != "date-time",
				s.Type == "array" && s.MaxItems == nil,
				free && s.MaxProperties == nil:
				t.Errorf("%s has no limit", path)
			}
		})
	}
}

// walk visits all fields of a schema below a path, and the elements of lists, which may do without a description.
func walk(path string, s *apiextensionsv1.JSONSchemaProps, visit func(string, *apiextensionsv1.JSONSchemaProps)) {
	visit(path, s)
	for name, child := range s.Properties {
		walk(path+"."+name, &child, visit)
	}
	if s.Items != nil && s.Items.Schema != nil {
		for name, child := range s.Items.Schema.Properties {
			walk(path+"[]."+name, &child, visit)
		}
		if item := s.Items.Schema; item.Type == "string" && item.MaxLength == nil && !slices.Contains(unbounded, path) {
			visit(path+"[]", &apiextensionsv1.JSONSchemaProps{Type: "string", Description: "an element"})
		}
	}
}

// What the controller writes has no place in a template: the topology controller would fight for it.
func TestTemplatesLackWhatTheControllerWrites(t *testing.T) {
	all := definitions(t)
	for _, kind := range []string{"HookgateCluster", "HookgateMachine", "HookgateMachinePool"} {
		object := all[kind].Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
		template := all[kind+"Template"].Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].
			Properties["template"].Properties["spec"]
		var missing []string
		for name := range object.Properties {
			if _, ok := template.Properties[name]; !ok {
				missing = append(missing, name)
			}
		}
		slices.Sort(missing)
		want := map[string][]string{
			"HookgateCluster":     {"controlPlaneEndpoint", "externalID"},
			"HookgateMachine":     {"externalID", "providerID"},
			"HookgateMachinePool": {"externalID", "providerID", "providerIDList"},
		}[kind]
		if !slices.Equal(missing, want) {
			t.Errorf("%sTemplate lacks %v, want %v", kind, missing, want)
		}
		for name := range template.Properties {
			if _, ok := object.Properties[name]; !ok {
				t.Errorf("%sTemplate has %s, which %s lacks", kind, name, kind)
			}
		}
	}
	machine := all["HookgateMachine"].Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
	if _, ok := machine.Properties["failureDomain"]; ok {
		t.Error("a machine has spec.failureDomain: Cluster API would copy it over that of the Machine")
	}
	pool := all["HookgateMachinePool"].Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["status"]
	for _, name := range []string{"failureReason", "failureMessage"} {
		if _, ok := pool.Properties[name]; ok {
			t.Errorf("a pool has status.%s, with which Cluster API panics", name)
		}
	}
}

func TestSchemeHasAllKinds(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	for kind := range kinds {
		for _, name := range []string{kind, kind + "List"} {
			object, err := scheme.New(schema.GroupVersionKind{
				Group: "infrastructure.hookgate.dev", Version: "v1alpha1", Kind: name,
			})
			if err != nil {
				t.Error(err)
			} else if got := reflect.TypeOf(object).Elem().Name(); got != name {
				t.Errorf("%s is a %s", name, got)
			}
		}
	}
}
