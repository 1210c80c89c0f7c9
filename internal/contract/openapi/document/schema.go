// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package document

import (
	"slices"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/hookgate/hookgate/catalog"
	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/internal/contract/codec"
)

// Component returns the name of the component of a message or enum: its full name, without the name of this project.
func Component(d protoreflect.Descriptor) string {
	return strings.TrimPrefix(string(d.FullName()), "hookgate.")
}

// Schemas returns the schemas of the group's requests and answers, and of everything in them, by the name of the
// component. They describe the JSON of package codec.
func (g *Group) Schemas() map[string]Schema {
	b := builder{comments: g.Comments, schemas: map[string]Schema{}}
	for _, h := range g.Hooks {
		b.message(h.Request.Descriptor())
		b.message(h.Response.Descriptor())
	}
	return b.schemas
}

var (
	rawName  = (*hooksv1alpha1.RawExtension)(nil).ProtoReflect().Descriptor().FullName()
	jsonName = (*hooksv1alpha1.JSON)(nil).ProtoReflect().Descriptor().FullName()
)

// openObject marks what may have any content, as in schemas of Kubernetes.
const openObject = "x-kubernetes-preserve-unknown-fields"

type builder struct {
	comments map[protoreflect.FullName]string
	schemas  map[string]Schema
}

// message adds the component of a message and of everything in it, and returns the reference to it.
func (b *builder) message(d protoreflect.MessageDescriptor) Schema {
	name := Component(d)
	if _, known := b.schemas[name]; known {
		return ref("schemas", name)
	}
	members := Schema{}
	made := b.describe(Schema{"type": "object", "properties": members}, d)
	b.schemas[name] = made // before its members, one of which may be of this type
	var required []string
	for i := range d.Fields().Len() {
		fd := d.Fields().Get(i)
		if !catalog.InJSON(fd) {
			continue
		}
		members[fd.JSONName()] = b.describe(b.member(fd), fd)
		if codec.AlwaysWritten(fd) {
			required = append(required, fd.JSONName())
		}
	}
	if len(required) > 0 {
		slices.Sort(required)
		made["required"] = required
	}
	return ref("schemas", name)
}

// describe adds the comment of d to a schema. Members beside a $ref are ignored, so that a reference moves into one.
func (b *builder) describe(s Schema, d protoreflect.Descriptor) Schema {
	about := b.comments[d.FullName()]
	if about == "" {
		return s
	}
	if _, ok := s["$ref"]; ok {
		s = Schema{"allOf": []any{s}}
	}
	s["description"] = about
	return s
}

// member returns the schema of a field without its comment.
func (b *builder) member(fd protoreflect.FieldDescriptor) Schema {
	if fd.IsMap() {
		return Schema{"type": "object", "additionalProperties": Schema{"type": "string"}}
	}
	one := b.value(fd)
	if fd.IsList() {
		return Schema{"type": "array", "items": one}
	}
	return one
}

// value returns the schema of one value of a field. The catalog refuses all other kinds.
func (b *builder) value(fd protoreflect.FieldDescriptor) Schema {
	switch fd.Kind() {
	case protoreflect.Int32Kind:
		return Schema{"type": "integer", "format": "int32"}
	case protoreflect.BoolKind:
		return Schema{"type": "boolean"}
	case protoreflect.BytesKind:
		return Schema{"type": "string", "format": "byte"}
	case protoreflect.EnumKind:
		return b.enum(fd.Enum())
	case protoreflect.MessageKind:
		switch fd.Message().FullName() {
		case rawName:
			return Schema{"type": "object", openObject: true}
		case jsonName:
			return Schema{openObject: true, "nullable": true} // any JSON, so null too
		}
		return b.message(fd.Message())
	default:
		return Schema{"type": "string"}
	}
}

// enum adds the component of an enum and returns the reference to it.
func (b *builder) enum(d protoreflect.EnumDescriptor) Schema {
	name := Component(d)
	made := Schema{"type": "string"}
	if texts := codec.EnumTexts(d); len(texts) > 1 {
		made["enum"] = texts[1:]
	}
	if about := DescribeEnum(d, b.comments); about != "" {
		made["description"] = about
	}
	b.schemas[name] = made
	return ref("schemas", name)
}

// DescribeEnum returns the comment of an enum, with a list of those of its values.
func DescribeEnum(d protoreflect.EnumDescriptor, comments map[protoreflect.FullName]string) string {
	var about strings.Builder
	about.WriteString(comments[d.FullName()])
	for i := range d.Values().Len() {
		if v := d.Values().Get(i); v.Number() != 0 && comments[v.FullName()] != "" {
			about.WriteString("\n- " + comments[v.FullName()])
		}
	}
	return about.String()
}
