// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
	"k8s.io/apimachinery/pkg/util/validation"

	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
)

// maxMembers is the number of JSON members that a message may have. The codec keeps their presence in one word.
const maxMembers = 30

// versionPattern matches the versions of Kubernetes: v1, v1beta2, v0alpha1.
var versionPattern = regexp.MustCompile(`^v[0-9]+((alpha|beta)[1-9][0-9]*)?$`)

// checkAPIVersion returns an error unless group and version can be segments of a path, as Kubernetes names them.
func checkAPIVersion(group, version string) error {
	if problems := validation.IsDNS1123Subdomain(group); len(problems) > 0 {
		return fmt.Errorf("group %q: %s", group, problems[0])
	}
	if !versionPattern.MatchString(version) {
		return fmt.Errorf("version %q: want one such as v1, v1beta1 or v1alpha1", version)
	}
	return nil
}

// checkShape returns an error that joins every mistake in the form of a hook's rpc, and of its messages.
func checkShape(h *Hook, m protoreflect.MethodDescriptor) error {
	var errs []error
	if m.IsStreamingClient() || m.IsStreamingServer() {
		errs = append(errs, errors.New("the rpc is a stream: a hook has one request and one answer"))
	}
	request, response := m.Input().Fields(), m.Output().Fields()
	if fd := request.ByName("handler"); fd == nil && !h.Singleton() || fd != nil && !isText(fd) {
		errs = append(errs, fmt.Errorf("message %s: a request must have the string field "+
			"\"handler\"", m.Input().FullName()))
	}
	if fd := request.ByName("settings"); fd != nil && !isTextMap(fd) {
		errs = append(errs, fmt.Errorf("field %s: want map<string, string>", fd.FullName()))
	}
	if fd := response.ByName("retry_after_seconds"); fd != nil &&
		(fd.Kind() != protoreflect.Int32Kind || fd.IsList() || fd.HasPresence()) {
		errs = append(errs, fmt.Errorf("field %s: want int32", fd.FullName()))
	}
	if fd := response.ByName("handlers"); h.Singleton() &&
		(fd == nil || !fd.IsList() || fd.Message() == nil || fd.Message().Fields().ByName("request_hook") == nil) {
		errs = append(errs, fmt.Errorf("message %s: the answer of a DiscoveryService must have the field "+
			"\"repeated hookgate.hooks.v1alpha1.ExtensionHandler handlers\"", m.Output().FullName()))
	}
	seen := map[protoreflect.FullName]bool{}
	errs = append(errs, checkMessage(m.Input(), seen), checkMessage(m.Output(), seen))
	return errors.Join(errs...)
}

// checkMessage returns an error unless a message, and those within it, have a form in the mandated JSON.
func checkMessage(d protoreflect.MessageDescriptor, seen map[protoreflect.FullName]bool) error {
	if seen[d.FullName()] || isRaw(d) {
		return nil
	}
	seen[d.FullName()] = true
	var errs []error
	unknown := d.Fields().ByName("unknown_members")
	if unknown == nil || !unknown.IsMap() || unknown.MapKey().Kind() != protoreflect.StringKind ||
		unknown.MapValue().Message() == nil || unknown.MapValue().Message().FullName() != jsonName {
		errs = append(errs, fmt.Errorf("message %s: has no field \"map<string, %s> unknown_members\"",
			d.FullName(), jsonName))
	}
	members := 0
	names := map[string]protoreflect.Name{} // by those in JSON without case
	for i := range d.Fields().Len() {
		fd := d.Fields().Get(i)
		if !InJSON(fd) {
			continue
		}
		members++
		name := strings.ToLower(strings.ToUpper(fd.JSONName())) // ſ is s in upper case only
		if other, ok := names[name]; ok {
			errs = append(errs, fmt.Errorf("field %s: its JSON name and the JSON name of %s differ only in case",
				fd.FullName(), other))
		}
		names[name] = fd.Name()
		if !hasForm(fd) {
			errs = append(errs, fmt.Errorf("field %s: the JSON of hooks cannot express its type", fd.FullName()))
		} else if fd.Message() != nil && !fd.IsMap() {
			errs = append(errs, checkMessage(fd.Message(), seen))
		}
	}
	if members > maxMembers {
		errs = append(errs, fmt.Errorf("message %s: has %d members in JSON, more than %d: group them in messages",
			d.FullName(), members, maxMembers))
	}
	return errors.Join(errs...)
}

var (
	rawName  = (*hooksv1alpha1.RawExtension)(nil).ProtoReflect().Descriptor().FullName()
	jsonName = (*hooksv1alpha1.JSON)(nil).ProtoReflect().Descriptor().FullName()
)

// isRaw reports whether the JSON of a message is a field of it, as it is.
func isRaw(d protoreflect.MessageDescriptor) bool {
	return d.FullName() == rawName || d.FullName() == jsonName
}

// hasForm reports whether the codec has a form for the type of a field.
func hasForm(fd protoreflect.FieldDescriptor) bool {
	optional := fd.HasOptionalKeyword()
	switch {
	case fd.ContainingOneof() != nil && !optional:
		return false
	case fd.IsMap():
		return isTextMap(fd)
	}
	switch fd.Kind() {
	case protoreflect.StringKind:
		return !optional
	case protoreflect.Int32Kind, protoreflect.BoolKind, protoreflect.BytesKind:
		return !fd.IsList()
	case protoreflect.EnumKind:
		return !fd.IsList() && !optional && inOrder(fd.Enum())
	case protoreflect.MessageKind:
		return !fd.IsList() || !isRaw(fd.Message())
	}
	return false
}

// inOrder reports whether the values of an enum are 0, 1, 2 and so on, and all but the first have a text.
func inOrder(d protoreflect.EnumDescriptor) bool {
	for i := range d.Values().Len() {
		v := d.Values().Get(i)
		if int(v.Number()) != i || strings.HasSuffix(string(v.Name()), "_") || strings.Contains(string(v.Name()), "__") {
			return false
		}
	}
	return true
}

// isText reports whether a field is one string.
func isText(fd protoreflect.FieldDescriptor) bool {
	return fd.Kind() == protoreflect.StringKind && !fd.IsList() && !fd.HasPresence()
}

// isTextMap reports whether a field is a map of strings.
func isTextMap(fd protoreflect.FieldDescriptor) bool {
	return fd.IsMap() && fd.MapKey().Kind() == protoreflect.StringKind && fd.MapValue().Kind() == protoreflect.StringKind
}
