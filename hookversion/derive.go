// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package hookversion

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// Differences declares how two versions of a message differ. It names members by their paths, as losses do.
type Differences struct {
	// Renamed maps members of the spoke to the names that they have in the same object of the hub.
	Renamed map[string]string
	// Added holds the members that only the hub has. The value, a string, int32 or bool, is the meaning of an absent
	// member in the spoke; Up sets it. It is nil for the zero value.
	Added map[string]any
	// Gone lists the members that only the spoke has.
	Gone []string
}

// Derive returns the conversion between two versions of a message that their descriptors and d define: members of the
// same name correspond, and d declares all others. Build returns an error for every other member.
//
// If a member has the same type in both versions, the converted message shares its value.
func Derive(spoke, hub proto.Message, d Differences) Conversion {
	from, to := spoke.ProtoReflect().Type(), hub.ProtoReflect().Type()
	b := &deriver{Differences: d, used: map[string]bool{}}
	p := b.plan(from.Descriptor(), to.Descriptor(), "", "")
	if unused := b.unused(); len(unused) > 0 {
		b.wrongf("declared, but not a difference: %v", unused)
	}
	if err := errors.Join(b.errs...); err != nil {
		names := p.types
		return Conversion{err: fmt.Errorf("derive %s from %s: %w", names[0], names[1], err)}
	}
	return Conversion{
		Up:     func(m proto.Message) (proto.Message, []string, error) { return converted(m, to, p, up) },
		Down:   func(m proto.Message) (proto.Message, []string, error) { return converted(m, from, p, down) },
		LostUp: sorted(slices.Clone(d.Gone)), LostDown: slices.Sorted(maps.Keys(d.Added)),
	}
}

// direction is the side of a plan that a message converts from.
type direction int

const (
	up   direction = iota // from the spoke, side 0
	down                  // from the hub, side 1
)

// plan pairs the members of two versions of one message.
type plan struct {
	types  [2]protoreflect.FullName
	path   [2]string // of the message in each version
	common []common
	only   [2][]only // members of one side alone
}

// common is a member of both versions.
type common struct {
	fields [2]protoreflect.FieldDescriptor
	plan   *plan // of messages that differ; nil if the value can be shared
}

// only is a member of one version.
type only struct {
	field protoreflect.FieldDescriptor
	path  string
	// absent is the meaning of an absent member; it is invalid for the zero value.
	absent protoreflect.Value
}

// deriver makes plans.
type deriver struct {
	Differences
	used map[string]bool // declared differences, such as "gone a.b"
	errs []error
}

func (b *deriver) wrongf(format string, args ...any) {
	b.errs = append(b.errs, fmt.Errorf(format, args...))
}

func (b *deriver) unused() []string {
	var unused []string
	add := func(kind, path string) {
		if !b.used[kind+path] {
			unused = append(unused, path)
		}
	}
	for path := range b.Renamed {
		add("renamed ", path)
	}
	for path := range b.Added {
		add("added ", path)
	}
	for _, path := range b.Gone {
		add("gone ", path)
	}
	return sorted(unused)
}

func (b *deriver) plan(spoke, hub protoreflect.MessageDescriptor, spokePath, hubPath string) *plan {
	p := &plan{
		types: [2]protoreflect.FullName{spoke.FullName(), hub.FullName()}, path: [2]string{spokePath, hubPath},
	}
	seen := map[protoreflect.Name]bool{"unknown_members": true}
	for i := range spoke.Fields().Len() {
		f := spoke.Fields().Get(i)
		if f.Name() == "unknown_members" {
			continue
		}
		path := join(spokePath, f.JSONName())
		name := f.JSONName()
		if renamed, ok := b.Renamed[path]; ok {
			name = renamed
			b.used["renamed "+path] = true
		}
		target := hub.Fields().ByJSONName(name)
		switch {
		case slices.Contains(b.Gone, path):
			b.used["gone "+path] = true
			p.only[0] = append(p.only[0], only{field: f, path: path})
		case target == nil:
			b.wrongf("%s: the newer version has no %s", path, name)
		case seen[target.Name()]:
			b.wrongf("%s: %s belongs to another member already", path, name)
		default:
			seen[target.Name()] = true
			p.common = append(p.common, b.common(f, target, path, join(hubPath, name)))
		}
	}
	for i := range hub.Fields().Len() {
		if f := hub.Fields().Get(i); !seen[f.Name()] {
			p.only[1] = append(p.only[1], b.added(f, join(hubPath, f.JSONName())))
		}
	}
	return p
}

// added returns a member of the hub that the spoke does not have.
func (b *deriver) added(f protoreflect.FieldDescriptor, path string) only {
	absent, ok := b.Added[path]
	if !ok {
		b.wrongf("%s: the older version has no such member", path)
		return only{}
	}
	b.used["added "+path] = true
	return only{field: f, path: path, absent: b.value(f, path, absent)}
}

// common pairs two members, whose types have to match.
func (b *deriver) common(spoke, hub protoreflect.FieldDescriptor, spokePath, hubPath string) common {
	c := common{fields: [2]protoreflect.FieldDescriptor{spoke, hub}}
	switch {
	case !sameShape(spoke, hub):
		b.wrongf("%s and %s have different types", spokePath, hubPath)
	case spoke.Kind() == protoreflect.EnumKind:
		if !sameValues(spoke.Enum(), hub.Enum()) {
			b.wrongf("%s and %s have different values", spokePath, hubPath)
		}
	case spoke.IsMap():
		if !sameEntries(spoke, hub) {
			b.wrongf("%s and %s are maps with different entries: write the conversion by hand", spokePath, hubPath)
		}
	case spoke.Message() != nil && spoke.Message().FullName() != hub.Message().FullName():
		if spoke.IsList() {
			spokePath, hubPath = spokePath+"[*]", hubPath+"[*]"
		}
		c.plan = b.plan(spoke.Message(), hub.Message(), spokePath, hubPath)
	}
	return c
}

func sameShape(a, b protoreflect.FieldDescriptor) bool {
	return a.Kind() == b.Kind() && a.Cardinality() == b.Cardinality() && a.IsMap() == b.IsMap() &&
		a.HasPresence() == b.HasPresence()
}

// sameEntries reports whether two maps can share their values.
func sameEntries(a, b protoreflect.FieldDescriptor) bool {
	value, other := a.MapValue(), b.MapValue()
	return a.MapKey().Kind() == b.MapKey().Kind() && value.Kind() == other.Kind() &&
		value.Kind() != protoreflect.EnumKind && value.Message() == other.Message()
}

func sameValues(a, b protoreflect.EnumDescriptor) bool {
	if a.Values().Len() != b.Values().Len() {
		return false
	}
	for i := range a.Values().Len() {
		v := a.Values().Get(i)
		if other := b.Values().ByNumber(v.Number()); other == nil || other.Name() != v.Name() {
			return false
		}
	}
	return true
}

// value returns a declared default as a value of the member.
func (b *deriver) value(f protoreflect.FieldDescriptor, path string, v any) protoreflect.Value {
	if v == nil {
		return protoreflect.Value{}
	}
	kind := protoreflect.Kind(0)
	switch v.(type) {
	case string:
		kind = protoreflect.StringKind
	case int32:
		kind = protoreflect.Int32Kind
	case bool:
		kind = protoreflect.BoolKind
	}
	if f.IsList() || f.Kind() != kind {
		b.wrongf("%s: its type is not %T", path, v)
		return protoreflect.Value{}
	}
	return protoreflect.ValueOf(v)
}

// converted returns m as a message of the type to.
func converted(m proto.Message, to protoreflect.MessageType, p *plan, d direction) (proto.Message, []string, error) {
	if have := m.ProtoReflect().Descriptor().FullName(); have != p.types[d] {
		return nil, nil, fmt.Errorf("%s is not a %s", have, p.types[d])
	}
	out := to.New()
	lost := p.apply(m.ProtoReflect(), out, d)
	return out.Interface(), sorted(lost), nil
}

// apply fills out with the members of m, and returns the paths of those that have no place in out.
func (p *plan) apply(m, out protoreflect.Message, d direction) (lost []string) {
	for i := range p.common {
		c := &p.common[i]
		from, to := c.fields[d], c.fields[1-d]
		switch {
		case !m.Has(from):
		case c.plan == nil:
			out.Set(to, m.Get(from))
		case from.IsList():
			in, list := m.Get(from).List(), out.Mutable(to).List()
			for i := range in.Len() {
				element := list.NewElement()
				lost = append(lost, c.plan.apply(in.Get(i).Message(), element.Message(), d)...)
				list.Append(element)
			}
		default:
			lost = append(lost, c.plan.apply(m.Get(from).Message(), out.Mutable(to).Message(), d)...)
		}
	}
	for _, o := range p.only[d] {
		if m.Has(o.field) && (!o.absent.IsValid() || !m.Get(o.field).Equal(o.absent)) {
			lost = append(lost, o.path)
		}
	}
	for _, o := range p.only[1-d] {
		if o.absent.IsValid() {
			out.Set(o.field, o.absent)
		}
	}
	return append(lost, CopyUnknown(out.Interface(), m.Interface(), p.path[d])...)
}
