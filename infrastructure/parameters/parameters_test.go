// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package parameters

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/hookgate/hookgate/internal/base/limits"
)

const machine = `{"type": "object", "required": ["size"], "properties": {
	"size": {"type": "string", "enum": ["small", "large"]},
	"zone": {"type": "string", "pattern": "^[a-z]+$", "maxLength": 8, "default": "any"},
	"disk": {"type": "object", "default": {}, "properties": {
		"gigabytes": {"type": "integer", "minimum": 10, "default": 20},
		"kind": {"type": "string", "default": "ssd"}}},
	"nets": {"type": "array", "maxItems": 2, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"], "items": {
		"type": "object", "required": ["name"], "properties": {"name": {"type": "string", "maxLength": 8}}}},
	"tags": {"type": "object", "maxProperties": 3, "additionalProperties": {"type": "string"}},
	"note": {"type": "string", "nullable": true},
	"free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
	"x-kubernetes-validations": [{"rule": "self.size != 'small' || !has(self.disk.gigabytes) || self.disk.gigabytes <= 100", "message": "a small machine has a disk of at most 100 GB"}]}`

var at = field.NewPath("spec", "parameters")

func compiled(t testing.TB, text string) *Schema {
	t.Helper()
	s, err := Compile([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestResolve(t *testing.T) {
	s := compiled(t, machine)
	tests := map[string]struct {
		reason        string
		defaults, own string
		want          string // what the request has
		problems      []string
	}{
		"Defaults":     {"defaults of the schema", ``, `{"size":"small"}`, `{"disk":{"gigabytes":20,"kind":"ssd"},"size":"small","zone":"any"}`, nil},
		"Class":        {"the class's defaults are before the schema's", `{"size":"large","disk":{"kind":"hdd"}}`, `{}`, `{"disk":{"gigabytes":20,"kind":"hdd"},"size":"large","zone":"any"}`, nil},
		"Merge":        {"and behind the object's, member by member", `{"size":"large","disk":{"kind":"hdd"}}`, `{"disk":{"gigabytes":11}}`, `{"disk":{"gigabytes":11,"kind":"hdd"},"size":"large","zone":"any"}`, nil},
		"List":         {"a list is replaced", `{"size":"large","nets":[{"name":"a"}]}`, `{"nets":[{"name":"b"}]}`, `{"disk":{"gigabytes":20,"kind":"ssd"},"nets":[{"name":"b"}],"size":"large","zone":"any"}`, nil},
		"Null":         {"null takes a class's default away", `{"size":"large","tags":{"a":"b"}}`, `{"tags":null}`, `{"disk":{"gigabytes":20,"kind":"ssd"},"size":"large","zone":"any"}`, nil},
		"Free":         {"members of a free object stay", ``, `{"size":"large","free":{"a":[1.5,{"b":true}]}}`, `{"disk":{"gigabytes":20,"kind":"ssd"},"free":{"a":[1.5,{"b":true}]},"size":"large","zone":"any"}`, nil},
		"Nothing":      {"nothing is an empty object", ``, ``, ``, []string{"spec.parameters.size: Required value"}},
		"JSONNull":     {"so is null", ``, `null`, ``, []string{"spec.parameters.size: Required value"}},
		"Unknown":      {"a typing error is noticed, and its place named", ``, `{"size":"large","disk":{"gigabyte":20},"zon":"a"}`, ``, []string{"spec.parameters.disk.gigabyte: Forbidden: is not a member that the extension knows", "spec.parameters.zon: Forbidden: is not a member that the extension knows"}},
		"Type":         {"the text has the type once", ``, `{"size":"large","disk":{"gigabytes":"20"}}`, ``, []string{`spec.parameters.disk.gigabytes: Invalid value: must be of type integer: "string"`}},
		"Enum":         {"the values are named", ``, `{"size":"huge"}`, ``, []string{`spec.parameters.size: Unsupported value: "huge": supported values: "small", "large"`}},
		"Pattern":      {"a pattern is named", ``, `{"size":"large","zone":"A"}`, ``, []string{`spec.parameters.zone: Invalid value: "A": should match '^[a-z]+$'`}},
		"Long":         {"as is a length", ``, `{"size":"large","zone":"abcdefghi"}`, ``, []string{"spec.parameters.zone: Too long: may not be more than 8 bytes"}},
		"Minimum":      {"and a minimum", ``, `{"size":"large","disk":{"gigabytes":9}}`, ``, []string{`spec.parameters.disk.gigabytes: Invalid value: 9: should be greater than or equal to 10`}},
		"Items":        {"an element has a place", ``, `{"size":"large","nets":[{"name":"a"},{}]}`, ``, []string{"spec.parameters.nets[1].name: Required value"}},
		"TooMany":      {"elements are counted", ``, `{"size":"large","nets":[{"name":"a"},{"name":"b"},{"name":"c"}]}`, ``, []string{"spec.parameters.nets: Too many: 3: must have at most 2 items"}},
		"Duplicate":    {"and told apart", ``, `{"size":"large","nets":[{"name":"a"},{"name":"a"}]}`, ``, []string{`spec.parameters.nets[1]: Duplicate value`}},
		"Rule":         {"a rule has its own text", ``, `{"size":"small","disk":{"gigabytes":101}}`, ``, []string{"spec.parameters: Invalid value: a small machine has a disk of at most 100 GB"}},
		"RuleHolds":    {"at its limit it holds", ``, `{"size":"small","disk":{"gigabytes":100}}`, `{"disk":{"gigabytes":100,"kind":"ssd"},"size":"small","zone":"any"}`, nil},
		"Several":      {"all problems at once, by place", ``, `{"zone":"A","disk":{"gigabytes":1}}`, ``, []string{`spec.parameters.disk.gigabytes: Invalid value: 1: should be greater than or equal to 10`, "spec.parameters.size: Required value", `spec.parameters.zone: Invalid value: "A": should match '^[a-z]+$'`}},
		"ArrayIsNone":  {"parameters are an object", ``, `[]`, ``, []string{"spec.parameters: Invalid value: must be a JSON object"}},
		"TextIsNone":   {"a text is none", ``, `"size"`, ``, []string{"spec.parameters: Invalid value: must be a JSON object"}},
		"Broken":       {"a text that is not JSON", ``, `{"size":`, ``, []string{"spec.parameters: Invalid value: is not JSON: unexpected end of JSON input"}},
		"BrokenClass":  {"defaults that are not an object are the class's fault", `[]`, `{"size":"large"}`, ``, []string{"spec.parameters: Invalid value: the default parameters of the InfrastructureClass: must be a JSON object"}},
		"LargeInteger": {"numbers keep their value", ``, `{"size":"large","free":{"id":9007199254740993,"text":"<&>"}}`, `{"disk":{"gigabytes":20,"kind":"ssd"},"free":{"id":9007199254740993,"text":"<&>"},"size":"large","zone":"any"}`, nil},
		"NullMember":   {"null is not a value of a member that has a default", ``, `{"size":"large","zone":null}`, `{"disk":{"gigabytes":20,"kind":"ssd"},"size":"large","zone":"any"}`, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Log(test.reason)
			defaults, own := []byte(test.defaults), []byte(test.own)
			got, errs := s.Resolve(t.Context(), at, defaults, own)
			if diff := cmp.Diff(test.problems, texts(errs)); diff != "" {
				t.Errorf("problems: -want +got\n%s", diff)
			}
			if string(got) != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
			if string(own) != test.own || string(defaults) != test.defaults {
				t.Error("the parameters of the object or class have changed")
			}
		})
	}
}

func texts(errs field.ErrorList) []string {
	var list []string
	for _, err := range errs {
		list = append(list, err.Error())
	}
	return list
}

// An empty schema accepts all objects, within their limits.
func TestEmptySchema(t *testing.T) {
	for _, text := range []string{"{}", " {} ", "null"} {
		s := compiled(t, text)
		if got, errs := s.Resolve(t.Context(), at, []byte(`{"a":1,"c":{"d":null}}`), []byte(`{"b":{"c":null,"d":[null]}}`)); len(errs) > 0 || string(got) != `{"a":1,"b":{"d":[null]},"c":{"d":null}}` {
			t.Errorf("schema %q: %s, %v", text, got, errs)
		}
	}
}

// An extension that announces no schema takes no parameters.
func TestNoSchema(t *testing.T) {
	s := compiled(t, "")
	if got, errs := s.Resolve(t.Context(), at, nil, []byte(`{}`)); string(got) != `{}` || len(errs) > 0 {
		t.Errorf("no parameters: %s, %v", got, errs)
	}
	errs := s.Validate(t.Context(), at, []byte(`{"a":1}`))
	if got := strings.Join(texts(errs), ""); got != "spec.parameters.a: Forbidden: is not a member that the extension knows" {
		t.Errorf("got %q", got)
	}
}

func TestCompileErrors(t *testing.T) {
	rules := strings.TrimSuffix(strings.Repeat(`{"rule": "true"},`, maxRules+1), ",")
	tests := map[string]struct{ reason, text, want string }{
		"NotJSON":     {"a text that is cut", `{"type":`, "schema: Invalid value: is not JSON: unexpected end of JSON input"},
		"NotObject":   {"a boolean is a schema for JSON Schema, but not here", `true`, "schema: Invalid value: must be a JSON object"},
		"NoType":      {"the root is an object", `{"properties": {}}`, `schema.type: Unsupported value: "": supported values: "object"`},
		"Array":       {"and not a list", `{"type": "array", "items": {"type": "string"}}`, `schema.type: Unsupported value: "array": supported values: "object"`},
		"UnknownType": {"a type that does not exist", `{"type": "object", "properties": {"a": {"type": "text"}}}`, "schema.properties[a].type: Unsupported value: \"text\""},
		"NoTypeBelow": {"every member has a type", `{"type": "object", "properties": {"a": {}}}`, "schema.properties[a].type: Required value: must not be empty for specified object fields"},
		"Keyword":     {"keywords of newer drafts", `{"type": "object", "properties": {"a": {"type": "integer", "const": 1}}}`, `schema: Forbidden: unknown field "properties.a.const"`},
		"Twice":       {"a member that is there twice", `{"type": "object", "type": "object"}`, `schema: Forbidden: duplicate field "type"`},
		"Reference":   {"references are not followed", `{"type": "object", "properties": {"a": {"$ref": "#/definitions/a"}}}`, "schema.properties[a].$ref: Forbidden"},
		"Draft":       {"nor is the draft read", `{"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object"}`, "OpenAPIV3Schema 'schema' is not supported"},
		"Default":     {"a default is a value of the schema", `{"type": "object", "properties": {"a": {"type": "integer", "default": "1"}}}`, "schema.properties[a].default: Invalid value"},
		"BadPattern":  {"a pattern is an RE2 expression", `{"type": "object", "properties": {"a": {"type": "string", "pattern": "(?=a)"}}}`, "schema.properties[a].pattern: Invalid value"},
		"BadRule":     {"a rule compiles", `{"type": "object", "properties": {"a": {"type": "integer"}}, "x-kubernetes-validations": [{"rule": "self.b > 1"}]}`, "undefined field 'b'"},
		"OldSelf":     {"a rule is about one state", `{"type": "object", "properties": {"a": {"type": "integer", "x-kubernetes-validations": [{"rule": "self == oldSelf"}]}}}`, "schema.properties[a].x-kubernetes-validations[0].rule: Forbidden: must not use oldSelf"},
		"CostlyRule":  {"a rule has a price", `{"type": "object", "properties": {"a": {"type": "array", "items": {"type": "array", "items": {"type": "string"}}}}, "x-kubernetes-validations": [{"rule": "self.a.all(x, x.all(y, self.a.all(z, z.all(w, w.contains(y)))))"}]}`, "exceeds budget"},
		"ManyRules":   {"rules are counted", `{"type": "object", "x-kubernetes-validations": [` + rules + `]}`, fmt.Sprintf("schema.x-kubernetes-validations: Too many: %d: must have at most %d items", maxRules+1, maxRules)},
		"TooLong":     {"a schema is not endless", `{"type": "object", "description": "` + strings.Repeat("x", limits.ParameterSchemaBytes) + `"}`, "schema: Too long: may not be more than 131072 bytes"},
		"LongEnum":    {"texts repeat an enum", `{"type": "object", "properties": {"a": {"type": "string", "enum": ["` + strings.Repeat("x", limits.ParameterEnumBytes) + `"]}}}`, "schema.properties[a].enum: Too long"},
		"LongPattern": {"and a pattern", `{"type": "object", "additionalProperties": {"type": "string", "pattern": "` + strings.Repeat("x", limits.ParameterPatternBytes+1) + `"}}`, "schema.additionalProperties.pattern: Too long"},
		"TooDeep":     {"nor bottomless", deep(limits.ParameterSchemaDepth + 1), "schema: Invalid value: must not be nested deeper than 66"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Log(test.reason)
			s, err := Compile([]byte(test.text))
			if err == nil {
				t.Fatalf("compiled to %v, want %q", s, test.want)
			}
			if !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %q, want %q", err, test.want)
			}
			if again, err2 := Compile([]byte(test.text)); err2 == nil || err2.Error() != err.Error() {
				t.Errorf("the second time: %v, %v", again, err2)
			}
		})
	}
}

// deep returns objects that are nested in each other.
func deep(n int) string { return strings.Repeat(`{"a":`, n-1) + "{}" + strings.Repeat("}", n-1) }

func TestLimitsOfParameters(t *testing.T) {
	padded := func(n int) string { return `{"a":"` + strings.Repeat("x", n-len(`{"a":""}`)) + `"}` }
	tests := map[string]struct{ text, want string }{
		"Largest":  {padded(limits.ParameterBytes), ""},
		"TooLarge": {padded(limits.ParameterBytes + 1), "spec.parameters: Too long: may not be more than 65536 bytes"},
		"Deepest":  {deep(limits.ParameterDepth), ""},
		"TooDeep":  {deep(limits.ParameterDepth + 1), "spec.parameters: Invalid value: must not be nested deeper than 32"},
		"Brackets": {`{"a":"` + strings.Repeat(`[{\"`, 100) + `"}`, ""}, // within a text, they nest nothing
		"Values":   {`{"a":[` + strings.Repeat("0,", limits.Parameters-2) + "0]}", ""},
		"TooMany":  {`{"a":[` + strings.Repeat("0,", limits.Parameters-1) + "0]}", "spec.parameters: Invalid value: must not have more than 1000 values"},
		"Name":     {`{"` + strings.Repeat("x", limits.ParameterNameBytes) + `":{}}`, ""},
		"LongName": {`{"a":{"` + strings.Repeat("x", limits.ParameterNameBytes+1) + `":{}}}`, "spec.parameters: Invalid value: must not have members whose names have more than 320 bytes"},
		"Lists":    {`{"a":` + strings.Repeat("[", limits.ParameterDepth) + strings.Repeat("]", limits.ParameterDepth) + `}`, "spec.parameters: Invalid value: must not be nested deeper than 32"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := strings.Join(texts(Check(at, []byte(test.text))), "")
			if got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
			if _, errs := compiled(t, "{}").Resolve(t.Context(), at, nil, []byte(test.text)); strings.Join(texts(errs), "") != test.want {
				t.Errorf("Resolve: %v", errs)
			}
		})
	}
	defaults, own := padded(limits.ParameterBytes-100), `{"b":"`+strings.Repeat("x", 100)+`"}`
	_, errs := compiled(t, "{}").Resolve(t.Context(), at, []byte(defaults), []byte(own))
	if got := strings.Join(texts(errs), ""); got != "spec.parameters: Too long: may not be more than 65536 bytes with the defaults" {
		t.Errorf("together: %q", got)
	}
}

// A condition holds the problems of any parameters, and has the same text for the same parameters.
func TestProblemsAreBounded(t *testing.T) {
	var members, enum []string
	for i := range 300 {
		members = append(members, fmt.Sprintf(`"m%03d":%q`, i, strings.Repeat("v", 100)))
		enum = append(enum, fmt.Sprintf(`"e%03d"`, i))
	}
	s := compiled(t, `{"type":"object","additionalProperties":{"type":"string","enum":[`+strings.Join(enum, ",")+`]}}`)
	text := []byte("{" + strings.Join(members, ",") + "}")
	first := s.Validate(t.Context(), at, text)
	if len(first) != limits.ParameterProblems {
		t.Fatalf("%d problems, want %d", len(first), limits.ParameterProblems)
	}
	if first[0].Field != "spec.parameters.m000" || !strings.HasSuffix(first[len(first)-1].Error(), "(and 290 more problems)") {
		t.Errorf("got %s … %s", first[0].Field, first[len(first)-1])
	}
	if n := len(first.ToAggregate().Error()); n > limits.ConditionMessageBytes+limits.ParameterProblems*limits.ParameterProblemBytes {
		t.Errorf("%d bytes of text", n)
	}
	for range 5 {
		if diff := cmp.Diff(texts(first), texts(s.Validate(t.Context(), at, text))); diff != "" {
			t.Fatalf("another text for the same parameters: %s", diff)
		}
	}
}

// A rule whose cost is only known at run time is cut off.
func TestRulesHaveABudget(t *testing.T) {
	s := compiled(t, `{"type":"object","properties":{"a":{"type":"array","maxItems":900,"items":{"type":"string","maxLength":10}}},
		"x-kubernetes-validations":[{"rule":"self.a.all(x, self.a.exists_one(y, y == x))"}]}`)
	list := make([]string, 900)
	for i := range list {
		list[i] = fmt.Sprintf(`"%d"`, i)
	}
	errs := s.Validate(t.Context(), at, []byte(`{"a":[`+strings.Join(list, ",")+`]}`))
	if got := strings.Join(texts(errs), ""); !strings.Contains(got, "cost") {
		t.Errorf("got %q, want that the rule costs too much", got)
	}
	if errs := s.Validate(t.Context(), at, []byte(`{"a":[`+strings.Join(list[:100], ",")+`]}`)); len(errs) > 0 {
		t.Errorf("100 elements: %v", errs)
	}
}

// One Schema serves many reconciliations at a time: checks must not change it, nor the defaults in it.
func TestSchemaIsShared(t *testing.T) {
	s := compiled(t, machine)
	want := `{"disk":{"gigabytes":20,"kind":"ssd"},"size":"large","zone":"any"}`
	done := make(chan string, 8)
	for range cap(done) {
		go func() {
			for range 50 {
				got, errs := s.Resolve(t.Context(), at, nil, []byte(`{"size":"large"}`))
				if string(got) != want || len(errs) > 0 {
					done <- fmt.Sprintf("%s, %v", got, errs)
					return
				}
			}
			done <- ""
		}()
	}
	for range cap(done) {
		if problem := <-done; problem != "" {
			t.Error(problem)
		}
	}
}

// Neither schemas nor parameters of any shape make the code of the API server panic, or answer differently twice.
func FuzzResolve(f *testing.F) {
	f.Add([]byte(machine), []byte(`{"size":"small","disk":{"gigabytes":101},"nets":[{"name":"a"}]}`))
	f.Add([]byte(`{"type":"object","properties":{"a":{"x-kubernetes-int-or-string":true}}}`), []byte(`{"a":1.5}`))
	f.Add([]byte(`{"type":"object","additionalProperties":{"type":"array","items":{"type":"number"}}}`), []byte(`{"":[null]}`))
	f.Fuzz(func(t *testing.T, schema, own []byte) {
		s, err := Compile(schema)
		if err != nil {
			return
		}
		first, errs := s.Resolve(t.Context(), at, nil, own)
		second, errs2 := s.Resolve(t.Context(), at, nil, own)
		if string(first) != string(second) || cmp.Diff(texts(errs), texts(errs2)) != "" {
			t.Fatalf("%s and %s, %v and %v", first, second, errs, errs2)
		}
		if len(errs) > 0 {
			return
		}
		if again, errs := s.Resolve(t.Context(), at, nil, first); string(again) != string(first) || len(errs) > 0 {
			t.Fatalf("%s resolves to %s, %v", first, again, errs)
		}
	})
}

func BenchmarkCompile(b *testing.B) {
	for b.Loop() {
		compiled(b, machine)
	}
}

func BenchmarkResolve(b *testing.B) {
	s, own := compiled(b, machine), []byte(`{"size":"large","disk":{"gigabytes":30}}`)
	b.ReportAllocs()
	for b.Loop() {
		if _, errs := s.Resolve(b.Context(), at, nil, own); len(errs) > 0 {
			b.Fatal(errs)
		}
	}
}

func TestCacheKeepsResults(t *testing.T) {
	c := NewCache()
	first, err := c.Compile([]byte(machine))
	if err != nil {
		t.Fatal(err)
	}
	if second, err := c.Compile([]byte(machine)); second != first || err != nil {
		t.Errorf("compiled again: %v", err)
	}
	_, wrong := c.Compile([]byte(`{"type":"array"}`))
	if _, again := c.Compile([]byte(`{"type":"array"}`)); !errors.Is(again, wrong) || wrong == nil {
		t.Errorf("an error is kept as well: %v, %v", wrong, again)
	}
	for i := range cached {
		if _, err := c.Compile(fmt.Appendf(nil, `{"type":"object","description":"%d"}`, i)); err != nil {
			t.Fatal(err)
		}
	}
	if again, err := c.Compile([]byte(machine)); again == first || err != nil {
		t.Errorf("the oldest schema is still kept, %v", err)
	}
}

// Parameters that others complete may lack members, and are otherwise as they must be.
func TestValidatePartly(t *testing.T) {
	s := compiled(t, machine)
	for text, want := range map[string]string{
		`{}`:            "",
		`{"nets":[{}]}`: "",
		`{"size":"small","disk":{"gigabytes":101}}`: "", // a rule, which may need what is missing
		`{"size":"huge"}`:  `spec.parameters.size: Unsupported value: "huge": supported values: "small", "large"`,
		`{"sise":"small"}`: "spec.parameters.sise: Forbidden: is not a member that the extension knows",
		`[]`:               "spec.parameters: Invalid value: must be a JSON object",
	} {
		if got := strings.Join(texts(s.ValidatePartly(t.Context(), at, []byte(text))), ""); got != want {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
}
