// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	kubejson "sigs.k8s.io/json"

	"github.com/hookgate/hookgate/catalog"
	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/internal/contract/jsonscan"
)

// TestParityForms holds that the form of schemas is that of Cluster API's type.
func TestParityForms(t *testing.T) {
	seen := map[reflect.Type]*form{}
	var compare func(path string, goType reflect.Type, f *form)
	compare = func(path string, goType reflect.Type, f *form) {
		if goType.Kind() == reflect.Pointer {
			goType = goType.Elem()
		}
		elem := func() reflect.Type { return goType.Elem() }
		switch {
		case goType == reflect.TypeFor[apiextensionsv1.JSON](), goType == reflect.TypeFor[[]apiextensionsv1.JSON](),
			goType == reflect.TypeFor[[]string](), goType.Kind() != reflect.Struct && goType.Kind() != reflect.Map && goType.Kind() != reflect.Slice:
			if f.members != nil || f.each != nil {
				t.Errorf("%s has a form", path)
			}
		case goType.Kind() == reflect.Struct:
			if seen[goType] != nil {
				if seen[goType] != f {
					t.Errorf("%s has another form than before", path)
				}
				return
			}
			seen[goType] = f
			names := map[string]bool{}
			for _, m := range members(goType) {
				names[m.name] = true
				if f.members[jsonscan.Fold(m.name)].name != m.name {
					t.Errorf("%s: there is no member %s", path, m.name)
				}
			}
			for field := range goType.Fields() {
				name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
				if value := f.members[jsonscan.Fold(name)].value; value != nil {
					compare(path+"."+name, field.Type, value)
				}
			}
			for _, m := range f.members {
				if !names[m.name] {
					t.Errorf("%s: %s is not upstream", path, m.name)
				}
			}
		case f.each == nil || f.list != (goType.Kind() == reflect.Slice):
			t.Errorf("%s is a %s", path, goType)
		default:
			compare(path+"[]", elem(), f.each)
		}
	}
	compare("schema", reflect.TypeFor[clusterv1.JSONSchemaProps](), schemaForm)
}

// TestSchemas holds what becomes of the schema of a variable, whether it comes in a text or in a message.
func TestSchemas(t *testing.T) {
	c := New(catalog.New())
	for _, tc := range []struct{ in, want, wrong string }{
		{`{"Type":"object"}`, `{"type":"object"}`, ""},
		{`{ "\u0054ype" : "object" , "x":1 }`, `{ "type" : "object" , "x":1 }`, ""},
		{`{"\u0074ype":"object"}`, `{"\u0074ype":"object"}`, ""},
		{`{"X-\u212Aubernetes-Validations":[{"Rule":"true"},{"rule":"false"}]}`, `{"x-kubernetes-validations":[{"rule":"true"},{"rule":"false"}]}`, ""},
		{`{"properties":{"Type":{"TYPE":"a"},"type":{}},"ALLOF":[{"Not":{"ITEMS":{"Format":"f"}}}]}`, `{"properties":{"Type":{"type":"a"},"type":{}},"allOf":[{"not":{"items":{"format":"f"}}}]}`, ""},
		{`{"default":{"Type":1,"type":2},"Enum":[{"Type":1,"type":2}],"x-metadata":{"Labels":{"A":"1","a":"2"}}}`, `{"default":{"Type":1,"type":2},"enum":[{"Type":1,"type":2}],"x-metadata":{"labels":{"A":"1","a":"2"}}}`, ""},
		{`{"items":[{"Type":1}],"properties":7,"allOf":{"Type":1}}`, `{"items":[{"Type":1}],"properties":7,"allOf":{"Type":1}}`, ""},
		{`null`, `null`, ""},
		{`{"type":"integer","Type":"string"}`, "", `Type: differs from "type" only in case`},
		{`{"type":"integer","type":"string"}`, "", `type: occurs twice in one object`},
		{`{"properties":{"a":{},"\u0061":{}}}`, "", `properties.a: occurs twice in one object`},
		{`{"properties":{"a":{"items":{"new":1,"New":2}}}}`, "", `properties.a.items.New: differs from "new" only in case`},
		{`{"x-metadata":{"annotations":{"a":"1","a":"2"}}}`, "", `x-metadata.annotations.a: occurs twice in one object`},
		{`{"additionalProperties":{"oneOf":[{"x":1,"X":1}]}}`, "", `additionalProperties.oneOf.X: differs from "x" only in case`},
	} {
		const path = "variables[0].schema.openAPIV3Schema"
		check := func(how string, m *hooksv1alpha1.DiscoverVariablesResponse, err error) {
			switch {
			case tc.wrong != "":
				if err == nil || err.Error() != path+"."+tc.wrong {
					t.Errorf("%s: %s: got %v, want %s", how, tc.in, err, tc.wrong)
				}
			case err != nil:
				t.Errorf("%s: %s: %v", how, tc.in, err)
			default:
				if got := m.GetVariables()[0].GetSchema().GetOpenApiV3Schema(); got != nil && string(got.GetRaw()) != tc.want {
					t.Errorf("%s: %s: got %s, want %s", how, tc.in, got.GetRaw(), tc.want)
				}
			}
		}
		m := &hooksv1alpha1.DiscoverVariablesResponse{}
		check("Decode", m, c.Decode([]byte(`{"variables":[{"schema":{"openAPIV3Schema":`+tc.in+`}}]}`), m))
		m = &hooksv1alpha1.DiscoverVariablesResponse{Variables: []*hooksv1alpha1.ClusterClassVariable{{
			Schema: &hooksv1alpha1.VariableSchema{OpenApiV3Schema: &hooksv1alpha1.JSON{Raw: []byte(tc.in)}},
		}}}
		check("Check", m, c.Check(m))
	}
}

// TestOlderMetadata holds what becomes of the metadata of a variable, as v1.12 of Cluster API reads it.
func TestOlderMetadata(t *testing.T) {
	c := New(catalog.New())
	for in, want := range map[string]string{
		`{"METADATA":{"Labels":{"a":"1","A":"2"}}}`:     `{"metadata":{"labels":{"a":"1","A":"2"}}}`,
		`{"metadata":{"labels":{},"LABELS":{"a":"1"}}}`: `variables[0].metadata.LABELS: differs from "labels" only in case`,
		`{"metadata":{},"Metadata":{}}`:                 `variables[0].Metadata: differs from "metadata" only in case`,
	} {
		m := &hooksv1alpha1.DiscoverVariablesResponse{}
		err := c.Decode([]byte(`{"variables":[`+in+`]}`), m)
		if err != nil && err.Error() != want {
			t.Errorf("%s: %v", in, err)
		}
		if got := m.GetVariables()[0].GetUnknownMembers()["metadata"].GetRaw(); err == nil && `{"metadata":`+string(got)+`}` != want {
			t.Errorf("%s: got %s", in, got)
		}
	}
	for name, want := range map[string]string{
		"metadata": "", "Metadata": `variables[0].unknown_members["Metadata"]: differs from "metadata" only in case`,
	} {
		v := &hooksv1alpha1.ClusterClassVariable{UnknownMembers: map[string]*hooksv1alpha1.JSON{name: {Raw: []byte(`{"Labels":{}}`)}}}
		err := c.Check(&hooksv1alpha1.DiscoverVariablesResponse{Variables: []*hooksv1alpha1.ClusterClassVariable{v}})
		if got := string(v.GetUnknownMembers()["metadata"].GetRaw()); want == "" && (err != nil || got != `{"labels":{}}`) ||
			want != "" && (err == nil || err.Error() != want) {
			t.Errorf("%s: got %v, %s", name, err, got)
		}
	}
}

// TestAnswersInAnyCase writes random answers of Cluster API's types with members in random case. What the codec makes of
// them is, to a decoder without case and to one with it, what the text is to Cluster API.
func TestAnswersInAnyCase(t *testing.T) {
	c := New(catalog.New())
	for _, e := range envelopes(t) {
		if strings.HasSuffix(e.name, "Request") {
			continue
		}
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			seed := seedOf(e.name) + 2
			s := newSource(seed)
			tab := c.tables[reflect.TypeOf(e.message.Zero().Interface()).Elem()]
			changed := 0
			for range rounds() / 2 {
				var b bytes.Buffer
				original := marshal(s.envelope(e))
				writeTable(s, &b, tab, original)
				text := b.Bytes()
				if !bytes.Equal(text, original) {
					changed++
				}
				m := e.message.New().Interface()
				if err := c.Decode(text, m); err != nil {
					failf(t, seed, text, "decode: %v", err)
				}
				sent, err := c.Append(nil, m)
				if err != nil {
					failf(t, seed, text, "append: %v", err)
				}
				want, without, with := reflect.New(e.upstream), reflect.New(e.upstream), reflect.New(e.upstream)
				if err := json.Unmarshal(text, want.Interface()); err != nil {
					failf(t, seed, text, "Cluster API: %v", err)
				}
				if err := json.Unmarshal(sent, without.Interface()); err != nil {
					failf(t, seed, text, "sent on: %v", err)
				}
				if strict, err := kubejson.UnmarshalStrict(sent, with.Interface(), kubejson.DisallowDuplicateFields); err != nil || strict != nil {
					failf(t, seed, text, "sent on, with case: %v, %v", strict, err)
				}
				for how, got := range map[string]reflect.Value{"without case": without, "with case": with} {
					if diff := cmp.Diff(string(marshal(want.Interface())), string(marshal(got.Interface()))); diff != "" {
						failf(t, seed, text, "%s, it is another answer (-extension's +sent on):\n%s", how, diff)
					}
				}
			}
			if changed < rounds()/4 {
				t.Errorf("%d answers had another case", changed)
			}
		})
	}
}

// inCase returns a name as a string of JSON, one in two in another case.
func inCase(s *source, name string) []byte {
	if s.Intn(2) == 0 {
		return marshal(name)
	}
	return []byte(`"` + pick(s, spellings(name)...) + `"`)
}

// writeObject writes an object with other names, and values that value writes.
func writeObject(s *source, b *bytes.Buffer, object map[string]json.RawMessage, known func(name string) bool, value func(name string, raw json.RawMessage)) {
	names := make([]string, 0, len(object))
	for name := range object {
		names = append(names, name)
	}
	slices.Sort(names)
	b.WriteByte('{')
	for i, name := range names {
		if i > 0 {
			b.WriteByte(',')
		}
		if known(name) {
			b.Write(inCase(s, name))
		} else {
			b.Write(marshal(name))
		}
		b.WriteByte(':')
		value(name, object[name])
	}
	b.WriteByte('}')
}

// writeList writes a list of values that value writes, or what is no list as it is.
func writeList(b *bytes.Buffer, raw json.RawMessage, value func(raw json.RawMessage)) {
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) != nil || list == nil {
		b.Write(raw)
		return
	}
	b.WriteByte('[')
	for i, element := range list {
		if i > 0 {
			b.WriteByte(',')
		}
		value(element)
	}
	b.WriteByte(']')
}

func objectOf(raw json.RawMessage) (object map[string]json.RawMessage) {
	_ = json.Unmarshal(raw, &object) // nil if it is none
	return object
}

// writeTable writes a message in another case.
func writeTable(s *source, b *bytes.Buffer, tab *table, raw json.RawMessage) {
	object := objectOf(raw)
	if object == nil {
		b.Write(raw)
		return
	}
	at := func(name string) int { return tab.member([]byte(name), 0) }
	writeObject(s, b, object, func(name string) bool { return at(name) >= 0 }, func(name string, raw json.RawMessage) {
		if at(name) < 0 {
			b.Write(raw)
			return
		}
		switch f := &tab.fields[at(name)]; {
		case f.shape == shapeMessage:
			writeTable(s, b, f.message, raw)
		case f.shape == shapeList:
			writeList(b, raw, func(raw json.RawMessage) { writeTable(s, b, f.message, raw) })
		case f.form != nil:
			writeForm(s, b, f.form, raw)
		default:
			b.Write(raw)
		}
	})
}

// writeForm writes a value with a form in another case.
func writeForm(s *source, b *bytes.Buffer, f *form, raw json.RawMessage) {
	object := objectOf(raw)
	switch {
	case f.list:
		writeList(b, raw, func(raw json.RawMessage) { writeForm(s, b, f.each, raw) })
	case object != nil && f.each != nil:
		writeObject(s, b, object, func(string) bool { return false }, func(_ string, raw json.RawMessage) { writeForm(s, b, f.each, raw) })
	case object != nil && f.members != nil:
		at := func(name string) formMember { return f.members[jsonscan.Fold(name)] }
		writeObject(s, b, object, func(name string) bool { return at(name).name != "" }, func(name string, raw json.RawMessage) {
			if at(name).value == nil {
				panic(fmt.Sprintf("%s is not upstream", name))
			}
			writeForm(s, b, at(name).value, raw)
		})
	default:
		b.Write(raw)
	}
}
