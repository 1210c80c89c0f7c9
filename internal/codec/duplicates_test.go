// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/hookgate/hookgate/catalog"
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

// TestMembersInAnotherCase writes each member of every object in another case: in a request, that is refused, because
// encoding/json takes it for the same member.
func TestMembersInAnotherCase(t *testing.T) {
	c := New(catalog.New())
	for _, e := range envelopes(t) {
		tab := c.tables[reflect.TypeOf(e.message.Zero().Interface()).Elem()]
		for _, l := range levels(level{table: tab}) {
			for i := range l.table.fields {
				name := l.table.fields[i].name
				others := []string{strings.ToUpper(name[:1]) + name[1:], strings.ToUpper(name)}
				if strings.Contains(name, "s") {
					others = append(others, strings.Replace(name, "s", "ſ", 1))
				}
				for _, other := range others {
					alone := l.before + `{"` + other + `":null}` + l.after
					both := l.before + `{"` + other + `":null,"` + name + `":null}` + l.after
					check := func(text, path, want string) {
						err := c.Decode([]byte(text), e.message.New().Interface())
						var got *Error
						switch {
						case want == "" && err == nil:
						case !errors.As(err, &got) || got.Message != want || got.Path != l.path+path:
							t.Errorf("%s: got %v, want %s%s: %s", text, err, l.path, path, want)
						}
					}
					want := ""
					if tab.request {
						want = fmt.Sprintf("differs from %q only in case", name)
					}
					check(alone, printable(other), want)
					check(both, printable(other), want)
				}
			}
		}
	}
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
