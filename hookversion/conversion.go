// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package hookversion

import (
	"fmt"
	"maps"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/hookgate/hookgate/catalog"
	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
)

// Convert returns a message in another version, and the paths of the members that have no place there. It must not
// change m; the result may share memory with m.
//
// Paths consist of JSON names, with [*] for any element of a list: "volumes[*].sizeBytes".
type Convert func(m proto.Message) (converted proto.Message, lost []string, err error)

// Conversion converts one kind of message of a hook, its requests or its answers, between a spoke and the hub.
//
// Down loses only members that are new in the hub, and Up only members that the hub has removed. Converting down and up
// again, or up and down, yields the same message except for losses and for the default values of new members. Unknown
// members pass through: see CopyUnknown.
type Conversion struct {
	// Up converts a message of the spoke to the hub, and Down a message of the hub to the spoke.
	Up, Down Convert
	// LostUp and LostDown list every path that Up and Down can lose, except for unknown members that have the name of
	// a known member in the other version.
	LostUp, LostDown []string

	err error // of Derive
}

func (c *Conversion) check(what string) error {
	switch {
	case c.err != nil:
		return fmt.Errorf("conversion of %s: %w", what, c.err)
	case c.Up == nil || c.Down == nil:
		return fmt.Errorf("conversion of %s: needs both directions", what)
	}
	return nil
}

// CopyUnknown copies the unknown members of from to to, which must not have any yet, and returns the paths that it
// lost. A member with the name of a known member of to, in any case, would appear there twice, so CopyUnknown leaves it
// out; it counts as lost unless its value is null.
//
// Hand-written conversions call CopyUnknown for every message that they make. path is the path of from in the whole
// message; it is empty for the message itself.
func CopyUnknown(to, from proto.Message, path string) (lost []string) {
	m, ok := from.(interface {
		GetUnknownMembers() map[string]*hooksv1alpha1.JSON
	})
	if !ok || len(m.GetUnknownMembers()) == 0 {
		return nil
	}
	source, target := from.ProtoReflect(), to.ProtoReflect()
	unknown := target.Descriptor().Fields().ByName("unknown_members")
	members := m.GetUnknownMembers()
	kept := members
	for name, value := range members {
		if !known(target.Descriptor(), name) {
			continue
		}
		if len(kept) == len(members) {
			kept = maps.Clone(members)
		}
		delete(kept, name)
		if string(value.GetRaw()) != "null" {
			lost = append(lost, join(path, name))
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

// known reports whether a message has a member that encoding/json takes for the one of that name.
func known(d protoreflect.MessageDescriptor, name string) bool {
	for i := range d.Fields().Len() {
		if f := d.Fields().Get(i); strings.EqualFold(f.JSONName(), name) && catalog.InJSON(f) {
			return true
		}
	}
	return false
}

// join returns the path of a member of the object at path.
func join(path, member string) string {
	if path == "" {
		return member
	}
	return path + "." + member
}
