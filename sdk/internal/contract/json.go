// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// Decode reads a message from the contract's JSON. It makes protobuf's own form of it, in which JSON within a message
// is bytes, texts of enums have the name of the enum, and members that the contract does not know are in
// unknown_members.
func Decode(data []byte, into proto.Message) error {
	d := into.ProtoReflect().Descriptor()
	members, err := object(data)
	if err != nil {
		return err
	}
	// Of a group that is not the project's, the end of the apiVersion is known: its version.
	pkg := d.ParentFile().Package()
	for _, m := range []struct{ name, want string }{
		{"kind", string(d.Name())}, {"apiVersion", Group(pkg) + "/" + string(pkg.Name())},
	} {
		var got string
		text, ok := members[m.name]
		if ok && (json.Unmarshal(text, &got) != nil || got != "" && !matches(got, m.want)) {
			return fmt.Errorf("%s: want %s, got %s", m.name, m.want, text)
		}
		delete(members, m.name)
	}
	message, err := convert(d, members)
	if err != nil {
		return err
	}
	text, err := json.Marshal(message)
	if err != nil {
		return err
	}
	return protojson.Unmarshal(text, into)
}

// matches reports whether an apiVersion or a kind is the wanted one. Of an apiVersion, only the end may be known.
func matches(got, want string) bool {
	return got == want || strings.HasPrefix(want, "/") && strings.HasSuffix(got, want)
}

func object(data []byte) (members map[string]json.RawMessage, err error) {
	if err := json.Unmarshal(data, &members); err != nil || members == nil {
		return nil, errors.New("want a JSON object")
	}
	return members, nil
}

const unknownMembers = "unknown_members"

// convert returns the members of a message in protobuf's form.
func convert(d protoreflect.MessageDescriptor, members map[string]json.RawMessage) (map[string]any, error) {
	converted, unknown := map[string]any{}, map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(members)) { // so that the same mistake is said each time
		f, text := member(d, name), members[name]
		if f == nil {
			if known := inAnotherCase(d, name); known != "" {
				return nil, fmt.Errorf("%s: differs from %q only in case", name, known)
			}
			unknown[name] = raw(text)
			continue
		}
		value, err := convertField(f, text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		converted[name] = value
	}
	if len(unknown) > 0 {
		converted[unknownMembers] = unknown // protobuf refuses it in a message without the field, by its name
	}
	return converted, nil
}

// member returns the field of a member. The handler of a request is in the path of a call, and never a member.
func member(d protoreflect.MessageDescriptor, name string) protoreflect.FieldDescriptor {
	f := d.Fields().ByJSONName(name)
	if f == nil || f.Name() == unknownMembers || f.Name() == "handler" && strings.HasSuffix(string(d.Name()), "Request") {
		return nil
	}
	return f
}

// inAnotherCase returns the member that a name is meant to be, if any.
func inAnotherCase(d protoreflect.MessageDescriptor, name string) string {
	for i := range d.Fields().Len() {
		if known := d.Fields().Get(i).JSONName(); known != name && strings.EqualFold(known, name) {
			return known
		}
	}
	return ""
}

func convertField(f protoreflect.FieldDescriptor, text json.RawMessage) (any, error) {
	one := func(text json.RawMessage) (any, error) { return text, nil }
	switch {
	case f.IsMap():
	case f.Enum() != nil:
		one = func(text json.RawMessage) (any, error) { return enumValue(f.Enum(), text) }
	case f.Message() != nil && isRaw(f.Message()):
		one = func(text json.RawMessage) (any, error) { return raw(text), nil }
	case f.Message() != nil:
		one = func(text json.RawMessage) (any, error) {
			members, err := object(text)
			if err != nil {
				return nil, err
			}
			return convert(f.Message(), members)
		}
	}
	switch {
	case !f.IsList() && string(text) == "null" && !isRaw(f.Message()):
		return text, nil // as if it was absent
	case !f.IsList():
		return one(text)
	}
	var elements []json.RawMessage
	if err := json.Unmarshal(text, &elements); err != nil {
		return nil, errors.New("want a list")
	}
	values := make([]any, len(elements))
	for i, element := range elements {
		var err error
		if values[i], err = one(element); err != nil {
			return nil, fmt.Errorf("[%d]: %w", i, err)
		}
	}
	return values, nil
}

// isRaw reports whether a message is JSON as text: RawExtension, or JSON.
func isRaw(d protoreflect.MessageDescriptor) bool {
	return d != nil && (d.Name() == "RawExtension" || d.Name() == "JSON") &&
		d.Fields().Len() == 1 && d.Fields().ByName("raw") != nil
}

// raw returns JSON as the bytes of a message.
func raw(text json.RawMessage) any { return map[string][]byte{"raw": text} }

// enumValue returns the name of an enum's value: of FailurePolicy, "Ignore" is FAILURE_POLICY_IGNORE.
func enumValue(d protoreflect.EnumDescriptor, text json.RawMessage) (string, error) {
	var want string
	if err := json.Unmarshal(text, &want); err != nil {
		return "", errors.New("want a text")
	}
	var known []string
	for i := range d.Values().Len() {
		v := d.Values().Get(i)
		if v.Number() == 0 {
			continue // not specified
		}
		text := enumText(string(d.Name()), string(v.Name()))
		if text == want {
			return string(v.Name()), nil
		}
		known = append(known, text)
	}
	return "", fmt.Errorf("want one of %s, got %q", strings.Join(known, ", "), want)
}

// enumText returns the text of an enum's value in the contract's JSON.
func enumText(enum, value string) string {
	words := strings.Split(value, "_")
	for n := range words {
		if strings.EqualFold(strings.Join(words[:n], ""), enum) {
			words = words[n:]
			break
		}
	}
	var text strings.Builder
	for _, word := range words {
		if word != "JSON" {
			word = word[:1] + strings.ToLower(word[1:])
		}
		text.WriteString(word)
	}
	return text.String()
}
