// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"bytes"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/contract/jsonscan"
)

// form says how Cluster API reads a value that travels as text: an object with members that it knows, in any case, a
// map or a list. A value of no form is read as it is.
type form struct {
	members map[string]formMember // of an object, by jsonscan.Fold of their names
	each    *form                 // of a map or a list
	list    bool
}

// formMember is a member of an object.
type formMember struct {
	name  string
	value *form
}

func (f *form) add(value *form, names ...string) *form {
	if f.members == nil {
		f.members = map[string]formMember{}
	}
	for _, name := range names {
		f.members[jsonscan.Fold(name)] = formMember{name, value}
	}
	return f
}

// member returns the member that encoding/json takes for the one of that name.
func (f *form) member(name string) (m formMember, ok bool) {
	if f == nil || f.members == nil {
		return m, false
	}
	m, ok = f.members[jsonscan.Fold(name)]
	return m, ok
}

// metadataForm is the form of the metadata of variables and schemas, and texts that of their labels.
var (
	texts        = &form{each: &form{}}
	metadataForm = new(form).add(texts, "labels", "annotations")
)

// olderOf returns the unknown members of a message that an older Cluster API knows, or nil: v1.12 reads the metadata of
// a variable under its name in v1beta1.
func olderOf(md protoreflect.MessageDescriptor) *form {
	if md.Name() != "ClusterClassVariable" {
		return nil
	}
	return new(form).add(metadataForm, "metadata")
}

// schemaForm is the form of clusterv1.JSONSchemaProps; a test compares the two. Without it, a schema could have a
// member `type` for one reader and `Type` for Cluster API.
var schemaForm = func() *form {
	schema, rule, plain := &form{}, &form{}, &form{}
	rule.add(plain, "rule", "message", "messageExpression", "reason", "fieldPath")
	schema.add(plain, "description", "example", "type", "maxProperties", "minProperties", "required", "maxItems",
		"minItems", "uniqueItems", "format", "maxLength", "minLength", "pattern", "maximum", "exclusiveMaximum", "minimum",
		"exclusiveMinimum", "x-kubernetes-preserve-unknown-fields", "enum", "default", "x-kubernetes-int-or-string")
	schema.add(schema, "additionalProperties", "items", "not")
	schema.add(&form{each: schema}, "properties")
	schema.add(&form{each: schema, list: true}, "allOf", "oneOf", "anyOf")
	schema.add(&form{each: rule, list: true}, "x-kubernetes-validations")
	schema.add(metadataForm, "x-metadata")
	return schema
}()

// formOf returns the form of the value of a field, or nil.
func formOf(fd protoreflect.FieldDescriptor) *form {
	switch fd.ContainingMessage().Name() {
	case "VariableSchema":
		return schemaForm
	case "DiscoverInfrastructureResponse":
		if strings.HasSuffix(fd.JSONName(), "Parameters") {
			return schemaForm
		}
	}
	return nil
}

// formReader reads a value that has a form.
type formReader struct {
	jsonscan.Scanner
	meter meter
	edits []edit
}

// edit is the name of a member, from its first quote to its last, in place of what is there.
type edit struct {
	from, to int
	name     string
}

// editCost is what an edit takes in a list that grows, in bytes.
const editCost = 80

// read reads the value that begins at i, with depth levels around it, and returns it with the names of members that the
// form knows, and the index after it. It aliases the text if all names are as they should be.
func (r *formReader) read(f *form, i, depth int) (raw []byte, end int, err error) {
	if end, err = r.value(f, i, depth); err != nil {
		return nil, end, err
	}
	if len(r.edits) == 0 {
		return r.Text[i:end:end], end, nil
	}
	if err := r.meter.text(end - i); err != nil {
		return nil, end, err
	}
	raw = make([]byte, 0, end-i)
	for _, e := range r.edits {
		raw = jsonscan.AppendString(append(raw, r.Text[i:e.from]...), e.name)
		i = e.to
	}
	return append(raw, r.Text[i:end]...), end, nil
}

// value reads one value, and notes the names in it that have to change.
func (r *formReader) value(f *form, i, depth int) (int, error) {
	switch c := r.At(i); {
	case depth >= limits.JSONDepth:
	case c == '{' && (f.members != nil || f.each != nil && !f.list):
		return r.object(f, i, depth+1)
	case c == '[' && f.list:
		for first := true; ; first = false {
			next, more, err := r.Next(i, first, ']')
			if err != nil || !more {
				return next, err
			}
			if i, err = r.value(f.each, next, depth+1); err != nil {
				return i, err
			}
		}
	}
	return r.Value(i, depth) // of another form, which Cluster API refuses, too
}

// object reads an object or a map, which may have no two members that are one.
func (r *formReader) object(f *form, i, depth int) (int, error) {
	var all names
	for first := true; ; first = false {
		start, more, err := r.Next(i, first, '}')
		if err != nil || !more {
			return start, err
		}
		end, value, err := r.Name(start)
		if err != nil {
			return value, err
		}
		name := r.Text[start+1 : end-1]
		if bytes.IndexByte(name, '\\') >= 0 {
			name, _ = jsonscan.Unescape(name)
		}
		if err := r.meter.text(entryCost + editCost + 2*len(name)); err != nil {
			return value, err
		}
		of := f.each
		if f.members == nil {
			err = all.addKey(string(name), start)
		} else if err = all.add(string(name), printable(string(name)), start); err == nil {
			of = r.respelt(f, string(name), start, end)
		}
		if err != nil {
			return value, err
		}
		if i, err = r.value(of, value, depth); err != nil {
			return i, in(err, printable(string(name)))
		}
	}
}

// respelt returns the form of the member whose name is from start to end, and notes the name that it should have.
func (r *formReader) respelt(f *form, name string, start, end int) *form {
	m, ok := f.member(name)
	if !ok {
		return &form{}
	}
	if m.name != name {
		r.edits = append(r.edits, edit{start, end, m.name})
	}
	return m.value
}
