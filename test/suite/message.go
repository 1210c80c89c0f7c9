// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"

	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
)

// This file converts between JSON and messages directly from the contract. It is slow and simple on purpose: the
// gateway's codec is checked against it.

// toMessage fills m from JSON. Members without a field become unknown members; apiVersion and kind at the top, which
// repeat the name of the message, are left out.
func toMessage(t testing.TB, body []byte, m protoreflect.Message, top bool) {
	t.Helper()
	var parts map[string]json.RawMessage
	if err := json.Unmarshal(body, &parts); err != nil {
		t.Fatalf("%s: %v", m.Descriptor().Name(), err)
	}
	for name, value := range parts {
		if top && (name == "apiVersion" || name == "kind") || string(value) == "null" {
			continue
		}
		field := m.Descriptor().Fields().ByJSONName(name)
		switch {
		case field == nil:
			unknown := m.Descriptor().Fields().ByName("unknown_members")
			m.Mutable(unknown).Map().Set(protoreflect.ValueOfString(name).MapKey(),
				protoreflect.ValueOfMessage((&hooksv1alpha1.JSON{Raw: value}).ProtoReflect()))
		case field.IsMap():
			var pairs map[string]string
			unmarshal(t, value, &pairs)
			for k, v := range pairs {
				m.Mutable(field).Map().Set(protoreflect.ValueOfString(k).MapKey(), protoreflect.ValueOfString(v))
			}
		case field.IsList():
			var items []json.RawMessage
			unmarshal(t, value, &items)
			list := m.Mutable(field).List()
			for _, item := range items {
				element := list.NewElement()
				toValue(t, item, element.Message())
				list.Append(element)
			}
		case field.Kind() == protoreflect.MessageKind:
			toValue(t, value, m.Mutable(field).Message())
		default:
			m.Set(field, scalar(t, value, field))
		}
	}
}

// toValue fills a nested message: a raw one with the unchanged text, any other by its members.
func toValue(t testing.TB, value json.RawMessage, m protoreflect.Message) {
	t.Helper()
	if isRaw(m.Descriptor()) {
		m.Set(m.Descriptor().Fields().ByName("raw"), protoreflect.ValueOfBytes(bytes.Clone(value)))
		return
	}
	toMessage(t, value, m, false)
}

func scalar(t testing.TB, value json.RawMessage, field protoreflect.FieldDescriptor) protoreflect.Value {
	t.Helper()
	switch field.Kind() {
	case protoreflect.StringKind:
		var s string
		unmarshal(t, value, &s)
		return protoreflect.ValueOfString(s)
	case protoreflect.Int32Kind:
		var i int32
		unmarshal(t, value, &i)
		return protoreflect.ValueOfInt32(i)
	case protoreflect.BoolKind:
		var b bool
		unmarshal(t, value, &b)
		return protoreflect.ValueOfBool(b)
	case protoreflect.BytesKind:
		var b []byte
		unmarshal(t, value, &b)
		return protoreflect.ValueOfBytes(b)
	}
	t.Fatalf("field %s has kind %s, which no request has", field.FullName(), field.Kind())
	return protoreflect.Value{}
}

func unmarshal(t testing.TB, value json.RawMessage, out any) {
	t.Helper()
	if err := json.Unmarshal(value, out); err != nil {
		t.Fatalf("decode %.200s: %v", value, err)
	}
}

// fromMessage returns the members of an answer's JSON.
func fromMessage(t testing.TB, m protoreflect.Message) members {
	t.Helper()
	out := members{}
	m.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		switch {
		case field.Name() == "unknown_members":
			value.Map().Range(func(k protoreflect.MapKey, v protoreflect.Value) bool {
				out[k.String()] = plain(t, v.Message())
				return true
			})
		case field.IsMap():
			pairs := map[string]any{}
			value.Map().Range(func(k protoreflect.MapKey, v protoreflect.Value) bool {
				pairs[k.String()] = v.String()
				return true
			})
			out[field.JSONName()] = pairs
		case field.IsList():
			var items []any
			for i := range value.List().Len() {
				items = append(items, plain(t, value.List().Get(i).Message()))
			}
			out[field.JSONName()] = items
		case field.Kind() == protoreflect.MessageKind:
			out[field.JSONName()] = plain(t, value.Message())
		case field.Kind() == protoreflect.EnumKind:
			out[field.JSONName()] = enumText(field.Enum().Values().ByNumber(value.Enum()).Name())
		case field.Kind() == protoreflect.BytesKind:
			out[field.JSONName()] = base64.StdEncoding.EncodeToString(value.Bytes())
		case field.Kind() == protoreflect.Int32Kind:
			out[field.JSONName()] = json.Number(strconv.FormatInt(value.Int(), 10))
		default:
			out[field.JSONName()] = value.Interface()
		}
		return true
	})
	return out
}

// plain returns a nested message as decoded JSON.
func plain(t testing.TB, m protoreflect.Message) any {
	t.Helper()
	if !isRaw(m.Descriptor()) {
		return map[string]any(fromMessage(t, m))
	}
	raw := m.Get(m.Descriptor().Fields().ByName("raw")).Bytes()
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		t.Fatalf("decode raw %.200s: %v", raw, err)
	}
	return value
}

func isRaw(d protoreflect.MessageDescriptor) bool {
	return d.Name() == "RawExtension" || d.Name() == "JSON"
}

// enumText returns Cluster API's text for an enum value.
func enumText(name protoreflect.Name) string {
	switch name {
	case "PATCH_TYPE_JSON_PATCH":
		return "JSONPatch"
	case "PATCH_TYPE_JSON_MERGE_PATCH":
		return "JSONMergePatch"
	}
	_, last, _ := strings.Cut(strings.TrimPrefix(string(name), "RESPONSE_"), "_") // STATUS_SUCCESS
	return last[:1] + strings.ToLower(last[1:])
}
