// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// maxDepth bounds how deep objects and lists may nest, so that no text can exhaust the stack.
const maxDepth = 1000

// text reads JSON in place. Its methods take the index at which to go on and return the one after what they have read. They
// accept exactly what encoding/json accepts, so that what was read once need not be checked again.
type text []byte

// syntaxError tells that a text is not JSON.
type syntaxError struct {
	at   int
	want string
}

func (e *syntaxError) Error() string {
	return fmt.Sprintf("not valid JSON at byte %d: expected %s", e.at, e.want)
}

func (t text) expected(i int, want string) (int, error) { return i, &syntaxError{i, want} }

// space returns the index of the first byte at or after i that is not white space.
func (t text) space(i int) int {
	for i < len(t) && (t[i] == ' ' || t[i] == '\n' || t[i] == '\t' || t[i] == '\r') {
		i++
	}
	return i
}

// at returns the byte at i, 0 behind the end.
func (t text) at(i int) byte {
	if i < len(t) {
		return t[i]
	}
	return 0
}

// value skips the value that begins at i.
func (t text) value(i, depth int) (int, error) {
	switch c := t.at(i); {
	case c == '{':
		return t.object(i, depth, func(_, _, i int) (int, error) { return t.value(i, depth+1) })
	case c == '[':
		return t.list(i, depth, func(_, i int) (int, error) { return t.value(i, depth+1) })
	case c == '"':
		end, _, err := t.str(i)
		return end, err
	case c == 't':
		return t.literal(i, "true")
	case c == 'f':
		return t.literal(i, "false")
	case c == 'n':
		return t.literal(i, "null")
	case c == '-' || c >= '0' && c <= '9':
		return t.number(i)
	}
	return t.expected(i, "a value")
}

// object reads the object that begins at i: member is called with the start and end of each name, quotes included, and the
// index of its value, and returns the index after it.
func (t text) object(i, depth int, member func(name, end, value int) (int, error)) (int, error) {
	if depth > maxDepth {
		return t.expected(i, "fewer levels")
	}
	if t.at(i) != '{' {
		return t.expected(i, "an object")
	}
	if i = t.space(i + 1); t.at(i) == '}' {
		return i + 1, nil
	}
	for {
		name := i
		end, _, err := t.str(i)
		if err != nil {
			return end, err
		}
		if i = t.space(end); t.at(i) != ':' {
			return t.expected(i, "a colon")
		}
		if i, err = member(name, end, t.space(i+1)); err != nil {
			return i, err
		}
		switch i = t.space(i); t.at(i) {
		case ',':
			i = t.space(i + 1)
		case '}':
			return i + 1, nil
		default:
			return t.expected(i, "a comma or the end of the object")
		}
	}
}

// list reads the list that begins at i: element is called with the number of each element and its index.
func (t text) list(i, depth int, element func(n, i int) (int, error)) (int, error) {
	if depth > maxDepth {
		return t.expected(i, "fewer levels")
	}
	if t.at(i) != '[' {
		return t.expected(i, "a list")
	}
	if i = t.space(i + 1); t.at(i) == ']' {
		return i + 1, nil
	}
	for n := 0; ; n++ {
		var err error
		if i, err = element(n, i); err != nil {
			return i, err
		}
		switch i = t.space(i); t.at(i) {
		case ',':
			i = t.space(i + 1)
		case ']':
			return i + 1, nil
		default:
			return t.expected(i, "a comma or the end of the list")
		}
	}
}

// str skips the string that begins at i, and tells whether its text is what stands between the quotes.
func (t text) str(i int) (end int, plain bool, err error) {
	if t.at(i) != '"' {
		end, err = t.expected(i, "a string")
		return end, false, err
	}
	plain = true
	for i++; i < len(t); i++ {
		switch c := t[i]; {
		case c == '"':
			return i + 1, plain, nil
		case c == '\\':
			plain = false
			i++
			switch t.at(i) {
			case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
			case 'u':
				for range 4 {
					i++
					if c := t.at(i) | 0x20; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
						end, err = t.expected(i, "four hexadecimal digits")
						return end, false, err
					}
				}
			default:
				end, err = t.expected(i, "an escape")
				return end, false, err
			}
		case c < ' ':
			end, err = t.expected(i, "a string without control characters")
			return end, false, err
		case c >= 0x80:
			plain = false // may not be UTF-8
		}
	}
	end, err = t.expected(i, "the end of the string")
	return end, false, err
}

func (t text) literal(i int, want string) (int, error) {
	if len(t)-i < len(want) || string(t[i:i+len(want)]) != want {
		return t.expected(i, want)
	}
	return i + len(want), nil
}

func (t text) number(i int) (int, error) {
	if t[i] == '-' {
		i++
	}
	var err error
	if t.at(i) == '0' {
		i++
	} else if i, err = t.digits(i); err != nil {
		return i, err
	}
	if t.at(i) == '.' {
		if i, err = t.digits(i + 1); err != nil {
			return i, err
		}
	}
	if t.at(i) == 'e' || t.at(i) == 'E' {
		if i++; t.at(i) == '+' || t.at(i) == '-' {
			i++
		}
		return t.digits(i)
	}
	return i, nil
}

func (t text) digits(i int) (int, error) {
	start := i
	for t.at(i) >= '0' && t.at(i) <= '9' {
		i++
	}
	if i == start {
		return t.expected(i, "a digit")
	}
	return i, nil
}

// unquote returns the text of the string between start and end, quotes included.
func (t text) unquote(start, end int) string {
	s := t[start+1 : end-1]
	for _, c := range s {
		if c == '\\' || c >= 0x80 {
			var out string
			_ = json.Unmarshal(t[start:end], &out) // str has accepted it
			return out
		}
	}
	return string(s)
}

// names tells whether the string between start and end, quotes included, is name.
func (t text) names(start, end int, name string) bool {
	s := t[start+1 : end-1]
	return string(s) == name || len(s) > len(name) && bytes.IndexByte(s, '\\') >= 0 && t.unquote(start, end) == name
}
