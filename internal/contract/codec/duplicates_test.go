// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/hookgate/hookgate/catalog"
	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/internal/contract/jsonscan"
)

// level is one object of an envelope, and the text around it.
type level struct {
	table         *table
	path          string
	before, after string
}

// levels returns the object of a table and all below it.
func levels(at level) []level {
	all := []level{at}
	for i := range at.table.fields {
		f := &at.table.fields[i]
		switch f.shape {
		case shapeMessage:
			all = append(all,
				levels(level{f.message, at.path + f.name + ".", at.before + `{` + f.prefix, `}` + at.after})...)
		case shapeList:
			all = append(all, levels(level{f.message, at.path + f.name + "[0].", at.before + `{` + f.prefix + `[`,
				`]}` + at.after})...)
		}
	}
	return all
}

// TestDuplicateMembersAreRefused writes each member of every object twice, and also unknown members.
func TestDuplicateMembersAreRefused(t *testing.T) {
	c := New(catalog.New())
	for _, e := range envelopes(t) {
		tab := c.tables[reflect.TypeOf(e.message.Zero().Interface()).Elem()]
		for _, l := range levels(level{table: tab}) {
			names := []string{"new", "a name", "kinds"}
			for i := range l.table.fields {
				names = append(names, l.table.fields[i].name)
			}
			for _, name := range names {
				first := fmt.Sprintf(`"\u%04x%s":null`, name[0], name[1:])
				text := l.before + `{"other":1,` + first + `,"third":[],"` + name + `":null}` + l.after
				err := c.Decode([]byte(text), e.message.New().Interface())
				var got *Error
				if !errors.As(err, &got) || got.Message != "occurs twice in one object" ||
					got.Path != l.path+printable(name) {
					t.Errorf("%s: got %v, want %s%s as a duplicate", text, err, l.path, name)
				}
				text = l.before + `{"other":1,` + first + `,"third":[],"` + name + `s":null}` + l.after
				if err := c.Decode([]byte(text), e.message.New().Interface()); err != nil {
					t.Errorf("%s: %v", text, err)
				}
			}
		}
	}
}

// spellings returns a name in other cases: those that encoding/json takes for the same member.
func spellings(name string) []string {
	all := []string{strings.ToUpper(name[:1]) + name[1:], strings.ToUpper(name)}
	for letter, other := range map[string]string{"s": "ſ", "k": "\u212a"} {
		if strings.Contains(name, letter) {
			all = append(all, strings.Replace(name, letter, other, 1))
		}
	}
	escaped := fmt.Sprintf(`\u%04x%s`, strings.ToUpper(name[:1])[0], name[1:])
	if strings.ToLower(name) != name {
		all = append(all, strings.ToLower(name))
	}
	return append(all, escaped)
}

// ownTables calls each with the tables of all requests and answers of every group.
func ownTables(t *testing.T, each func(c *Codec, tab *table, m protoreflect.MessageType)) {
	t.Helper()
	hooks, err := catalog.With(catalog.Own()...)
	if err != nil {
		t.Fatal(err)
	}
	c := New(hooks)
	for _, h := range hooks.Hooks() {
		for _, m := range []protoreflect.MessageType{h.Request, h.Response} {
			each(c, c.tables[reflect.TypeOf(m.Zero().Interface()).Elem()], m)
		}
	}
}

// TestMembersInAnotherCase writes each member of every object in another case. Encoding/json takes it for the same
// member: in an answer it is that member, and in a request it is refused.
func TestMembersInAnotherCase(t *testing.T) {
	ownTables(t, func(c *Codec, tab *table, m protoreflect.MessageType) {
		for _, l := range levels(level{table: tab}) {
			for i := range l.table.fields {
				f := &l.table.fields[i]
				value, wrong := "null", "0"
				switch f.shape {
				case shapeRaw, shapeJSON:
					wrong = "" // there is none
				case shapeInt32, shapeOptionalInt:
					wrong = "true"
				}
				for _, other := range spellings(f.name) {
					plain, _ := jsonscan.Unescape([]byte(other))
					check := func(members, path, want string) {
						text := l.before + `{` + members + `}` + l.after
						err := c.Decode([]byte(text), m.New().Interface())
						var got *Error
						switch {
						case want == "" && err == nil:
						case !errors.As(err, &got) || !strings.HasPrefix(got.Message, want) || got.Path != l.path+path:
							t.Errorf("%s: %s: got %v, want %s%s: %s", tab.name, text, err, l.path, path, want)
						}
					}
					alone, both := `"`+other+`":`+value, `"`+other+`":`+value+`,"`+f.name+`":`+value
					turned := `"` + f.name + `":` + value + `,"` + other + `":` + value
					if tab.request {
						path, want := printable(string(plain)), fmt.Sprintf("differs from %q only in case", f.name)
						check(alone, path, want)
						check(both, path, want)
						check(turned, path, want)
						continue
					}
					check(alone, "", "")
					check(both, f.name, "occurs twice in one object, in upper and lower case")
					check(turned, f.name, "occurs twice in one object, in upper and lower case")
					if wrong != "" {
						check(`"`+other+`":`+wrong, f.name, "want ")
					}
				}
			}
		}
	})
}

// TestUnknownMembersInAnotherCase has unknown members at every level that a decoder without case takes for known ones,
// or for each other: in the text, and in a message from a gRPC peer.
func TestUnknownMembersInAnotherCase(t *testing.T) {
	free := &hooksv1alpha1.JSON{Raw: []byte("1")}
	ownTables(t, func(c *Codec, tab *table, m protoreflect.MessageType) {
		for _, l := range levels(level{table: tab}) {
			for _, tc := range []struct{ first, second, want string }{
				{"kelvin", "\u212aelvin", `differs from "kelvin" only in case`},
				{"new one", "new One", ` only in case`},
				{"ßharp", "ẞharp", ` only in case`},
				{"kelvin", "celsius", ""},
			} {
				text := l.before + `{"` + tc.first + `":1,"` + tc.second + `":1}` + l.after
				if err := c.Decode([]byte(text), m.New().Interface()); !says(err, l.path+printable(tc.second)+": ", tc.want) {
					t.Errorf("%s: %s: got %v, want %q", tab.name, text, err, tc.want)
				}
				in := messageAt(c, l, m)
				*l.table.unknownOf(in.at) = map[string]*hooksv1alpha1.JSON{tc.first: free, tc.second: free}
				if err := c.Check(in.whole); !says(err, l.path+"unknown_members[", tc.want) {
					t.Errorf("%s: Check of %v: got %v, want %q", tab.name, in.whole, err, tc.want)
				}
			}
			for i := range l.table.fields {
				name := l.table.fields[i].name
				for _, other := range spellings(name) {
					plain, _ := jsonscan.Unescape([]byte(other))
					in := messageAt(c, l, m)
					*l.table.unknownOf(in.at) = map[string]*hooksv1alpha1.JSON{string(plain): free}
					want := fmt.Sprintf("differs from %q only in case", name)
					if err := c.Check(in.whole); !says(err, l.path+"unknown_members[", want) {
						t.Errorf("%s: Check of %v: got %v, want %q", tab.name, in.whole, err, want)
					}
					if _, err := c.Append(nil, in.whole); !says(err, l.path+"unknown_members[", want) {
						t.Errorf("%s: Append of %v: got %v, want %q", tab.name, in.whole, err, want)
					}
				}
			}
		}
	})
}

// says reports whether an error is none, if that is wanted, or one at a path that contains a text.
func says(err error, path, text string) bool {
	if text == "" {
		return err == nil
	}
	return err != nil && strings.HasPrefix(err.Error(), path) && strings.Contains(err.Error(), text)
}

// messageIn is a message, and one within it.
type messageIn struct {
	whole proto.Message
	at    message
}

// messageAt returns a message with one at the level of l.
func messageAt(c *Codec, l level, m protoreflect.MessageType) messageIn {
	whole := m.New().Interface()
	if err := c.Decode([]byte(l.before+`{}`+l.after), whole); err != nil {
		panic(err)
	}
	t, at, _ := c.table(whole)
	for path := l.path; path != ""; {
		var name string
		name, path, _ = strings.Cut(path, ".")
		f := &t.fields[t.member([]byte(strings.TrimSuffix(name, "[0]")), 0)]
		if t = f.message; f.shape == shapeMessage {
			at = at.child(f)
			continue
		}
		for _, at = range at.children(f) {
			break
		}
	}
	return messageIn{whole, at}
}

// TestErrorsNameTheLevel puts a value of the wrong type into each member of every object.
func TestErrorsNameTheLevel(t *testing.T) {
	c := New(catalog.New())
	for _, e := range envelopes(t) {
		tab := c.tables[reflect.TypeOf(e.message.Zero().Interface()).Elem()]
		for _, l := range levels(level{table: tab}) {
			for i := range l.table.fields {
				f := &l.table.fields[i]
				value, want, inside := "0", l.path+f.name, 0
				switch f.shape {
				case shapeRaw, shapeJSON:
					continue // of any type
				case shapeInt32, shapeOptionalInt:
					value = "true"
				case shapeStringList:
					value, want, inside = "[0]", want+"[0]", 1
				}
				text := l.before + `{` + f.prefix + value + `}` + l.after
				offset := int64(len(l.before) + len("{") + len(f.prefix) + inside)
				err := c.Decode([]byte(text), e.message.New().Interface())
				var got *Error
				if !errors.As(err, &got) || got.Path != want || got.Offset != offset {
					t.Errorf("%s: got %+v, want an error at %s, byte %d", text, got, want, offset)
				}
			}
		}
	}
}
