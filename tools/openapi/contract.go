// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/bufbuild/protocompile"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/codec"
	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
)

// contract holds the protos with their comments, which the descriptors in generated code lack.
type contract struct {
	files []protoreflect.FileDescriptor
	words map[string]string // names in JSON by the names of fields and enum values
}

// readContract compiles the protos in a directory.
func readContract(dir string) (*contract, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "hookgate", "hooks", "*", "*.proto"))
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
	c := &contract{words: map[string]string{}}
	for _, f := range files {
		c.files = append(c.files, f)
		for i := range f.Messages().Len() {
			fields := f.Messages().Get(i).Fields()
			for j := range fields.Len() {
				c.words[string(fields.Get(j).Name())] = fields.Get(j).JSONName()
			}
		}
		for i := range f.Enums().Len() {
			e := f.Enums().Get(i)
			for j := range e.Values().Len() {
				v := e.Values().Get(j)
				if v.Number() == 0 {
					continue
				}
				text, err := enumText(e.Name(), v.Number())
				if err != nil {
					return nil, fmt.Errorf("enumeration %s: %w", e.Name(), err)
				}
				c.words[string(v.Name())] = text
			}
		}
	}
	return c, nil
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

// service returns the comment of a service.
func (c *contract) service(name string) (string, error) {
	d, err := c.find(func(f protoreflect.FileDescriptor) protoreflect.Descriptor {
		if s := f.Services().ByName(protoreflect.Name(name)); s != nil {
			return s
		}
		return nil
	}, name)
	if err != nil {
		return "", err
	}
	return c.comment(d), nil
}

// method returns the comment of the rpc of a hook.
func (c *contract) method(h *catalog.Hook) (string, error) {
	service, method, _ := strings.Cut(strings.TrimPrefix(h.Method, "/"), "/")
	name := service[strings.LastIndex(service, ".")+1:]
	d, err := c.find(func(f protoreflect.FileDescriptor) protoreflect.Descriptor {
		if s := f.Services().ByName(protoreflect.Name(name)); s != nil {
			return s.Methods().ByName(protoreflect.Name(method))
		}
		return nil
	}, h.Method)
	if err != nil {
		return "", err
	}
	return c.comment(d), nil
}

func (c *contract) find(
	in func(protoreflect.FileDescriptor) protoreflect.Descriptor, name string,
) (protoreflect.Descriptor, error) {
	for _, f := range c.files {
		if d := in(f); d != nil {
			if c.comment(d) == "" {
				return nil, fmt.Errorf("%s has no comment in the protos", name)
			}
			return d, nil
		}
	}
	return nil, fmt.Errorf("the protos have no %s", name)
}

// describe adds the descriptions and values of the contract to the components of its messages and enums. Both must have
// the same members.
func (c *contract) describe(schemas map[string]schema) error {
	described := 0
	for _, f := range c.files {
		for i := range f.Messages().Len() {
			m := f.Messages().Get(i)
			if m.Name() == "RawExtension" || m.Name() == "JSON" {
				continue
			}
			s := find(schemas, m.Name())
			if s == nil {
				return fmt.Errorf("message %s: Cluster API has no such type", m.Name())
			}
			if err := c.describeMembers(m, s); err != nil {
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

func (c *contract) describeMembers(m protoreflect.MessageDescriptor, s schema) error {
	s["description"] = c.comment(m)
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
			return fmt.Errorf("member %s: Cluster API has none of that name", f.JSONName())
		}
		of["description"] = c.comment(f)
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
	var values []any
	var description strings.Builder
	description.WriteString(c.comment(e))
	for i := range e.Values().Len() {
		v := e.Values().Get(i)
		if v.Number() == 0 {
			continue
		}
		values = append(values, c.words[string(v.Name())])
		description.WriteString("\n- " + c.comment(v))
	}
	s["enum"], s["description"] = values, description.String()
	return nil
}

// enumText returns the JSON form of an enum value, which it gets from the codec.
func enumText(enum protoreflect.Name, number protoreflect.EnumNumber) (string, error) {
	holders := map[protoreflect.Name]struct {
		message proto.Message
		field   string
	}{
		"ResponseStatus": {&hooksv1alpha1.BeforeClusterCreateResponse{}, "status"},
		"FailurePolicy":  {&hooksv1alpha1.ExtensionHandler{}, "failurePolicy"},
		"PatchType":      {&hooksv1alpha1.Patch{}, "patchType"},
	}
	holder, ok := holders[enum]
	if !ok {
		return "", errors.New("no message is known that has it")
	}
	m := holder.message.ProtoReflect()
	m.Set(m.Descriptor().Fields().ByJSONName(holder.field), protoreflect.ValueOfEnum(number))
	text, err := codec.New(catalog.New()).Append(nil, holder.message)
	if err != nil {
		return "", err
	}
	var members map[string]any
	if err := json.Unmarshal(text, &members); err != nil {
		return "", err
	}
	value, ok := members[holder.field].(string)
	if !ok {
		return "", fmt.Errorf("value %d is not written as a string", number)
	}
	return value, nil
}
