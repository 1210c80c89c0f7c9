// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package jsonscan

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
)

// Lookup returns the value at a path of member names in raw, a valid JSON object, as in Lookup(cluster, "metadata",
// "namespace"). The value aliases raw. It is nil if the member does not exist, or if the scan finds invalid JSON.
//
// An error names a member on the path that occurs twice, or whose name differs from the wanted one only in case: Go's
// encoding/json takes that for the same member and other decoders do not, so that the gateway could select by another
// value than the extension sees.
func Lookup(raw []byte, path ...string) (value []byte, err error) {
	s := Scanner{Text: raw}
	i := Space(raw, 0)
	for depth := range path {
		var ok bool
		if i, ok, err = s.find(i, path[:depth+1]); !ok {
			return nil, err
		}
	}
	end, bad := s.Value(i, len(path))
	if bad != nil {
		return nil, nil //nolint:nilerr // invalid JSON has no members
	}
	return raw[i:end:end], nil
}

// find returns the index of the value of the member that path ends with, in the object that begins at i. An error is
// one of Lookup.
func (s *Scanner) find(i int, path []string) (found int, ok bool, err error) {
	if s.At(i) != '{' {
		return i, false, nil
	}
	parents, name := path[:len(path)-1], path[len(path)-1]
	found = -1
	for first := true; ; first = false {
		start, more, bad := s.Next(i, first, '}')
		if bad != nil || !more {
			return found, bad == nil && found >= 0, nil
		}
		end, value, bad := s.Name(start)
		if bad != nil {
			return value, false, nil //nolint:nilerr // as above
		}
		switch literal := s.Text[start:end]; {
		case !equalFold(literal, name):
		case !Equal(literal, name):
			twin, _ := Unescape(literal[1 : len(literal)-1])
			return value, false, fmt.Errorf("%s: differs from %q only in case",
				strings.Join(append(slices.Clip(parents), string(twin)), "."), name)
		case found >= 0:
			return value, false, fmt.Errorf("%s: occurs twice in one object", strings.Join(path, "."))
		default:
			found = value
		}
		if i, bad = s.Value(value, len(path)); bad != nil {
			return i, false, nil //nolint:nilerr // as above
		}
	}
}

// equalFold reports whether literal, a valid string with its quotes, is the encoding of text, in any case.
func equalFold(literal []byte, text string) bool {
	inside := literal[1 : len(literal)-1]
	if len(inside) < len(text) { // no letter is shorter in another case than in ASCII
		return false
	}
	if bytes.IndexByte(inside, '\\') >= 0 {
		inside, _ = Unescape(inside)
	}
	return bytes.EqualFold(inside, []byte(text))
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
