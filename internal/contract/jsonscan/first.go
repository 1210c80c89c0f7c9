// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package jsonscan

// First sets values to those of the named members of the object at a path of raw, as Lookup returns them, or to nil. It
// reads no further than it must: of a member that occurs twice, it takes the first, where Lookup returns an error.
func First(raw []byte, path, names []string, values [][]byte) {
	clear(values)
	s := Scanner{Text: raw}
	i := Space(raw, 0)
	for depth := range path {
		var ok bool
		if i, ok = s.first(i, path[depth:depth+1], nil); !ok {
			return
		}
	}
	s.first(i, names, values)
}

// first returns the index of the value of the first of the named members in the object that begins at i. With values,
// it sets these instead, until it has all.
func (s *Scanner) first(i int, names []string, values [][]byte) (at int, ok bool) {
	if s.At(i) != '{' {
		return i, false
	}
	for left, first := len(names), true; left > 0; first = false {
		start, more, bad := s.Next(i, first, '}')
		if bad != nil || !more {
			return i, false
		}
		end, value, bad := s.Name(start)
		if bad != nil {
			return i, false
		}
		which := named(s.Text[start:end], names, values)
		if which >= 0 && values == nil {
			return value, true
		}
		if i, bad = s.Value(value, 1); bad != nil {
			return i, false
		}
		if which >= 0 {
			values[which] = s.Text[value:i:i]
			left--
		}
	}
	return i, true
}

// named returns which of the names, of those without a value, a literal is, or -1.
func named(literal []byte, names []string, values [][]byte) int {
	for n, name := range names {
		if Equal(literal, name) && (values == nil || values[n] == nil) {
			return n
		}
	}
	return -1
}
