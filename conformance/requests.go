// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/blang/semver/v4"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
)

// The functions of this file return a request that differs from the one given, which they do not change.

// withSettings returns the request with these settings and no others.
func withSettings(req proto.Message, settings map[string]string) proto.Message {
	out := proto.Clone(req)
	m := out.ProtoReflect()
	fd := m.Descriptor().Fields().ByName("settings")
	if fd == nil {
		return out
	}
	m.Clear(fd)
	for key, text := range settings {
		m.Mutable(fd).Map().Set(protoreflect.ValueOfString(key).MapKey(), protoreflect.ValueOfString(text))
	}
	return out
}

// withUnknown returns the request with members, and fields of protobuf, that the contract does not have, at every
// level.
func withUnknown(req proto.Message) proto.Message {
	out := proto.Clone(req)
	field := protowire.AppendVarint(protowire.AppendTag(nil, 4000, protowire.VarintType), 7)
	eachMessage(out.ProtoReflect(), func(m protoreflect.Message) {
		fd := m.Descriptor().Fields().ByName("unknown_members")
		if fd == nil {
			return
		}
		for name, raw := range map[string]string{
			"conformanceUnknown": `{"since":"v1.99","list":[1,null]}`, "conformance-flag": "true",
		} {
			value := &hooksv1alpha1.JSON{Raw: []byte(raw)}
			m.Mutable(fd).Map().Set(protoreflect.ValueOfString(name).MapKey(),
				protoreflect.ValueOfMessage(value.ProtoReflect()))
		}
		m.SetUnknown(field)
	})
	return out
}

// withObjects returns the request with every Kubernetes object replaced by raw, and whether it has any.
func withObjects(req proto.Message, raw []byte) (proto.Message, bool) {
	out := proto.Clone(req)
	found := false
	eachMessage(out.ProtoReflect(), func(m protoreflect.Message) {
		if o, ok := m.Interface().(*hooksv1alpha1.RawExtension); ok {
			o.Raw, found = raw, true
		}
	})
	return out, found
}

// padded returns the request, filled up to about size bytes with text in the annotations of its first object, or in its
// settings.
func padded(req proto.Message, size int) proto.Message {
	const name = "conformance.hookgate.dev/padding"
	text := strings.Repeat("x", max(0, size-proto.Size(req)-200))
	out := proto.Clone(req)
	done := false
	eachMessage(out.ProtoReflect(), func(m protoreflect.Message) {
		o, ok := m.Interface().(*hooksv1alpha1.RawExtension)
		if !ok || done {
			return
		}
		if raw, err := annotated(o.GetRaw(), name, text); err == nil {
			o.Raw, done = raw, true
		}
	})
	if done {
		return out
	}
	return withSettings(out, map[string]string{name: text})
}

func annotated(object []byte, name, text string) ([]byte, error) {
	v, err := parse(object)
	if err != nil {
		return nil, err
	}
	o, ok := v.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("%s is not an object", kindOf(v))
	}
	metadata, ok := o["metadata"].(map[string]any)
	if !ok {
		metadata = map[string]any{}
		o["metadata"] = metadata
	}
	annotations, ok := metadata["annotations"].(map[string]any)
	if !ok {
		annotations = map[string]any{}
		metadata["annotations"] = annotations
	}
	annotations[name] = text
	return json.Marshal(o)
}

// withPatchUpdate returns a request of CanUpdateMachine or CanUpdateMachineSet in which the current and the desired
// version have the same minor version, and whether such a request exists.
func withPatchUpdate(req proto.Message) (proto.Message, bool) {
	out := proto.Clone(req)
	var current, desired *hooksv1alpha1.RawExtension
	at := location{"spec"}
	switch q := out.(type) {
	case *hooksv1alpha1.CanUpdateMachineRequest:
		current, desired = q.GetCurrent().GetMachine(), q.GetDesired().GetMachine()
	case *hooksv1alpha1.CanUpdateMachineSetRequest:
		current, desired = q.GetCurrent().GetMachineSet(), q.GetDesired().GetMachineSet()
		at = location{"spec", "template", "spec"}
	}
	before, err := parse(current.GetRaw())
	if err != nil {
		return nil, false
	}
	after, err := parse(desired.GetRaw())
	if err != nil {
		return nil, false
	}
	text, _ := lookup(after, append(at, "version")).(string)
	version, err := semver.ParseTolerant(text)
	spec, ok := lookup(before, at).(map[string]any)
	if err != nil || !ok || version.Patch == 0 {
		return nil, false
	}
	version.Patch--
	spec["version"] = "v" + version.String()
	if current.Raw, err = json.Marshal(before); err != nil {
		return nil, false
	}
	return out, true
}

// provocation is a request that an extension may have to turn down.
type provocation struct {
	name    string
	request proto.Message
}

// provocations returns requests with a mistake that a handler may or may not notice.
func provocations(req proto.Message) []provocation {
	var all []provocation
	for _, raw := range []string{`"a string"`, `7`, `{"kind":7,"metadata":[],"spec":"x"}`} {
		if out, ok := withObjects(req, []byte(raw)); ok {
			all = append(all, provocation{"objects are " + raw, out})
		}
	}
	out := proto.Clone(req)
	found := false
	eachMessage(out.ProtoReflect(), func(m protoreflect.Message) {
		if o, ok := m.Interface().(*hooksv1alpha1.Variable); ok {
			o.Value, found = &hooksv1alpha1.JSON{Raw: []byte("7")}, true
		}
	})
	if found {
		all = append(all, provocation{"variables are 7", out})
	}
	out, found = proto.Clone(req), false
	fields := out.ProtoReflect().Descriptor().Fields()
	for i := range fields.Len() {
		fd := fields.Get(i)
		if strings.HasSuffix(string(fd.Name()), "_version") && fd.Kind() == protoreflect.StringKind {
			out.ProtoReflect().Set(fd, protoreflect.ValueOfString("banana"))
			found = true
		}
	}
	if found {
		all = append(all, provocation{"versions are banana", out})
	}
	return all
}

// eachMessage calls f with a message and all messages within it.
func eachMessage(m protoreflect.Message, f func(protoreflect.Message)) {
	m.Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case fd.Kind() != protoreflect.MessageKind, fd.IsMap():
		case fd.IsList():
			for i := range v.List().Len() {
				eachMessage(v.List().Get(i).Message(), f)
			}
		default:
			eachMessage(v.Message(), f)
		}
		return true
	})
	f(m)
}
