// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"

	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/contract/jsonscan"
)

// errNotJSON means that a request is not what its Request was promised.
var errNotJSON = errors.New("the request is not valid JSON")

// object is a JSON object, whose members are found when one of them is first selected.
type object struct {
	r      *Request
	text   []byte
	encode func(member string) ([]byte, error) // of a request that is a message; nil once all of it is JSON
	parts  map[string]*object                  // what encode has returned

	charged int // the evaluation that has paid for the search
	found   bool
	members []member
	unique  bool // whether no name occurs twice in members
}

var _ traits.Mapper = (*object)(nil)

// member is a member of an object: where its name and its value are in the text, and its value once it was selected.
type member struct {
	name, colon, start, end int32
	value                   ref.Val
}

// search finds the members.
func (o *object) search() {
	if o.encode != nil {
		o.text = o.r.encoded(o.encode, "")
		o.encode, o.parts = nil, nil
	}
	if o.charged != o.r.evaluation {
		o.charged = o.r.evaluation
		o.r.look(len(o.text))
	}
	if o.found {
		return
	}
	s := jsonscan.Scanner{Text: o.text, Step: o.r.Step}
	for i, first := 0, true; ; first = false {
		start, more, err := s.Next(i, first, '}')
		if err == nil && !more {
			break
		}
		m := member{name: int32(start)}
		var nameEnd, value int
		if err == nil {
			nameEnd, value, err = s.Name(start)
		}
		if err == nil {
			i, err = s.Value(value, 1)
		}
		if err != nil {
			o.r.abort(err)
		}
		m.colon, m.start, m.end = int32(nameEnd), int32(value), int32(i)
		o.add(m)
	}
	o.found = true
}

// add adds a member, after the memory for it was reserved.
func (o *object) add(m member) {
	n := len(o.members)
	if n >= limits.Elements {
		o.r.abort(ErrTooMany)
	}
	if n == cap(o.members) {
		o.r.take(max(8, 2*n) * memberCost)
		o.members = slices.Grow(o.members, max(8, n))
	}
	o.members = append(o.members, m)
}

// encoded returns JSON of a message.
func (r *Request) encoded(encode func(string) ([]byte, error), member string) []byte {
	text, err := encode(member)
	if err != nil {
		r.abort(err)
	}
	return text
}

// distinct finds the members and forgets those whose name occurs again, because the last one counts.
func (o *object) distinct() []member {
	o.search()
	if !o.unique {
		o.r.take(len(o.members) * keyCost)
		last := make(map[string]int, len(o.members))
		for i := range o.members {
			last[o.name(&o.members[i])] = i
		}
		all := o.members
		o.members = o.members[:0]
		for i := range all {
			if m := all[i]; last[o.name(&m)] == i {
				o.members = append(o.members, m)
			}
		}
		o.unique = true
	}
	return o.members
}

func (o *object) name(m *member) string { return o.r.str(o.text[m.name:m.colon]) }

// at returns the value of a member.
func (o *object) at(m *member) ref.Val {
	if m.value == nil {
		m.value = o.r.value(o.text[m.start:m.end:m.end])
	}
	return m.value
}

// Find returns the value of the member with that name.
func (o *object) Find(key ref.Val) (ref.Val, bool) {
	name, ok := key.(types.String)
	if !ok {
		return nil, false
	}
	if o.encode != nil {
		part, ok := o.parts[string(name)]
		if !ok {
			part = &object{r: o.r, text: o.r.encoded(o.encode, string(name))}
			if o.parts == nil {
				o.parts = map[string]*object{}
			}
			o.r.take(keyCost)
			o.parts[string(name)] = part
		}
		return part.Find(key)
	}
	o.search()
	o.r.look(8 * len(o.members))
	for i := range slices.Backward(o.members) {
		if m := &o.members[i]; jsonscan.Equal(o.text[m.name:m.colon], string(name)) {
			return o.at(m), true
		}
	}
	return nil, false
}

// Get returns the value of the member with that name, or an error.
func (o *object) Get(key ref.Val) ref.Val {
	if v, ok := o.Find(key); ok {
		return v
	}
	return types.ValOrErr(key, "no such key: %v", key)
}

// Contains reports whether there is a member of that name.
func (o *object) Contains(key ref.Val) ref.Val {
	_, ok := o.Find(key)
	return types.Bool(ok)
}

// Size returns the number of members.
func (o *object) Size() ref.Val { return types.Int(len(o.distinct())) }

// Iterator iterates over the names of the members, in the order of the text.
func (o *object) Iterator() traits.Iterator {
	members := o.distinct()
	return &iterator{next: func() ref.Val {
		if len(members) == 0 {
			return nil
		}
		o.r.take(valueCost)
		name := types.String(o.name(&members[0]))
		members = members[1:]
		return name
	}}
}

// Equal reports whether other is a map with equal entries.
func (o *object) Equal(other ref.Val) ref.Val {
	m, ok := other.(traits.Mapper)
	if !ok || o.Size() != m.Size() {
		return types.False
	}
	for i := range o.distinct() {
		mine := &o.members[i]
		theirs, ok := m.Find(types.String(o.name(mine)))
		if !ok || types.Equal(o.at(mine), theirs) != types.True {
			return types.False
		}
	}
	return types.True
}

// ConvertToNative returns an error: nothing needs the decoded object.
func (o *object) ConvertToNative(to reflect.Type) (any, error) { return unsupported(o, to) }

// ConvertToType converts to a map or to the type.
func (o *object) ConvertToType(to ref.Type) ref.Val { return convert(o, to) }

// Type returns the type of maps.
func (*object) Type() ref.Type { return types.MapType }

// Value returns o.
func (o *object) Value() any { return o }

// list is a JSON array.
type list struct {
	r    *Request
	text []byte
	size int // -1 before it was counted

	charged int // the evaluation that has paid for counting
	// The element that was selected last, and what is behind it.
	index int
	value ref.Val
	rest  *iterator
}

var _ traits.Lister = (*list)(nil)

// Iterator iterates over the elements.
func (l *list) Iterator() traits.Iterator {
	return l.elements(func(start, end int) ref.Val { return l.r.value(l.text[start:end:end]) })
}

// elements iterates over what value makes of the place of each element.
func (l *list) elements(value func(start, end int) ref.Val) *iterator {
	s := jsonscan.Scanner{Text: l.text, Step: l.r.Step}
	i, first := 0, true
	return &iterator{next: func() ref.Val {
		start, more, err := s.Next(i, first, ']')
		if err == nil && !more {
			return nil
		}
		end := start
		if err == nil {
			end, err = s.Value(start, 1)
		}
		if err != nil {
			l.r.abort(err)
		}
		l.r.look(end - i)
		i, first = end, false
		return value(start, end)
	}}
}

// whole returns a list with the elements of l, for functions that read them more than once.
func (l *list) whole() ref.Val {
	var all []ref.Val
	for it := l.Iterator(); it.HasNext() == types.True; {
		all = append(all, it.Next()) // what it takes is part of valueCost
	}
	return types.NewRefValList(types.DefaultTypeAdapter, all)
}

// Size returns the number of elements.
func (l *list) Size() ref.Val {
	if l.size >= 0 {
		if l.charged != l.r.evaluation {
			l.charged = l.r.evaluation
			l.r.look(len(l.text))
		}
		return types.Int(l.size)
	}
	n := 0
	for it := l.elements(func(int, int) ref.Val { return types.NullValue }); it.HasNext() == types.True; it.Next() {
		n++
	}
	l.size, l.charged = n, l.r.evaluation
	return types.Int(n)
}

// Get returns the element at an index. Reading one after the other passes through the text once.
func (l *list) Get(index ref.Val) ref.Val {
	i, err := types.IndexOrError(index)
	if err != nil {
		return types.ValOrErr(index, "%v", err)
	}
	if l.rest == nil || i < l.index {
		l.index, l.value = -1, nil
		l.rest = l.elements(func(start, end int) ref.Val { return l.r.value(l.text[start:end:end]) })
	}
	for ; l.index < i; l.index++ {
		if l.rest.HasNext() != types.True {
			l.rest = nil
			return types.NewErr("index out of bounds: %d", i)
		}
		l.value = l.rest.Next()
	}
	return l.value
}

// Contains reports whether an element is equal to a value.
func (l *list) Contains(value ref.Val) ref.Val {
	for it := l.Iterator(); it.HasNext() == types.True; {
		if types.Equal(value, it.Next()) == types.True {
			return types.True
		}
	}
	return types.False
}

// Equal reports whether other is a list of equal elements.
func (l *list) Equal(other ref.Val) ref.Val {
	theirs, ok := other.(traits.Lister)
	if !ok || l.Size() != theirs.Size() {
		return types.False
	}
	for a, b := l.Iterator(), theirs.Iterator(); a.HasNext() == types.True; {
		if types.Equal(a.Next(), b.Next()) != types.True {
			return types.False
		}
	}
	return types.True
}

// Add returns the elements of both lists.
func (l *list) Add(other ref.Val) ref.Val {
	var all []ref.Val
	for it := l.Iterator(); it.HasNext() == types.True; {
		all = append(all, it.Next())
	}
	return types.DefaultTypeAdapter.NativeToValue(all).(traits.Adder).Add(other)
}

// ConvertToNative returns an error: nothing needs the decoded list.
func (l *list) ConvertToNative(to reflect.Type) (any, error) { return unsupported(l, to) }

// ConvertToType converts to a list or to the type.
func (l *list) ConvertToType(to ref.Type) ref.Val { return convert(l, to) }

// Type returns the type of lists.
func (*list) Type() ref.Type { return types.ListType }

// Value returns l.
func (l *list) Value() any { return l }

// iterator iterates over what next returns, until it returns nil.
type iterator struct {
	ref.Val // of which CEL uses nothing
	next    func() ref.Val
	ready   ref.Val
}

var _ traits.Iterator = (*iterator)(nil)

// HasNext reports whether there is another value.
func (it *iterator) HasNext() ref.Val {
	if it.ready == nil {
		it.ready = it.next()
	}
	return types.Bool(it.ready != nil)
}

// Next returns the next value.
func (it *iterator) Next() ref.Val {
	if it.HasNext() != types.True {
		return nil
	}
	v := it.ready
	it.ready = nil
	return v
}

func convert(v ref.Val, to ref.Type) ref.Val {
	switch to {
	case v.Type():
		return v
	case types.TypeType:
		return v.Type().(*types.Type)
	}
	return types.NewErr("type conversion error from '%s' to '%s'", v.Type().TypeName(), to.TypeName())
}

func unsupported(v ref.Val, to reflect.Type) (any, error) {
	return nil, fmt.Errorf("type conversion error from %q to %q", v.Type().TypeName(), to)
}
