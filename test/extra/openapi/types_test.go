// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package openapi

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/test/samples"
)

// requestOf and answerOf return Cluster API's own types of a hook.
func requestOf(name string) any {
	if name == hook.Discovery {
		return &runtimehooksv1.DiscoveryRequest{}
	}
	return samples.Request(name)
}

func answerOf(name string) any { return samples.Response(name) }

// TestMatchesClusterAPI holds the document against the Go types, as encoding/json sees them: every member is there,
// nothing else is, and each has the type that it is written with.
func TestMatchesClusterAPI(t *testing.T) {
	document := load(t)
	c := &comparison{visited: map[reflect.Type]bool{}}
	for _, h := range catalog.New().Hooks() {
		p := parts(t, document, h)
		c.compare(h.Hook+"Request", reflect.TypeOf(requestOf(h.Hook)), p[0].schema)
		c.compare(h.Hook+"Response", reflect.TypeOf(answerOf(h.Hook)), p[1].schema)
	}
	c.compare("Builtins", reflect.TypeFor[runtimehooksv1.Builtins](),
		document.Components.Schemas["hooks.v1alpha1.Builtins"].Value)
	for _, difference := range c.differences {
		t.Error(difference)
	}
	if len(c.visited) < 120 || c.members < 550 {
		t.Errorf("only %d types with %d members were compared", len(c.visited), c.members)
	}
}

// TestComparisonSeesDifferences breaks the document in the ways that the comparison is for.
func TestComparisonSeesDifferences(t *testing.T) {
	schemaOf := func(document *openapi3.T, name string) *openapi3.Schema {
		return document.Components.Schemas[name].Value
	}
	for name, c := range map[string]struct {
		spoil func(*openapi3.T)
		want  string
	}{
		"a member is missing": {
			func(d *openapi3.T) { delete(schemaOf(d, "cluster.v1beta2.ClusterSpec").Properties, "paused") },
			"cluster.spec: the document has no member paused",
		},
		"a member too many": {
			func(d *openapi3.T) {
				schemaOf(d, "meta.v1.ObjectMeta").Properties["nickname"] = openapi3.NewSchemaRef("",
					openapi3.NewStringSchema())
			}, "metadata: Go has no member nickname",
		},
		"another type": {
			func(d *openapi3.T) {
				schemaOf(d, "cluster.v1beta2.Topology").Properties["version"].Value.Type = &openapi3.Types{"integer"}
			}, "topology.version: the document says integer",
		},
		"another format": {
			func(d *openapi3.T) {
				schemaOf(d, "cluster.v1beta2.MachineSetSpec").Properties["replicas"].Value.Format = "int64"
			}, "replicas: the document says integer int64, Go int32",
		},
		"required and always written": {
			func(d *openapi3.T) {
				s := schemaOf(d, "hooks.v1alpha1.BeforeClusterCreateResponse")
				s.Required = slices.DeleteFunc(s.Required, func(m string) bool { return m == "status" })
			}, "BeforeClusterCreateResponse: member status is always written, but not required",
		},
		"no other members": {
			func(d *openapi3.T) {
				schemaOf(d, "cluster.v1beta2.MachineSpec").AdditionalProperties = openapi3.AdditionalProperties{Has: new(false)}
			}, "machine.spec: the document allows no other members",
		},
	} {
		t.Run(name, func(t *testing.T) {
			document := load(t)
			c.spoil(document)
			compared := &comparison{visited: map[reflect.Type]bool{}}
			for _, h := range catalog.New().Hooks() {
				p := parts(t, document, h)
				compared.compare(h.Hook+"Request", reflect.TypeOf(requestOf(h.Hook)), p[0].schema)
				compared.compare(h.Hook+"Response", reflect.TypeOf(answerOf(h.Hook)), p[1].schema)
			}
			if !slices.ContainsFunc(compared.differences, func(d string) bool { return strings.Contains(d, c.want) }) {
				t.Errorf("no difference %q in %q", c.want, compared.differences)
			}
		})
	}
}

// comparison walks Go types and schemas together.
type comparison struct {
	visited     map[reflect.Type]bool
	members     int
	differences []string
}

func (c *comparison) differf(path, format string, args ...any) {
	c.differences = append(c.differences, path+": "+fmt.Sprintf(format, args...))
}

// flat returns a schema without the allOf around a reference.
func flat(s *openapi3.Schema) *openapi3.Schema {
	for s.Type == nil && len(s.AllOf) > 0 {
		s = s.AllOf[0].Value
	}
	return s
}

func (c *comparison) compare(path string, t reflect.Type, s *openapi3.Schema) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	s = flat(s)
	switch t {
	case reflect.TypeFor[runtime.RawExtension](), reflect.TypeFor[metav1.FieldsV1]():
		if !s.Type.Is("object") || len(s.Properties) > 0 {
			c.differf(path, "the document says %s, Go any object", describe(s))
		}
		return
	case reflect.TypeFor[apiextensionsv1.JSON]():
		if s.Type != nil || !s.Nullable {
			c.differf(path, "the document says %s, Go any JSON", describe(s))
		}
		return
	case reflect.TypeFor[intstr.IntOrString]():
		if s.Type != nil || len(s.OneOf) != 2 || !s.OneOf[0].Value.Type.Is("integer") ||
			!s.OneOf[1].Value.Type.Is("string") {
			c.differf(path, "the document says %s, Go an integer or a string", describe(s))
		}
		return
	case reflect.TypeFor[metav1.Time](), reflect.TypeFor[metav1.MicroTime]():
		c.expect(path, s, "string", "date-time", t)
		return
	case reflect.TypeFor[metav1.Duration]():
		c.expect(path, s, "string", "", t)
		return
	}
	switch t.Kind() {
	case reflect.String:
		c.expect(path, s, "string", "", t)
	case reflect.Bool:
		c.expect(path, s, "boolean", "", t)
	case reflect.Int32:
		c.expect(path, s, "integer", "int32", t)
	case reflect.Int64:
		c.expect(path, s, "integer", "int64", t)
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			c.expect(path, s, "string", "byte", t)
			return
		}
		c.expect(path, s, "array", "", t)
		if s.Items != nil {
			c.compare(path+"[]", t.Elem(), s.Items.Value)
		}
	case reflect.Map:
		c.expect(path, s, "object", "", t)
		if s.AdditionalProperties.Schema == nil {
			c.differf(path, "the document does not say what the values of the map are")
			return
		}
		c.compare(path+"{}", t.Elem(), s.AdditionalProperties.Schema.Value)
	case reflect.Struct:
		c.structure(path, t, s)
	default:
		c.differf(path, "type %s is one that the comparison does not know", t)
	}
}

func (c *comparison) expect(path string, s *openapi3.Schema, kind, format string, t reflect.Type) {
	if !s.Type.Is(kind) || s.Format != format {
		c.differf(path, "the document says %s, Go %s", describe(s), t)
	}
}

func describe(s *openapi3.Schema) string {
	if s.Type == nil {
		return "anything"
	}
	return strings.TrimSpace(strings.Join(s.Type.Slice(), "|") + " " + s.Format)
}

func (c *comparison) structure(path string, t reflect.Type, s *openapi3.Schema) {
	if c.visited[t] {
		return
	}
	c.visited[t] = true
	if !s.Type.Is("object") {
		c.differf(path, "the document says %s, Go %s", describe(s), t)
		return
	}
	if s.AdditionalProperties.Has != nil && !*s.AdditionalProperties.Has {
		c.differf(path, "the document allows no other members")
	}
	known := map[string]bool{}
	for _, f := range jsonMembers(t) {
		c.members++
		known[f.name] = true
		member, ok := s.Properties[f.name]
		if !ok {
			c.differf(path, "the document has no member %s, of type %s", f.name, f.of)
			continue
		}
		required := slices.Contains(s.Required, f.name)
		if !f.omitted && !required && !writtenThoughOptional[t.Name()+"."+f.name] {
			c.differf(path, "member %s is always written, but not required", f.name)
		}
		if f.pointer && f.omitted && required && !requiredPointers[t.Name()+"."+f.name] {
			c.differf(path, "member %s is required, but Go has a pointer for it", f.name)
		}
		if member.Value.Description == "" {
			c.differf(path, "member %s has no description", f.name)
		}
		if f.null && !member.Value.Nullable {
			c.differf(path, "member %s is written as null when it is empty, which the document does not allow", f.name)
		}
		c.compare(path+"."+f.name, f.of, member.Value)
	}
	for name := range s.Properties {
		if !known[name] {
			c.differf(path, "Go has no member %s", name)
		}
	}
	for _, name := range s.Required {
		if !known[name] {
			c.differf(path, "a member %s is required that Go does not have", name)
		}
	}
}

// requiredPointers are the members that Cluster API's markers require, and that Go has a pointer for only to tell an
// explicit zero from nothing.
var requiredPointers = map[string]bool{
	"UnhealthyNodeCondition.timeoutSeconds":    true,
	"UnhealthyMachineCondition.timeoutSeconds": true,
	"ClusterClassVariable.required":            true,
}

// writtenThoughOptional are the members that Cluster API's markers call optional, and that Go writes anyway.
var writtenThoughOptional = map[string]bool{
	"MachineSetV1Beta1DeprecatedStatus.fullyLabeledReplicas": true,
	"MachineSetV1Beta1DeprecatedStatus.readyReplicas":        true,
	"MachineSetV1Beta1DeprecatedStatus.availableReplicas":    true,
}

// jsonMember is a member of a struct as encoding/json writes it.
type jsonMember struct {
	name    string
	of      reflect.Type
	omitted bool // left out when it is empty
	pointer bool
	null    bool // null when it is empty
}

// jsonMembers returns the members of a struct, including those of embedded structs.
func jsonMembers(t reflect.Type) []jsonMember {
	var members []jsonMember
	for f := range t.Fields() {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "-" || !f.IsExported():
		case f.Anonymous && name == "":
			members = append(members, jsonMembers(f.Type)...)
		default:
			m := jsonMember{
				name: name, of: f.Type, pointer: f.Type.Kind() == reflect.Pointer,
				omitted: strings.Contains(options, "omitempty") || strings.Contains(options, "omitzero"),
			}
			switch {
			case m.omitted:
			case f.Type.Kind() == reflect.Slice, f.Type.Kind() == reflect.Map, m.pointer, f.Type == reflect.TypeFor[metav1.Time]():
				m.null = true
			}
			members = append(members, m)
		}
	}
	return members
}
