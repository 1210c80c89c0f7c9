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
)

// The versions of Cluster API's objects, of group cluster.x-k8s.io.
const (
	V1Beta1 = hook.ClusterAPIV1Beta1
	V1Beta2 = hook.ClusterAPIV1Beta2
)

// Objects converts the objects that requests of hooks embed. It is immutable and safe for concurrent use.
type Objects struct {
	refs     *References
	kinds    map[string]*kind
	messages sync.Map // *layout by protoreflect.FullName
}

// Converted is a request as a handler reads it, and what is needed to bring the answer back. It may share memory with the
// request that it was made from.
type Converted struct {
	// Message is the request: the very message that was given if nothing in it had to be converted.
	Message proto.Message
	// Losses are the paths of members of the objects that the handler's version cannot express, in order, each once: the kind of object
	// in lower camel case, then the names of members, with [*] for indices of lists and keys of maps, as in
	// "cluster.spec.topology.variables[*].definitionFrom". For one message there are only as many as types have members, and those
	// that no type knows.
	Losses []string

	objects *Objects
	to      string
	current *seen // what patches of the answer are for; nil if it was not converted
}

// seen is an object in the caller's version, and as the handler sees it.
type seen struct {
	kind     *kind
	at       string
	from, to string
	caller   []byte
	handler  []byte
}

// NewObjects returns Objects that ask refs for the versions of references.
func NewObjects(refs *References) *Objects {
	o := &Objects{refs: refs, kinds: map[string]*kind{}}
	for _, k := range kinds() {
		o.kinds[k.path] = k
	}
	return o
}

// layout says where a message has objects.
type layout struct {
	spots    []spot
	unstated string // the version of an object that does not say what it is
}

// spot is where an object is in a message.
type spot struct {
	kind   *kind
	at     string                       // "current.machine", for messages
	outer  protoreflect.FieldDescriptor // nil if the object is a field of the request itself
	object protoreflect.FieldDescriptor
	raw    protoreflect.FieldDescriptor
	// patched tells whether the answer's patch is for this one: Cluster API applies it to the current object.
	patched bool
}

// layoutOf reads a descriptor, once.
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
		case outer == nil && (fd.Name() == "current" || fd.Name() == "desired"):
			o.addSpots(l, fd.Message(), fd)
		}
	}
}

// Request converts the objects of group cluster.x-k8s.io in a request to the version that a handler understands, V1Beta1 or
// V1Beta2; with "" nothing is converted. Which version an object has, it says itself. A Cluster in a lifecycle hook that says
// neither version nor kind is one of v1beta1: that is how Cluster API v1.12 sends it. req is never changed.
//
// Errors are of kind InvalidRequest if an object is not what it says it is, and Conversion if it cannot be converted.
func (o *Objects) Request(req proto.Message, to string) (Converted, error) {
	c := Converted{Message: req, objects: o, to: to}
	if to == "" {
		return c, nil
	}
	m := req.ProtoReflect()
	l := o.layoutOf(m.Descriptor())
	if len(l.spots) == 0 {
		return c, nil
	}
	if to != V1Beta1 && to != V1Beta2 {
		return Converted{}, hook.Errorf(hook.Conversion, "convert the request: the handler is said to understand version %q of %s, and there are only %s and %s",
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
		converted, err := o.convertObject(raw, s.kind, from, s.at, &lost)
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

// get returns the object, nil if there is none.
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

// set puts an object into m, a shallow copy of from: what it is in is copied too, unless another object was put there already.
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

// shallow returns a message that shares all its fields with m, those that this program does not know too.
func shallow(m protoreflect.Message) protoreflect.Message {
	c := catalog.Shallow(m)
	if unknown := m.GetUnknown(); len(unknown) > 0 {
		c.SetUnknown(unknown)
	}
	return c
}
