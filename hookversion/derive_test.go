// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package hookversion

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"
)

// message returns a message of a type with these fields, in the text form of descriptors. Types that fields name are
// Color, which is red and green; Light, which is not; and Part, which has a string name.
func message(t *testing.T, name, fields string) *dynamicpb.Message {
	t.Helper()
	text := `name: "` + name + `.proto" package: "` + name + `" syntax: "proto3"
		enum_type { name: "Color" value { name: "NONE" number: 0 } value { name: "RED" number: 1 } value { name: "GREEN" number: 2 } }
		enum_type { name: "Light" value { name: "NONE_" number: 0 } value { name: "RED_" number: 1 } }
		enum_type { name: "Swapped" value { name: "NO" number: 0 } value { name: "GREEN1" number: 1 } value { name: "RED1" number: 2 } }
		message_type { name: "Part" field { name: "name" number: 1 type: TYPE_STRING label: LABEL_OPTIONAL } }
		message_type { name: "Entry" ` + fields + ` }`
	file := &descriptorpb.FileDescriptorProto{}
	if err := prototext.Unmarshal([]byte(text), file); err != nil {
		t.Fatal(err)
	}
	d, err := protodesc.NewFile(file, nil)
	if err != nil {
		t.Fatal(err)
	}
	return dynamicpb.NewMessage(d.Messages().ByName("Entry"))
}

func field(name, kind string) string {
	return `field { name: "` + name + `" number: 1 label: LABEL_OPTIONAL ` + kind + ` }`
}

// Members are the same only if every property of their types is.
func TestDeriveComparesTypes(t *testing.T) {
	const (
		text     = `type: TYPE_STRING`
		number   = `type: TYPE_INT32`
		flag     = `type: TYPE_BOOL`
		optional = `type: TYPE_STRING proto3_optional: true oneof_index: 0`
		oneof    = ` oneof_decl { name: "_a" }`
		textMap  = ` nested_type { name: "AEntry" options { map_entry: true } field { name: "key" number: 1 type: TYPE_STRING label: LABEL_OPTIONAL } field { name: "value" number: 2 label: LABEL_OPTIONAL type: TYPE_STRING } }`
	)
	list := func(kind string) string {
		return strings.Replace(field("a", kind), "LABEL_OPTIONAL", "LABEL_REPEATED", 1)
	}
	mapOf := func(name, key, value string) string {
		entries := strings.Replace(
			strings.Replace(textMap, "TYPE_STRING", key, 1), "type: TYPE_STRING }", value+" }", 1,
		)
		return list(`type: TYPE_MESSAGE type_name: ".`+name+`.Entry.AEntry"`) + entries
	}
	const different, entries = "a and a have different types", "a and a are maps with different entries: write the conversion by hand"
	for name, tc := range map[string]struct{ spoke, hub, want string }{
		"Same":     {field("a", text), field("a", text), ""},
		"Kind":     {field("a", text), field("a", number), different},
		"List":     {field("a", text), list(text), different},
		"Lists":    {list(text), list(text), ""},
		"Presence": {field("a", text), field("a", optional) + oneof, different},
		"Optional": {field("a", optional) + oneof, field("a", optional) + oneof, ""},
		"Enum": {
			field("a", `type: TYPE_ENUM type_name: ".s.Color"`), field("a", `type: TYPE_ENUM type_name: ".h.Color"`),
			"",
		},
		"EnumFewer": {
			field("a", `type: TYPE_ENUM type_name: ".s.Color"`), field("a", `type: TYPE_ENUM type_name: ".h.Light"`),
			"a and a have different values",
		},
		"EnumNames": {
			field("a", `type: TYPE_ENUM type_name: ".s.Color"`), field("a", `type: TYPE_ENUM type_name: ".h.Swapped"`),
			"a and a have different values",
		},
		"Map":        {mapOf("s", "TYPE_STRING", text), mapOf("h", "TYPE_STRING", text), ""},
		"MapAndList": {mapOf("s", "TYPE_STRING", text), list(`type: TYPE_MESSAGE type_name: ".h.Part"`), different},
		"MapKeys":    {mapOf("s", "TYPE_STRING", text), mapOf("h", "TYPE_INT32", text), entries},
		"MapValues":  {mapOf("s", "TYPE_STRING", text), mapOf("h", "TYPE_STRING", flag), entries},
		"MapEnums": {
			mapOf("s", "TYPE_STRING", `type: TYPE_ENUM type_name: ".s.Color"`),
			mapOf("h", "TYPE_STRING", `type: TYPE_ENUM type_name: ".h.Color"`), entries,
		},
		"MapObjects": {
			mapOf("s", "TYPE_STRING", `type: TYPE_MESSAGE type_name: ".s.Part"`),
			mapOf("h", "TYPE_STRING", `type: TYPE_MESSAGE type_name: ".h.Part"`), entries,
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := Derive(message(t, "s", tc.spoke), message(t, "h", tc.hub), Differences{})
			switch {
			case tc.want == "" && c.err != nil:
				t.Errorf("got %v", c.err)
			case tc.want != "" && (c.err == nil || c.err.Error() != "derive s.Entry from h.Entry: "+tc.want):
				t.Errorf("got %v, want %s", c.err, tc.want)
			case tc.want != "" && (c.Up != nil || c.Down != nil):
				t.Error("a conversion that is wrong converts")
			}
		})
	}
}

// What a new member has always meant is a value of its type.
func TestDeriveComparesDefaults(t *testing.T) {
	for name, tc := range map[string]struct {
		kind  string
		value any
		ok    bool
	}{
		"String": {"type: TYPE_STRING", "x", true}, "Int32": {"type: TYPE_INT32", int32(1), true}, "Bool": {
			"type: TYPE_BOOL", true, true,
		},
		"Zero": {"type: TYPE_INT64", nil, true}, "Int": {"type: TYPE_INT32", 1, false}, "Int64": {
			"type: TYPE_INT64", int64(1), false,
		},
		"StringForBool": {"type: TYPE_BOOL", "true", false}, "BoolForString": {"type: TYPE_STRING", true, false},
		"Int32ForBool": {"type: TYPE_BOOL", int32(1), false},
	} {
		spoke, hub := message(t, "s", ""), message(t, "h", field("a", tc.kind))
		c := Derive(spoke, hub, Differences{Added: map[string]any{"a": tc.value}})
		if (c.err == nil) != tc.ok {
			t.Errorf("%s: got %v", name, c.err)
			continue
		}
		if !tc.ok {
			continue
		}
		up, _, err := c.Up(spoke)
		got := up.ProtoReflect()
		has := got.Has(hub.Descriptor().Fields().ByName("a"))
		if err != nil || has != (tc.value != nil) || has && got.Get(hub.Descriptor().Fields().ByName("a")).Interface() != tc.value {
			t.Errorf("%s: up gives %v, %v", name, up, err)
		}
	}
	c := Derive(
		message(t, "s", ""),
		message(t, "h", strings.Replace(field("a", "type: TYPE_STRING"), "OPTIONAL", "REPEATED", 1)),
		Differences{Added: map[string]any{"a": "x"}},
	)
	if want := "derive s.Entry from h.Entry: a: its type is not string"; c.err == nil || c.err.Error() != want {
		t.Errorf("a list: got %v, want %s", c.err, want)
	}
}

// A value that a member has always meant is no loss, any other is, in both directions and for both versions' members.
func TestDerivedLosses(t *testing.T) {
	spokeFields := `field { name: "old" number: 1 type: TYPE_STRING label: LABEL_OPTIONAL } field { name: "same" number: 2 type: TYPE_STRING label: LABEL_OPTIONAL }`
	hubFields := `field { name: "num" number: 1 type: TYPE_INT32 label: LABEL_OPTIONAL } field { name: "same" number: 2 type: TYPE_STRING label: LABEL_OPTIONAL }
		field { name: "flag" number: 3 type: TYPE_BOOL label: LABEL_OPTIONAL }`
	spoke, hub := message(t, "s", spokeFields), message(t, "h", hubFields)
	c := Derive(spoke, hub, Differences{Gone: []string{"old"}, Added: map[string]any{"num": int32(7), "flag": nil}})
	if c.err != nil {
		t.Fatal(c.err)
	}
	if !slices.Equal(c.LostUp, []string{"old"}) || !slices.Equal(c.LostDown, []string{"flag", "num"}) {
		t.Errorf("declared: %v up, %v down", c.LostUp, c.LostDown)
	}
	for _, tc := range []struct {
		convert  Convert
		of       proto.Message
		in, want string
		lost     []string
	}{
		{c.Up, spoke, `same: "x"`, `num: 7 same: "x"`, nil},
		{c.Up, spoke, `same: "x" old: "y"`, `num: 7 same: "x"`, []string{"old"}},
		{c.Down, hub, `same: "x" num: 7`, `same: "x"`, nil},
		{c.Down, hub, `same: "x"`, `same: "x"`, nil},
		{c.Down, hub, `same: "x" num: 8`, `same: "x"`, []string{"num"}},
		{c.Down, hub, `num: 6 flag: true`, ``, []string{"flag", "num"}},
	} {
		in := tc.of.ProtoReflect().New().Interface()
		if err := prototext.Unmarshal([]byte(tc.in), in); err != nil {
			t.Fatal(err)
		}
		before := proto.Clone(in)
		got, lost, err := tc.convert(in)
		if err != nil {
			t.Fatal(err)
		}
		want := got.ProtoReflect().New().Interface()
		if err := prototext.Unmarshal([]byte(tc.want), want); err != nil {
			t.Fatal(err)
		}
		if !proto.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", tc.in, got, want)
		}
		if diff := cmp.Diff(tc.lost, lost); diff != "" {
			t.Errorf("%s: lost: -want +got:\n%s", tc.in, diff)
		}
		if !proto.Equal(in, before) {
			t.Errorf("%s: it was changed to %v", tc.in, in)
		}
	}
	if _, _, err := c.Up(hub); err == nil || err.Error() != "h.Entry is not a s.Entry" {
		t.Errorf("up from the hub: %v", err)
	}
	if _, _, err := c.Down(spoke); err == nil || err.Error() != "s.Entry is not a h.Entry" {
		t.Errorf("down from the spoke: %v", err)
	}
}
