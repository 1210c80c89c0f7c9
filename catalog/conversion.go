// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/hook"
)

// Convert returns a message in another version, and the paths of members that it has no place for there. It does not change m,
// and what it returns may share with m.
//
// Paths are JSON names, with [*] for any element of a list: "volumes[*].sizeBytes".
type Convert func(m proto.Message) (converted proto.Message, lost []string, err error)

// Conversion converts one kind of message of a hook, its requests or its answers, between an older version, the spoke, and
// the newest, the hub.
//
// Down loses nothing but what is new in the hub, and Up nothing but what the hub has given up. Going down and up again, or up
// and down, yields the same message but for what was lost, and for the values that new members have by default. Members
// that neither version knows, in unknown_members, pass: see CopyUnknown.
type Conversion struct {
	// Up converts the spoke's message to the hub's, and Down the hub's to the spoke's.
	Up, Down Convert
	// LostUp and LostDown are all paths that Up and Down can lose, but for unknown members whose name is that of another
	// member in the other version.
	LostUp, LostDown []string

	err error // of Derive
}

// Spoke is how a hook's messages in one version convert to those of the hub, and from them.
type Spoke struct{ Request, Response Conversion }

// ConvertRequest returns req, a request of h, as a request of another version of the same hook, and the paths that are lost on
// the way. Where the versions are the same, it is req itself. The error is a *hook.Error of kind Conversion.
func (h *Hook) ConvertRequest(req proto.Message, to *Hook) (proto.Message, []string, error) {
	m, lost, err := h.convert(req, to, func(s *Spoke) *Conversion { return &s.Request })
	if err != nil {
		return nil, nil, hook.Errorf(hook.Conversion, "convert request from %s to %s: %s", h.APIVersion(), to.APIVersion(), err)
	}
	return m, lost, nil
}

// ConvertResponse is ConvertRequest for an answer of h.
func (h *Hook) ConvertResponse(resp proto.Message, to *Hook) (proto.Message, []string, error) {
	m, lost, err := h.convert(resp, to, func(s *Spoke) *Conversion { return &s.Response })
	if err != nil {
		return nil, nil, hook.Errorf(hook.Conversion, "convert answer from %s to %s: %s", h.APIVersion(), to.APIVersion(), err)
	}
	return m, lost, nil
}

// RequestLosses returns all paths that requests of h can lose on their way to another version of the same hook, and
// ResponseLosses those of answers of h.
func (h *Hook) RequestLosses(to *Hook) []string {
	return h.losses(to, func(s *Spoke) *Conversion { return &s.Request })
}

// ResponseLosses is RequestLosses for answers of h.
func (h *Hook) ResponseLosses(to *Hook) []string {
	return h.losses(to, func(s *Spoke) *Conversion { return &s.Response })
}

func (h *Hook) convert(m proto.Message, to *Hook, kind func(*Spoke) *Conversion) (converted proto.Message, lost []string, err error) {
	if h == to {
		return m, nil, nil
	}
	if h.Hub() != to.Hub() {
		return nil, nil, errors.New("these are different hooks")
	}
	if h != h.Hub() {
		if m, lost, err = kind(h.spoke).Up(m); err != nil {
			return nil, nil, err
		}
	}
	if to != to.Hub() {
		var down []string
		if m, down, err = kind(to.spoke).Down(m); err != nil {
			return nil, nil, err
		}
		lost = append(slices.Clip(lost), down...)
	}
	return m, sorted(lost), nil
}

func (h *Hook) losses(to *Hook, kind func(*Spoke) *Conversion) []string {
	if h == to || h.Hub() != to.Hub() {
		return nil
	}
	var lost []string
	if h != h.Hub() {
		lost = append(lost, kind(h.spoke).LostUp...)
	}
	if to != to.Hub() {
		lost = append(lost, kind(to.spoke).LostDown...)
	}
	return sorted(lost)
}

func sorted(paths []string) []string {
	slices.Sort(paths)
	return slices.Compact(paths)
}

// checkSpoke tells what keeps a spoke from being that of h.
func (h *Hook) checkSpoke() error {
	switch {
	case h.Hub() == h && h.spoke != nil:
		return errors.New("has a conversion, and is the newest version")
	case h.Hub() == h:
		return nil
	case h.spoke == nil:
		return fmt.Errorf("has no conversion to %s", h.Hub().APIVersion())
	}
	return errors.Join(h.spoke.Request.check("requests"), h.spoke.Response.check("answers"))
}

func (c *Conversion) check(what string) error {
	switch {
	case c.err != nil:
		return fmt.Errorf("conversion of %s: %w", what, c.err)
	case c.Up == nil || c.Down == nil:
		return fmt.Errorf("conversion of %s: wants both directions", what)
	}
	return nil
}

// CopyUnknown gives to, a message without unknown members yet, those of from. One that has the name of a member of to would
// stand there twice, so it is left out; it is lost if it says anything.
//
// Conversions that are written by hand call it for every message that they make. path is where from is in the whole
// message, empty for the whole.
func CopyUnknown(to, from proto.Message, path string) (lost []string) {
	m, ok := from.(interface {
		GetUnknownMembers() map[string]*hooksv1alpha1.JSON
	})
	if !ok || len(m.GetUnknownMembers()) == 0 {
		return nil
	}
	source, target := from.ProtoReflect(), to.ProtoReflect()
	unknown := target.Descriptor().Fields().ByName("unknown_members")
	known := func(name string) bool { return isMember(target.Descriptor(), name) }
	members := m.GetUnknownMembers()
	kept := members
	for name, value := range members {
		if !known(name) {
			continue
		}
		if len(kept) == len(members) {
			kept = maps.Clone(members)
		}
		delete(kept, name)
		if string(value.GetRaw()) != "null" {
			lost = append(lost, join(path, printable(name)))
		}
	}
	switch {
	case len(kept) == 0:
	case len(kept) == len(members):
		target.Set(unknown, source.Get(source.Descriptor().Fields().ByName("unknown_members")))
	default:
		out := target.Mutable(unknown).Map()
		for name, value := range kept {
			out.Set(protoreflect.ValueOfString(name).MapKey(), protoreflect.ValueOfMessage(value.ProtoReflect()))
		}
	}
	return sorted(lost)
}

// isMember tells whether the JSON of a message can have a member of that name.
func isMember(d protoreflect.MessageDescriptor, name string) bool {
	field := d.Fields().ByJSONName(name)
	return field != nil && InJSON(field)
}

// InJSON tells whether a field of a message of the contract is a member of its JSON. The handler of a request is a segment of its path,
// unknown_members are members by their own names, and only gRPC extensions can state which version of objects a handler understands.
func InJSON(fd protoreflect.FieldDescriptor) bool {
	switch fd.Name() {
	case "unknown_members":
		return false
	case "handler":
		return !strings.HasSuffix(string(fd.ContainingMessage().Name()), "Request")
	case "cluster_api_version":
		return fd.ContainingMessage().Name() != "ExtensionHandler"
	}
	return true
}

// join returns the path of a member of the object at path.
func join(path, member string) string {
	if path == "" {
		return member
	}
	return path + "." + member
}

// printable is a member's name as messages can show it.
func printable(name string) string {
	if quoted := strconv.Quote(name); quoted != `"`+name+`"` {
		return quoted
	}
	return name
}

// Shallow returns a new message that shares every field of the contract with m, so that some can be set without changing m.
func Shallow(m protoreflect.Message) protoreflect.Message {
	c := m.New()
	m.Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		c.Set(fd, v)
		return true
	})
	return c
}

// CopySame gives to what from has under the same name and as the same kind, sharing what it can. It is for the parts of
// messages that mean the same in every version, as a description of a handler does; what hooks carry is converted.
func CopySame(to, from protoreflect.Message) {
	from.Range(func(source protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		target := to.Descriptor().Fields().ByName(source.Name())
		switch {
		case target == nil || target.Kind() != source.Kind() || target.Cardinality() != source.Cardinality() || target.IsMap() != source.IsMap():
		case target.Message() == nil || target.IsMap() || target.Message().FullName() == source.Message().FullName():
			to.Set(target, v)
		case target.IsList():
			list := to.Mutable(target).List()
			for i := range v.List().Len() {
				CopySame(list.AppendMutable().Message(), v.List().Get(i).Message())
			}
		default:
			CopySame(to.Mutable(target).Message(), v.Message())
		}
		return true
	})
}
