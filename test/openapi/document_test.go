// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package openapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/gen/openapi"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/test/samples"
)

// load returns the document, valid, with its references resolved.
func load(t *testing.T) *openapi3.T {
	t.Helper()
	loader := openapi3.NewLoader()
	document, err := loader.LoadFromData([]byte(openapi.Document))
	if err != nil {
		t.Fatal(err)
	}
	if err := document.Validate(loader.Context); err != nil {
		t.Fatalf("the document is not valid OpenAPI: %v", err)
	}
	return document
}

// part is one of the two bodies of a hook.
type part struct {
	kind   string
	schema *openapi3.Schema
}

// parts returns the schemas of a hook's request and answer.
func parts(t *testing.T, document *openapi3.T, h *catalog.Hook) [2]part {
	t.Helper()
	item := document.Paths.Value(h.Path(""))
	if item == nil || item.Post == nil {
		t.Fatalf("the document has no POST %s", h.Path(""))
	}
	return [2]part{
		{"request", item.Post.RequestBody.Value.Content["application/json"].Schema.Value},
		{"response", item.Post.Responses.Value("200").Value.Content["application/json"].Schema.Value},
	}
}

// decode reads JSON and keeps its numbers as written.
func decode(t *testing.T, text []byte) map[string]any {
	t.Helper()
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var value map[string]any
	if err := decoder.Decode(&value); err != nil {
		t.Fatal(err)
	}
	return value
}

func TestEveryPath(t *testing.T) {
	document := load(t)
	want := map[string]bool{}
	for _, h := range catalog.New().Hooks() {
		want[h.Path("")] = true
		if !h.Singleton() {
			want[h.Path("{name}")] = true
		}
	}
	for path := range want {
		item := document.Paths.Value(path)
		if item == nil || item.Post == nil {
			t.Errorf("the document has no POST %s", path)
			continue
		}
		if item.Post.Parameters.GetByInAndName("query", "timeout") == nil {
			t.Errorf("POST %s has no parameter timeout", path)
		}
		if got := item.Post.Parameters.GetByInAndName("path", "name") != nil; got != strings.HasSuffix(path, "{name}") {
			t.Errorf("POST %s has the parameter name: %t", path, got)
		}
		if item.Post.Responses.Default() == nil {
			t.Errorf("POST %s does not say what answers other than 200 are", path)
		}
		if len(item.Post.Description) < 40 {
			t.Errorf("POST %s has no description: %q", path, item.Post.Description)
		}
	}
	for path := range document.Paths.Map() {
		if !want[path] {
			t.Errorf("the document has a path of no hook: %s", path)
		}
	}
}

func TestEveryVectorValidates(t *testing.T) {
	document := load(t)
	for _, h := range catalog.New().Hooks() {
		for _, p := range parts(t, document, h) {
			name := filepath.Join("..", "..", "proto", "testdata", h.Version,
				strings.ToLower(h.Hook)+"."+p.kind+".json")
			t.Run(filepath.Base(name), func(t *testing.T) {
				text, err := os.ReadFile(name)
				if err != nil {
					t.Fatal(err)
				}
				if err := p.schema.VisitJSON(decode(t, text)); err != nil {
					t.Errorf("%s is not what the document says: %v", name, err)
				}
			})
		}
	}
}

func TestEverySampleValidates(t *testing.T) {
	document := load(t)
	hooks := catalog.New()
	for _, name := range samples.Hooks() {
		h, _ := hooks.ByName(name)
		if err := parts(t, document, h)[0].schema.VisitJSON(decode(t, samples.Body(name))); err != nil {
			t.Errorf("request of %s: %v", name, err)
		}
	}
	cluster := decode(t, samples.Marshal(samples.ClusterWithStatus()))
	if err := document.Components.Schemas["cluster.v1beta2.Cluster"].Value.VisitJSON(cluster); err != nil {
		t.Errorf("Cluster with a status: %v", err)
	}
}

// edit changes the value at a path of members and indexes, or removes it if to is nil.
func edit(t *testing.T, value any, path string, to any) {
	t.Helper()
	steps := strings.Split(path, "/")
	for _, step := range steps[:len(steps)-1] {
		switch v := value.(type) {
		case map[string]any:
			value = v[step]
		case []any:
			var i int
			if _, err := fmt.Sscan(step, &i); err != nil {
				t.Fatal(err)
			}
			value = v[i]
		}
	}
	members, ok := value.(map[string]any)
	last := steps[len(steps)-1]
	if _, has := members[last]; !ok || !has && to == nil {
		t.Fatalf("nothing is at %s", path)
	}
	if to == nil {
		delete(members, last)
	} else {
		members[last] = to
	}
}

func TestWrongVectorsDoNotValidate(t *testing.T) {
	document := load(t)
	hooks := catalog.New()
	for name, c := range map[string]struct {
		hook, kind, path string
		to               any
		valid            bool
	}{
		"cluster is text":                     {"BeforeClusterCreate", "request", "cluster", "c1", false},
		"cluster is missing":                  {"BeforeClusterCreate", "request", "cluster", nil, false},
		"name of the cluster is a number":     {"BeforeClusterUpgrade", "request", "cluster/metadata/name", json.Number("1"), false},
		"replicas is text":                    {"BeforeClusterUpgrade", "request", "cluster/spec/topology/controlPlane/replicas", "3", false},
		"replicas is a fraction":              {"BeforeClusterUpgrade", "request", "cluster/spec/topology/controlPlane/replicas", json.Number("1.5"), false},
		"class is missing":                    {"BeforeClusterUpgrade", "request", "cluster/spec/topology/classRef", nil, false},
		"label is a number":                   {"UpdateMachine", "request", "desired/machine/metadata/labels", map[string]any{"a": json.Number("1")}, false},
		"machine is missing":                  {"CanUpdateMachine", "request", "current/machine", nil, false},
		"name of a MachineSet's cluster":      {"CanUpdateMachineSet", "request", "desired/machineSet/spec/clusterName", nil, false},
		"uid of an item is missing":           {"GeneratePatches", "request", "items/0/uid", nil, false},
		"items is an object":                  {"GeneratePatches", "request", "items", map[string]any{}, false},
		"patch type is unknown":               {"GeneratePatches", "response", "items/0/patchType", "JSONPatches", false},
		"status is unknown":                   {"BeforeClusterCreate", "response", "status", "success", false},
		"status is missing":                   {"BeforeClusterCreate", "response", "status", nil, false},
		"kind is of another hook":             {"BeforeClusterCreate", "response", "kind", "BeforeClusterDeleteResponse", false},
		"retryAfterSeconds is text":           {"BeforeClusterCreate", "response", "retryAfterSeconds", "10", false},
		"timeoutSeconds is text":              {"Discovery", "response", "handlers/0/timeoutSeconds", "5s", false},
		"schema of a variable has a bad type": {"DiscoverVariables", "response", "variables/0/schema/openAPIV3Schema/type", "int", false},
		"nested schema has a bad type": {"DiscoverVariables", "response", "variables/0/schema/openAPIV3Schema/properties",
			map[string]any{"a": map[string]any{"type": "object",
				"properties": map[string]any{"b": map[string]any{"type": "int"}}}}, false},
		"nested schema is good": {"DiscoverVariables", "response", "variables/0/schema/openAPIV3Schema/properties",
			map[string]any{"a": map[string]any{"type": "object",
				"properties": map[string]any{"b": map[string]any{"type": "integer"}}}}, true},
		"unknown member of the envelope":  {"BeforeClusterCreate", "request", "newMember", map[string]any{"a": true}, true},
		"unknown member of the cluster":   {"BeforeClusterCreate", "request", "cluster/spec/newMember", "a", true},
		"unknown member of an item":       {"GeneratePatches", "response", "items/0/newMember", []any{"a"}, true},
		"template of any kind":            {"GeneratePatches", "request", "items/0/object", map[string]any{"kind": "Any", "spec": []any{}}, true},
		"template is text":                {"GeneratePatches", "request", "items/0/object", "kind: Any", false},
		"value of a variable is anything": {"GeneratePatches", "request", "variables/0/value", []any{json.Number("9007199254740993"), nil}, true},
	} {
		t.Run(name, func(t *testing.T) {
			h, ok := hooks.ByName(c.hook)
			if !ok {
				t.Fatalf("there is no hook %s", c.hook)
			}
			text, err := os.ReadFile(filepath.Join("..", "..", "proto", "testdata", h.Version,
				strings.ToLower(c.hook)+"."+c.kind+".json"))
			if err != nil {
				t.Fatal(err)
			}
			value := decode(t, text)
			edit(t, value, c.path, c.to)
			for _, p := range parts(t, document, h) {
				if p.kind != c.kind {
					continue
				}
				if err := p.schema.VisitJSON(value); (err == nil) != c.valid {
					t.Errorf("valid: got %t, want %t: %v", err == nil, c.valid, err)
				}
			}
		})
	}
}

func TestErrorAnswersValidate(t *testing.T) {
	document := load(t)
	for _, h := range catalog.New().Hooks() {
		answer := document.Paths.Value(h.Path("")).Post.Responses.Default().Value
		body := map[string]any{"apiVersion": h.APIVersion(), "kind": h.Hook + "Response", "status": "Failure",
			"message": "no", "retryAfterSeconds": json.Number("0")}
		schema := answer.Content["application/json"].Schema.Value
		if err := schema.VisitJSON(body); err != nil {
			t.Errorf("%s: %v", h.Hook, err)
		}
		body["status"] = "Success"
		if err := schema.VisitJSON(body); err == nil {
			t.Errorf("%s: an answer other than 200 may have the status Success", h.Hook)
		}
		kinds := answer.Headers["Hookgate-Error-Kind"].Value.Schema.Value.Enum
		if len(kinds) != len(hook.Kinds()) {
			t.Errorf("%s: %d kinds of errors, want %d", h.Hook, len(kinds), len(hook.Kinds()))
		}
	}
}
