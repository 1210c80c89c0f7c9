// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"reflect"
	"strings"

	corev1 "k8s.io/api/core/v1"
	clusterv1beta1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/hookgate/hookgate/internal/contract/jsonscan"
)

// place is a tree of the members that the types do not know, by the object that they belong to. It is laid over the
// JSON of the other version.
type place struct {
	steps   []step // in the order of their first member
	below   map[step]*place
	members []member
}

// add puts a member where it belongs.
func (p *place) add(m member) {
	for _, s := range m.path {
		next := p.below[s]
		if next == nil {
			next = &place{}
			if p.below == nil {
				p.below = map[step]*place{}
			}
			p.below[s] = next
			p.steps = append(p.steps, s)
		}
		p = next
	}
	p.members = append(p.members, m)
}

// belongs reports whether the object around m exists in the other version as the same thing, and has no member of
// that name there, which would have another meaning.
func belongs(m member, from, to reflect.Type) bool {
	for _, s := range m.path {
		from, to = pointedTo(from), pointedTo(to)
		if from.Kind() != to.Kind() || isLeaf(to) {
			return false
		}
		if from.Kind() != reflect.Struct {
			from, to = from.Elem(), to.Elem()
			continue
		}
		other := fieldsOf(to).byName[s.name]
		if other == nil {
			return false
		}
		from, to = fieldsOf(from).byName[s.name].typ, other.typ
	}
	from, to = pointedTo(from), pointedTo(to)
	return to.Kind() == reflect.Struct && !isLeaf(to) && sameThing(from, to) && fieldsOf(to).byName[m.name] == nil
}

var (
	oldPackage = reflect.TypeFor[clusterv1beta1.Cluster]().PkgPath()
	hubPackage = reflect.TypeFor[clusterv1.Cluster]().PkgPath()
)

// sameThing reports whether two types are two versions of one type. Types at one path need not be: status.conditions
// are the old conditions in v1beta1 and the new ones in v1beta2.
func sameThing(a, b reflect.Type) bool {
	if a == b {
		return true
	}
	ours := func(t reflect.Type) bool { return t.PkgPath() == oldPackage || t.PkgPath() == hubPackage }
	reference := func(t reflect.Type) bool {
		switch t {
		case reflect.TypeFor[corev1.ObjectReference](), reflect.TypeFor[clusterv1.ContractVersionedObjectReference](),
			reflect.TypeFor[clusterv1.MachineNodeReference]():
			return true
		}
		return false
	}
	return a.Name() == b.Name() && ours(a) && ours(b) || reference(a) && reference(b)
}

// onto appends the value at i to out, together with the members of p, and returns the index after the value. It adds
// objects that the text leaves out because they are otherwise empty, and calls lost for members without a place. The
// text must be valid JSON.
func (p *place) onto(out []byte, s *jsonscan.Scanner, i int, lost func(member)) ([]byte, int) {
	switch s.At(i) {
	case '{':
		return p.ontoObject(out, s, i, lost)
	case '[':
		return p.ontoList(out, s, i, lost)
	}
	after, _ := s.Value(i, 0)
	if string(s.Text[i:after]) == "null" && !p.hasElements() {
		return p.made(out, lost), after
	}
	p.all(lost)
	return append(out, s.Text[i:after]...), after
}

// made appends an object with the members of p alone.
func (p *place) made(out []byte, lost func(member)) []byte {
	out, _ = p.ontoObject(out, &jsonscan.Scanner{Text: []byte("{}")}, 0, lost)
	return out
}

func (p *place) ontoObject(out []byte, s *jsonscan.Scanner, i int, lost func(member)) ([]byte, int) {
	out = append(out, '{')
	start := len(out)
	seen := map[step]bool{}
	i, _ = members(s, i, func(name, end, i int) (int, error) {
		out = separated(out, start)
		out = append(append(out, s.Text[name:end]...), ':')
		at := step{name: unquote(s.Text[name:end]), index: isMember}
		if p.below[at] == nil {
			at.index = isKey
		}
		if below := p.below[at]; below != nil {
			seen[at] = true
			out, i = below.onto(out, s, i, lost)
			return i, nil
		}
		after, err := s.Value(i, 0)
		out = append(out, s.Text[i:after]...)
		return after, err
	})
	for _, at := range p.steps {
		if seen[at] {
			continue
		}
		if at.index != isMember {
			p.below[at].all(lost)
			continue
		}
		before := len(out)
		out = append(jsonscan.AppendString(separated(out, start), at.name), ':')
		made := len(out)
		if out = p.below[at].made(out, lost); len(out) == made+len("{}") {
			out = out[:before] // everything in it was lost
		}
	}
	for _, m := range p.members {
		out = separated(out, start)
		out = append(append(append(out, m.key...), ':'), m.value...)
	}
	return append(out, '}'), i
}

func (p *place) ontoList(out []byte, s *jsonscan.Scanner, i int, lost func(member)) ([]byte, int) {
	out = append(out, '[')
	start, count := len(out), 0
	i, _ = elements(s, i, func(n, i int) (int, error) {
		count = n + 1
		out = separated(out, start)
		if below := p.below[step{index: n}]; below != nil {
			out, i = below.onto(out, s, i, lost)
			return i, nil
		}
		after, err := s.Value(i, 0)
		out = append(out, s.Text[i:after]...)
		return after, err
	})
	for _, at := range p.steps {
		if at.index >= count || at.index < 0 {
			p.below[at].all(lost)
		}
	}
	return append(out, ']'), i
}

func (p *place) hasElements() bool {
	for _, s := range p.steps {
		if s.index != isMember {
			return true
		}
	}
	return false
}

// all calls f with every member.
func (p *place) all(f func(member)) {
	for _, m := range p.members {
		f(m)
	}
	for _, s := range p.steps {
		p.below[s].all(f)
	}
}

// separated appends a comma unless the object or list whose content begins at start is empty.
func separated(out []byte, start int) []byte {
	if len(out) > start {
		out = append(out, ',')
	}
	return out
}

// lossOf returns the path of a member.
func (m member) lossOf() string {
	path := pathOf(m.path)
	if path != "" {
		path += "."
	}
	return path + shortened(m.name)
}

// shortened returns a name that a caller chose if it is short and plain, and [*] otherwise.
func shortened(name string) string {
	const long = 64
	allowed := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_/$", r)
	}
	if name == "" || len(name) > long || strings.ContainsFunc(name, func(r rune) bool { return !allowed(r) }) {
		return "[*]"
	}
	return name
}
