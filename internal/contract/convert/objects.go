// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"strings"
	"sync"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/contract/jsonpatch"
)

// The versions of group cluster.x-k8s.io between which objects are converted.
const (
	V1Beta1 = hook.ClusterAPIV1Beta1
	V1Beta2 = hook.ClusterAPIV1Beta2
)

// Objects converts the objects in requests of hooks. It is immutable and safe for concurrent use.
type Objects struct {
	refs     *References
	kinds    map[string]*kind
	messages sync.Map // *layout by protoreflect.FullName
}

// Converted is a request in the version that a handler understands, with the state needed to convert the answer back.
// It may share memory with the original request.
type Converted struct {
	// Message is the converted request, or the original message if there was nothing to convert.
	Message proto.Message
	// Losses are the paths that the handler's version cannot express, sorted and without duplicates. A path consists
	// of the kind of object in lower camel case and the names of members, with [*] for indices and keys, as in
	// "cluster.spec.topology.variables[*].definitionFrom".
	Losses []string

	objects *Objects
	guard   jsonpatch.Guard
	to      string
	current *seen // the object that a patch in the answer is for; nil if it was not converted
}

// seen is an object in the caller's version and in the handler's.
type seen struct {
	kind     *kind
	at       string
	from, to string
	caller   []byte
	handler  []byte
}

// NewObjects returns an Objects that uses refs for the versions of references.
func NewObjects(refs *References) *Objects {
	o := &Objects{refs: refs, kinds: map[string]*kind{}}
	for _, k := range kinds() {
		o.kinds[k.path] = k
	}
	return o
}

// layout describes the places of objects in a message.
type layout struct {
	spots    []spot
	unstated string // the version of an object that states neither version nor kind
}

// spot is the place of an object in a message.
type spot struct {
	kind   *kind
	at     string                       // "current.machine", for errors
	outer  protoreflect.FieldDescriptor // nil if the object is a field of the request itself
	object protoreflect.FieldDescriptor
	raw    protoreflect.FieldDescriptor
	// patched is set for the object that Cluster API applies the answer's patch to, the current one.
	patched bool
}

// Concern reports whether requests of a type have objects that may have to be converted. No Objects concern none.
func (o *Objects) Concern(request protoreflect.MessageDescriptor) bool {
	return o != nil && len(o.layoutOf(request).spots) > 0
}

// layoutOf returns the layout of a message type, which it makes once.
func (o *Objects) layoutOf(d protoreflect.MessageDescriptor) *layout {
	if l, ok := o.messages.Load(d.FullName()); ok {
		return l.(*layout)
	}
	l := &layout{}
	if strings.HasPrefix(string(d.Name()), "Before") || strings.HasPrefix(string(d.Name()), "After") {
		l.unstated = V1Beta1 // what Cluster API v1.12 sends
	}
	o.addSpots(l, d, nil)
	o.messages.Store(d.FullName(), l)
	return l
}

func (o *Objects) addSpots(l *layout, d protoreflect.MessageDescriptor, outer protoreflect.FieldDescriptor) {
	fields := d.Fields()
	for i := range fields.Len() {
		fd := fields.Get(i)
		if fd.Kind() != protoreflect.MessageKind || fd.IsList() || fd.IsMap() {
			continue
		}
		k := o.kinds[fd.JSONName()]
		switch {
		case fd.Message().Name() == "RawExtension" && k != nil:
			s := spot{kind: k, at: fd.JSONName(), outer: outer, object: fd, raw: fd.Message().Fields().ByName("raw")}
			if outer != nil {
				s.at = outer.JSONName() + "." + s.at
				s.patched = outer.Name() == "current"
			}
			l.spots = append(l.spots, s)
		case outer == nil && (fd.Name() == "current" || fd.Name() == "desired" || fd.Name() == "subject"):
			o.addSpots(l, fd.Message(), fd)
		}
	}
}

// Request converts the objects of group cluster.x-k8s.io in a request to the version that a handler understands,
// V1Beta1 or V1Beta2; for "" it converts nothing. An object states its version itself. A Cluster in a lifecycle hook
// that states neither version nor kind has version v1beta1, because Cluster API v1.12 sends such. Request does not
// change req.
//
// Its errors are of kind InvalidRequest if an object does not match its type, TooLarge if it has more than
// limits.ObjectElements elements, and Conversion if it cannot be converted.
func (o *Objects) Request(req proto.Message, to string) (Converted, error) {
	return o.RequestGuarded(jsonpatch.Guard{}, req, to)
}

// RequestGuarded is like Request, under a Guard, and Response of its result is, too. The error may also be one of the
// Guard.
func (o *Objects) RequestGuarded(g jsonpatch.Guard, req proto.Message, to string) (Converted, error) {
	c := Converted{Message: req, objects: o, guard: g, to: to}
	if to == "" {
		return c, nil
	}
	m := req.ProtoReflect()
	l := o.layoutOf(m.Descriptor())
	if len(l.spots) == 0 {
		return c, nil
	}
	if to != V1Beta1 && to != V1Beta2 {
		return Converted{}, hook.Errorf(hook.Conversion,
			"convert the request: version %q of %s, which is stated for the handler, does not exist; state %s or %s",
			to, group, V1Beta1, V1Beta2)
	}
	var lost lossSet
	copied := m
	for i := range l.spots {
		s := &l.spots[i]
		raw := s.get(m)
		from, err := source(raw, s.kind, s.at, to, l.unstated)
		if err != nil {
			return Converted{}, err
		}
		if from == "" {
			continue
		}
		converted, err := o.convertObject(g, raw, s.kind, from, s.at, &lost)
		if err != nil {
			return Converted{}, err
		}
		if copied == m {
			copied = shallow(m)
		}
		s.set(copied, m, converted)
		if s.patched {
			c.current = &seen{kind: s.kind, at: s.at, from: from, to: to, caller: raw, handler: converted}
		}
	}
	c.Message, c.Losses = copied.Interface(), lost.sorted()
	return c, nil
}

// get returns the object, or nil.
func (s *spot) get(m protoreflect.Message) []byte {
	if s.outer != nil {
		if !m.Has(s.outer) {
			return nil
		}
		m = m.Get(s.outer).Message()
	}
	if !m.Has(s.object) {
		return nil
	}
	return m.Get(s.object).Message().Get(s.raw).Bytes()
}

// set puts an object into m, a shallow copy of from. It copies the message around the object, unless another object
// in that was set before.
func (s *spot) set(m, from protoreflect.Message, object []byte) {
	if s.outer != nil {
		inner := from.Get(s.outer).Message()
		if now := m.Get(s.outer).Message(); now.Interface() == inner.Interface() {
			m.Set(s.outer, protoreflect.ValueOfMessage(shallow(inner)))
		}
		m = m.Get(s.outer).Message()
	}
	holder := shallow(m.Get(s.object).Message())
	holder.Set(s.raw, protoreflect.ValueOfBytes(object))
	m.Set(s.object, protoreflect.ValueOfMessage(holder))
}

// shallow returns a message that shares all fields with m, including unknown ones.
func shallow(m protoreflect.Message) protoreflect.Message {
	c := catalog.Shallow(m)
	if unknown := m.GetUnknown(); len(unknown) > 0 {
		c.SetUnknown(unknown)
	}
	return c
}
