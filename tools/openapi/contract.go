// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/bufbuild/protocompile"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/internal/contract/codec"
	"github.com/hookgate/hookgate/internal/contract/openapi/document"
)

// contract holds the protos with their comments, which the descriptors in generated code lack.
type contract struct {
	files    []protoreflect.FileDescriptor
	words    map[string]string                // names in JSON by the names of fields and enum values
	comments map[protoreflect.FullName]string // with names as in JSON
}

// readContract compiles the protos of all groups in a directory.
func readContract(dir string) (*contract, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "hookgate", "*", "*", "*.proto"))
	if err != nil {
		return nil, err
	}
	for i, path := range paths {
		if paths[i], err = filepath.Rel(dir, path); err != nil {
			return nil, err
		}
	}
	slices.Sort(paths)
	compiler := protocompile.Compiler{
		Resolver:       protocompile.WithStandardImports(&protocompile.SourceResolver{ImportPaths: []string{dir}}),
		SourceInfoMode: protocompile.SourceInfoStandard,
	}
	files, err := compiler.Compile(context.Background(), paths...)
	if err != nil {
		return nil, err
	}
	c := &contract{words: map[string]string{}, comments: map[protoreflect.FullName]string{}}
	for _, f := range files {
		c.files = append(c.files, f)
		c.readWords(f)
	}
	for _, f := range c.files {
		c.readComments(f)
	}
	return c, nil
}

// readWords adds the names of a file that differ in JSON.
func (c *contract) readWords(f protoreflect.FileDescriptor) {
	for i := range f.Messages().Len() {
		fields := f.Messages().Get(i).Fields()
		for j := range fields.Len() {
			c.words[string(fields.Get(j).Name())] = fields.Get(j).JSONName()
		}
	}
	for i := range f.Enums().Len() {
		e := f.Enums().Get(i)
		for number, text := range codec.EnumTexts(e) {
			if number > 0 {
				c.words[string(e.Values().Get(number).Name())] = text
			}
		}
	}
}

// readComments adds the comments of a file.
func (c *contract) readComments(f protoreflect.FileDescriptor) {
	add := func(d protoreflect.Descriptor) { c.comments[d.FullName()] = c.comment(d) }
	for i := range f.Services().Len() {
		s := f.Services().Get(i)
		add(s)
		for j := range s.Methods().Len() {
			add(s.Methods().Get(j))
		}
	}
	for i := range f.Messages().Len() {
		m := f.Messages().Get(i)
		add(m)
		for j := range m.Fields().Len() {
			add(m.Fields().Get(j))
		}
	}
	for i := range f.Enums().Len() {
		e := f.Enums().Get(i)
		add(e)
		for j := range e.Values().Len() {
			add(e.Values().Get(j))
		}
	}
}

// commented returns an error unless each hook has a comment, and so has its service.
func (c *contract) commented(hooks []*catalog.Hook) error {
	for _, h := range hooks {
		service, method, _ := strings.Cut(strings.TrimPrefix(h.Method, "/"), "/")
		for _, name := range []string{service, service + "." + method} {
			if c.comments[protoreflect.FullName(name)] == "" {
				return fmt.Errorf("hook %s: %s has no comment in the protos", h.Hook, name)
			}
		}
	}
	return nil
}

// word matches a word of a comment that may name a field or a value.
var word = regexp.MustCompile(`\b[A-Za-z0-9]+(_[A-Za-z0-9]+)+\b`)

// comment returns the comment of d with names as in JSON.
func (c *contract) comment(d protoreflect.Descriptor) string {
	text := strings.TrimSpace(d.ParentFile().SourceLocations().ByDescriptor(d).LeadingComments)
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = strings.TrimSpace(line)
	}
	text = strings.Join(lines, " ")
	return word.ReplaceAllStringFunc(text, func(name string) string {
		if inJSON, ok := c.words[name]; ok {
			return inJSON
		}
		return name
	})
}

// describe adds the descriptions and values of the package of protos to the components of its messages and enums. Every
// member of these is in the protos. A member that Cluster API does not have yet comes from ahead, which has the
// components as the protos have them.
func (c *contract) describe(of protoreflect.FullName, schemas, ahead map[string]schema) error {
	described := 0
	for _, f := range c.files {
		if f.Package().Parent() != of {
			continue
		}
		for i := range f.Messages().Len() {
			m := f.Messages().Get(i)
			if m.Name() == "RawExtension" || m.Name() == "JSON" {
				continue
			}
			s := find(schemas, m.Name())
			if s == nil {
				return fmt.Errorf("message %s: Cluster API has no such type", m.Name())
			}
			if err := c.describeMembers(m, s, ahead[document.Component(m)]); err != nil {
				return fmt.Errorf("message %s: %w", m.Name(), err)
			}
			described++
		}
		for i := range f.Enums().Len() {
			if err := c.describeEnum(f.Enums().Get(i), schemas); err != nil {
				return err
			}
		}
	}
	if described == 0 {
		return errors.New("the protos have no messages")
	}
	return nil
}

// find returns the component of a message. The types of variables are in the core group of Cluster API.
func find(schemas map[string]schema, name protoreflect.Name) schema {
	for _, group := range []string{"hooks.v1alpha1.", "cluster.v1beta2."} {
		if s, ok := schemas[group+string(name)]; ok {
			return s
		}
	}
	return nil
}

func (c *contract) describeMembers(m protoreflect.MessageDescriptor, s, ahead schema) error {
	s["description"] = c.comments[m.FullName()]
	members := s["properties"].(map[string]any)
	known := map[string]bool{"apiVersion": true, "kind": true}
	for i := range m.Fields().Len() {
		f := m.Fields().Get(i)
		if !catalog.InJSON(f) {
			continue
		}
		known[f.JSONName()] = true
		of, ok := members[f.JSONName()].(map[string]any)
		if !ok {
			members[f.JSONName()] = ahead["properties"].(schema)[f.JSONName()]
			continue
		}
		of["description"] = c.comments[f.FullName()]
		if ref, ok := of["$ref"]; ok {
			delete(of, "$ref")
			of["allOf"] = []any{schema{"$ref": ref}}
		}
	}
	for name := range members {
		if !known[name] {
			return fmt.Errorf("member %s: the protos have none of that name", name)
		}
	}
	return nil
}

func (c *contract) describeEnum(e protoreflect.EnumDescriptor, schemas map[string]schema) error {
	s := find(schemas, e.Name())
	if s == nil {
		return fmt.Errorf("enumeration %s: Cluster API has no such type", e.Name())
	}
	s["enum"], s["description"] = codec.EnumTexts(e)[1:], document.DescribeEnum(e, c.comments)
	return nil
}
