// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package jsonscan

import "bytes"

// Lookup returns the value at a path of member names in raw, a valid JSON object, as in Lookup(cluster, "metadata",
// "namespace"). The value aliases raw. Where a name occurs twice in one object, the last one counts, as in
// encoding/json, so that the gateway selects by the value that the extension sees. ok is false if the member does not
// exist, or if the scan finds invalid JSON.
func Lookup(raw []byte, path ...string) (value []byte, ok bool) {
	s := Scanner{Text: raw}
	i := Space(raw, 0)
	for depth, name := range path {
		if i, ok = s.find(i, depth, name); !ok {
			return nil, false
		}
	}
	end, err := s.Value(i, len(path))
	if err != nil {
		return nil, false
	}
	return raw[i:end:end], true
}

// find returns the index of the value of the last member of that name in the object that begins at i.
func (s *Scanner) find(i, depth int, name string) (found int, ok bool) {
	if s.At(i) != '{' {
		return i, false
	}
	found = -1
	for first := true; ; first = false {
		start, more, err := s.Next(i, first, '}')
		if err != nil || !more {
			return found, err == nil && found >= 0
		}
		end, value, err := s.Name(start)
		if err != nil {
			return value, false
		}
		if Equal(s.Text[start:end], name) {
			found = value
		}
		if i, err = s.Value(value, depth+1); err != nil {
			return i, false
		}
	}
}

// Equal reports whether literal, a valid string with its quotes, is the encoding of text.
func Equal(literal []byte, text string) bool {
	inside := literal[1 : len(literal)-1]
	if bytes.IndexByte(inside, '\\') < 0 {
		return string(inside) == text
	}
	plain, ok := Unescape(inside)
	return ok && string(plain) == text
}

// String returns the text of a string literal, as Lookup returns it. ok is false if value is something else, or holds
// text that is not Unicode.
func String(value []byte) (text string, ok bool) {
	if len(value) < 2 || value[0] != '"' {
		return "", false
	}
	s := Scanner{Text: value}
	b, end, err := s.String(0)
	if err != nil || end != len(value) || s.UTF8() != nil {
		return "", false
	}
	return string(b), true
}
