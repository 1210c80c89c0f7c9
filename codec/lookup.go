// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package codec

import "bytes"

// Lookup returns the value at a path of member names in raw, a valid JSON object, as in
// Lookup(cluster, "metadata", "namespace"). It does not copy: the value aliases raw. Where a name stands twice in one
// object, the last one counts, as for Go's decoder: what the gateway selects by must be what the extension sees. It tells
// false if there is no such member, or if it comes upon something that is not valid.
func Lookup(raw []byte, path ...string) ([]byte, bool) {
	s := scanner{b: raw}
	i := space(raw, 0)
	for depth, name := range path {
		var ok bool
		if i, ok = s.find(i, depth, name); !ok {
			return nil, false
		}
	}
	end, err := s.value(i, len(path))
	if err != nil {
		return nil, false
	}
	return raw[i:end:end], true
}

// find returns the index of the value of the last member of that name of the object that begins at i.
func (s *scanner) find(i, depth int, name string) (int, bool) {
	b := s.b
	found := -1
	if i >= len(b) || b[i] != '{' {
		return i, false
	}
	for {
		i = space(b, i+1)
		start := i
		if i >= len(b) || b[i] != '"' {
			return i, false
		}
		end, err := s.str(i + 1)
		if err != nil {
			return i, false
		}
		if i, err = s.colon(end); err != nil {
			return i, false
		}
		if is(b[start:end], name) {
			found = i
		}
		if i, err = s.value(i, depth+1); err != nil {
			return i, false
		}
		if i = space(b, i); i >= len(b) || b[i] != ',' {
			return found, found >= 0 && i < len(b) && b[i] == '}'
		}
	}
}

// is tells whether a string literal stands for text.
func is(literal []byte, text string) bool {
	inside := literal[1 : len(literal)-1]
	if bytes.IndexByte(inside, '\\') < 0 {
		return string(inside) == text
	}
	plain, ok := unescape(inside)
	return ok && string(plain) == text
}

// String returns the text of a JSON string literal, as Lookup returns it. It tells false if value is something else, or
// holds text that is not Unicode.
func String(value []byte) (string, bool) {
	if len(value) < 2 || value[0] != '"' {
		return "", false
	}
	d := decoder{scanner: scanner{b: value}}
	text, end, err := d.text(0)
	if err != nil || end != len(value) || d.utf8() != nil {
		return "", false
	}
	return string(text), true
}
