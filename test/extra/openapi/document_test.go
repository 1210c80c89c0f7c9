// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package openapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/hookgate/hookgate/catalog"
	dnsv1alpha1 "github.com/hookgate/hookgate/examples/own-hooks/gen/acme/dns/v1alpha1"
	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/gen/openapi"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/contract/codec"
	"github.com/hookgate/hookgate/internal/contract/openapi/document"
	"github.com/hookgate/hookgate/test/samples"
)

// load returns the document of Cluster API's hooks.
func load(t *testing.T) *openapi3.T {
	t.Helper()
	return read(t, openapi.Document)
}

// read returns a document, valid, with its references resolved.
func read(t *testing.T, text string) *openapi3.T {
	t.Helper()
	loader := openapi3.NewLoader()
	document, err := loader.LoadFromData([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if err := document.Validate(loader.Context, openapi3.EnableExamplesValidation()); err != nil {
		t.Fatalf("the document is not valid OpenAPI: %v", err)
	}
	return document
}

// group is a group of hooks, and its document.
type group struct {
	name     string
	document *openapi3.T
	hooks    []*catalog.Hook
	vectors  string // folder of the golden vectors
}

// groups returns those whose documents are part of the repository.
func groups(t *testing.T) []group {
	t.Helper()
	all, err := catalog.With(catalog.Own()...)
	if err != nil {
		t.Fatal(err)
	}
	vectors := filepath.Join("..", "..", "..", "proto", "testdata")
	found := []group{
		{name: hook.Group, document: read(t, openapi.Document), vectors: filepath.Join(vectors, hook.Version)},
		{name: hook.InfrastructureGroup, document: read(t, openapi.Infrastructure),
			vectors: filepath.Join(vectors, "infrastructure", hook.InfrastructureVersion)},
		{name: hook.MachinesGroup, document: read(t, openapi.Machines),
			vectors: filepath.Join(vectors, "machines", hook.MachinesVersion)},
	}
	for _, h := range all.Hooks() {
		i := slices.IndexFunc(found, func(g group) bool { return g.name == h.Group })
		found[i].hooks = append(found[i].hooks, h)
	}
	return found
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
	for _, g := range groups(t) {
		want := map[string]bool{}
		for _, h := range g.hooks {
			want[h.Path("")] = true
			if h.TakesHandler() {
				want[h.Path("{name}")] = true
			}
		}
		for path := range want {
			item := g.document.Paths.Value(path)
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
			if item.Post.RequestBody.Value.Content["application/json"].Example == nil ||
				item.Post.Responses.Value("200").Value.Content["application/json"].Example == nil {
				t.Errorf("POST %s has no example of a request or an answer", path)
			}
		}
		for path := range g.document.Paths.Map() {
			if !want[path] {
				t.Errorf("the document has a path of no hook: %s", path)
			}
		}
		if first := g.document.Tags[0].Name; first != "Discovery" {
			t.Errorf("%s: the first tag is %s, want Discovery", g.name, first)
		}
	}
}

func TestEveryMemberIsDescribed(t *testing.T) {
	for _, g := range groups(t) {
		for name, schema := range g.document.Components.Schemas {
			if !strings.HasPrefix(name, "hooks.") && !strings.HasPrefix(name, "infrastructure.") {
				continue // of Kubernetes, whose comments are not ours
			}
			for member, of := range schema.Value.Properties {
				if of.Value.Description == "" {
					t.Errorf("%s: %s.%s has no description", g.name, name, member)
				}
			}
		}
	}
}

func TestEveryVectorValidates(t *testing.T) {
	for _, g := range groups(t) {
		for _, h := range g.hooks {
			for _, p := range parts(t, g.document, h) {
				name := filepath.Join(g.vectors, strings.ToLower(h.Hook)+"."+p.kind+".json")
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

// TestEveryInfrastructureSampleValidates validates bodies that were written without the protos, and that have only
// members that the document knows.
func TestEveryInfrastructureSampleValidates(t *testing.T) {
	g := groups(t)[1]
	for _, h := range g.hooks {
		p := parts(t, g.document, h)
		for i, body := range [][]byte{samples.InfrastructureBody(h.Hook), samples.InfrastructureResponse(h.Hook)} {
			value := decode(t, body)
			if err := p[i].schema.VisitJSON(value); err != nil {
				t.Errorf("%s of %s: %v", p[i].kind, h.Hook, err)
			}
			known(t, p[i].kind+" of "+h.Hook, value, p[i].schema)
		}
	}
}

// known reports the members of a value that a schema does not have.
func known(t *testing.T, path string, value any, s *openapi3.Schema) {
	t.Helper()
	s = flat(s)
	switch v := value.(type) {
	case []any:
		for _, element := range v {
			if s.Items != nil {
				known(t, path+"[]", element, s.Items.Value)
			}
		}
	case map[string]any:
		if len(s.Properties) == 0 { // a map, or an open object
			return
		}
		for name, member := range v {
			of, ok := s.Properties[name]
			if !ok {
				t.Errorf("%s has the member %s, which the document does not", path, name)
				continue
			}
			known(t, path+"."+name, member, of.Value)
		}
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

// addresses returns a list of so many addresses of a machine.
func addresses(n int) []any {
	return slices.Repeat([]any{map[string]any{"type": "InternalIP", "address": "10.0.0.41"}}, n)
}

func TestWrongVectorsDoNotValidate(t *testing.T) {
	all := groups(t)
	for name, c := range map[string]struct {
		hook, kind, path string
		to               any
		valid            bool
	}{
		"infrastructure without a subject": {"ReconcileMachine", "request", "subject", nil, false},
		"subject without an externalId":    {"DeleteCluster", "request", "subject/externalId", nil, false},
		"externalId is empty":              {"DeleteCluster", "request", "subject/externalId", "", false},
		"parameters are a list":            {"ReconcileCluster", "request", "subject/parameters", []any{}, false},
		"parameters are any object": {"ReconcileCluster", "request", "subject/parameters",
			map[string]any{"a": []any{json.Number("1")}}, true},
		"credentials are numbers": {"ReconcileCluster", "request", "subject/credentials",
			map[string]any{"a": json.Number("1")}, false},
		"bootstrap data is not base64":        {"ReconcileMachine", "request", "bootstrap/data", "#cloud-config", false},
		"phase is unknown":                    {"ReconcileMachine", "response", "phase", "PHASE_READY", false},
		"state is unknown":                    {"DeleteMachine", "response", "state", "gone", false},
		"an answer without a status":          {"DeleteMachine", "response", "status", nil, false},
		"a condition that is neither":         {"ReconcileMachine", "response", "conditions/0/status", "true", false},
		"an address of no type":               {"ReconcileMachine", "response", "addresses/0/type", "IP", false},
		"port 0":                              {"ReconcileCluster", "response", "controlPlaneEndpoint/port", json.Number("0"), false},
		"port 1":                              {"ReconcileCluster", "response", "controlPlaneEndpoint/port", json.Number("1"), true},
		"port 65535":                          {"ReconcileCluster", "response", "controlPlaneEndpoint/port", json.Number("65535"), true},
		"port 65536":                          {"ReconcileCluster", "response", "controlPlaneEndpoint/port", json.Number("65536"), false},
		"128 addresses":                       {"ReconcileMachine", "response", "addresses", addresses(128), true},
		"129 addresses":                       {"ReconcileMachine", "response", "addresses", addresses(129), false},
		"an instance without a name":          {"ReconcileMachinePool", "response", "instances/0/name", nil, false},
		"instanceCount is text":               {"ReconcileMachinePool", "response", "instanceCount", "2", false},
		"unknown member of the subject":       {"ReconcileMachine", "request", "subject/newMember", []any{}, true},
		"kind of an answer of the other":      {"DeleteMachine", "response", "kind", "DeleteClusterResponse", false},
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
			var of group
			var h *catalog.Hook
			for _, g := range all {
				if i := slices.IndexFunc(g.hooks, func(h *catalog.Hook) bool { return h.Hook == c.hook }); i >= 0 {
					of, h = g, g.hooks[i]
				}
			}
			if h == nil {
				t.Fatalf("there is no hook %s", c.hook)
			}
			text, err := os.ReadFile(filepath.Join(of.vectors, strings.ToLower(c.hook)+"."+c.kind+".json"))
			if err != nil {
				t.Fatal(err)
			}
			value := decode(t, text)
			edit(t, value, c.path, c.to)
			for _, p := range parts(t, of.document, h) {
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
	for _, g := range groups(t) {
		for _, h := range g.hooks {
			answer := g.document.Paths.Value(h.Path("")).Post.Responses.Default().Value
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
}

// TestDocumentOfAnAddedGroup makes the document that a program with hooks of its own serves.
func TestDocumentOfAnAddedGroup(t *testing.T) {
	all, err := catalog.With(catalog.Source{
		Group: "dns.acme.example", Version: "v1alpha1",
		Files: []protoreflect.FileDescriptor{dnsv1alpha1.File_acme_dns_v1alpha1_dns_proto},
	})
	if err != nil {
		t.Fatal(err)
	}
	g := &document.Group{Title: "DNS"}
	for _, h := range all.Hooks() {
		if h.Group == "dns.acme.example" {
			g.Hooks = append(g.Hooks, h)
		}
	}
	text, err := g.Document(g.Schemas()).JSON()
	if err != nil {
		t.Fatal(err)
	}
	d := read(t, string(text))
	mandated := codec.New(all)
	ensure, _ := all.ByName("EnsureRecord")
	answer, err := mandated.Append(nil, &dnsv1alpha1.EnsureRecordResponse{
		Status: hooksv1alpha1.ResponseStatus_RESPONSE_STATUS_SUCCESS, State: dnsv1alpha1.State_STATE_PUBLISHED,
	})
	if err != nil {
		t.Fatal(err)
	}
	value := decode(t, answer)
	schema := parts(t, d, ensure)[1].schema
	if err := schema.VisitJSON(value); err != nil {
		t.Errorf("%s: %v", answer, err)
	}
	value["state"] = "STATE_PUBLISHED"
	if err := schema.VisitJSON(value); err == nil {
		t.Error("the name of an enum value validates, which is none of its texts")
	}
}
