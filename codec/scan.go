// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"unicode/utf8"
)

// maxDepth bounds how deep objects and arrays may nest, the envelope's included.
const maxDepth = 1000

// The patterns of the word-at-a-time loops: one byte, eight times.
const (
	ones   = 0x0101010101010101
	tops   = 0x8080808080808080
	spaces = ' ' * ones
)

// scanner validates JSON in place. Its methods take the index at which to go on and return the one after what they
// have read; no token is ever built.
type scanner struct {
	b    []byte
	high uint64 // all words that strings consist of, or-ed: tells whether there is anything but ASCII
}

// utf8 tells whether the text is UTF-8, after all of it was scanned: outside of strings only ASCII passes.
func (s *scanner) utf8() *Error {
	if s.high&tops == 0 || utf8.Valid(s.b) {
		return nil
	}
	for i := 0; ; {
		r, n := utf8.DecodeRune(s.b[i:])
		if r == utf8.RuneError && n == 1 {
			return invalid(i, "not UTF-8")
		}
		i += n
	}
}

// end checks that nothing but white space follows.
func (s *scanner) end(i int) *Error {
	if i = space(s.b, i); i < len(s.b) {
		return unexpected(s.b, i, "nothing after the value")
	}
	return nil
}

// space returns the index of the first byte at or after i that is not white space.
func space(b []byte, i int) int {
	if i < len(b) && b[i] <= ' ' {
		return skipSpace(b, i)
	}
	return i
}

func skipSpace(b []byte, i int) int {
	for i < len(b) {
		switch b[i] {
		case ' ':
			if i+8 <= len(b) && binary.LittleEndian.Uint64(b[i:]) == spaces {
				i += 8
				continue
			}
		case '\n', '\t', '\r':
		default:
			return i
		}
		i++
	}
	return i
}

// value skips the value that begins at i, which is depth levels deep.
func (s *scanner) value(i, depth int) (int, *Error) {
	if i < len(s.b) && (s.b[i] == '{' || s.b[i] == '[') {
		return s.container(i, depth)
	}
	return s.scalar(i)
}

// container skips the object or array that begins at i. It keeps its own stack, one bit per level, so that no input can
// exhaust the goroutine's. What is common, members without white space, is read here; the rest is left to key and scalar.
func (s *scanner) container(i, depth int) (int, *Error) {
	b := s.b
	var err *Error
	var objects [maxDepth/64 + 1]uint64 // whether each open level is an object
	object := false
	base := depth
	for {
		// A value begins at i.
		c := byte(0)
		if i < len(b) {
			c = b[i]
		}
		switch c {
		case '"':
			if i, err = s.str(i + 1); err != nil {
				return i, err
			}
		case '{', '[':
			if depth++; depth > maxDepth {
				return i, tooDeep(i)
			}
			if object = c == '{'; object {
				objects[depth/64] |= 1 << (depth % 64)
			} else {
				objects[depth/64] &^= 1 << (depth % 64)
			}
			i = space(b, i+1)
			if i >= len(b) {
				return i, early(b)
			}
			if b[i] != c+2 { // '}' is '{'+2, ']' is '['+2
				if object {
					if i, err = s.key(i); err != nil {
						return i, err
					}
				}
				continue
			}
			// An empty one: b[i] closes it below.
		default:
			if i, err = s.scalar(i); err != nil {
				return i, err
			}
		}
		// After a value, or at the end of an empty container.
		for {
			if i < len(b) && b[i] <= ' ' {
				i = skipSpace(b, i)
			}
			if i >= len(b) {
				return i, early(b)
			}
			if b[i] == ',' {
				break
			}
			if object && b[i] != '}' || !object && b[i] != ']' {
				return i, s.afterElement(i, object)
			}
			i++
			if depth--; depth == base {
				return i, nil
			}
			object = objects[depth/64]>>(depth%64)&1 != 0
		}
		if i++; i < len(b) && b[i] <= ' ' {
			i = skipSpace(b, i)
		}
		if !object {
			continue
		}
		if i >= len(b) || b[i] != '"' {
			return i, unexpected(b, i, "a member name")
		}
		if i, err = s.str(i + 1); err != nil {
			return i, err
		}
		if i+1 < len(b) && b[i] == ':' && b[i+1] > ' ' {
			i++
		} else if i, err = s.colon(i); err != nil {
			return i, err
		}
	}
}

// key skips a member's name, the colon, and the white space around it.
func (s *scanner) key(i int) (int, *Error) {
	if i >= len(s.b) || s.b[i] != '"' {
		return i, unexpected(s.b, i, "a member name")
	}
	i, err := s.str(i + 1)
	if err != nil {
		return i, err
	}
	return s.colon(i)
}

func (s *scanner) colon(i int) (int, *Error) {
	i = space(s.b, i)
	if i >= len(s.b) || s.b[i] != ':' {
		return i, unexpected(s.b, i, "':'")
	}
	return space(s.b, i+1), nil
}

// scalar skips a string, number or literal.
func (s *scanner) scalar(i int) (int, *Error) {
	if i >= len(s.b) {
		return i, early(s.b)
	}
	switch c := s.b[i]; {
	case c == '"':
		return s.str(i + 1)
	case c == '-' || c-'0' <= 9:
		return s.number(i)
	case c == 't':
		return s.literal(i, "true")
	case c == 'f':
		return s.literal(i, "false")
	case c == 'n':
		return s.literal(i, "null")
	}
	return i, unexpected(s.b, i, "a value")
}

func (s *scanner) literal(i int, text string) (int, *Error) {
	for j := range len(text) {
		if i+j >= len(s.b) || s.b[i+j] != text[j] {
			return i, unexpected(s.b, i+j, text)
		}
	}
	return i + len(text), nil
}

// number skips a number; b[i] is a digit or the sign.
func (s *scanner) number(i int) (int, *Error) {
	b := s.b
	if b[i] == '-' {
		i++
	}
	start := i
	i = digits(b, i)
	switch {
	case i == start:
		return i, unexpected(b, i, "a digit")
	case b[start] == '0' && i > start+1:
		return i, unexpected(b, start+1, "no digit after a leading 0")
	}
	if i < len(b) && b[i] == '.' {
		start = i + 1
		if i = digits(b, start); i == start {
			return i, unexpected(b, i, "a digit")
		}
	}
	if i < len(b) && b[i]|0x20 == 'e' {
		i++
		if i < len(b) && (b[i] == '+' || b[i] == '-') {
			i++
		}
		start = i
		if i = digits(b, start); i == start {
			return i, unexpected(b, i, "a digit")
		}
	}
	return i, nil
}

func digits(b []byte, i int) int {
	for i < len(b) && b[i]-'0' <= 9 {
		i++
	}
	return i
}

// str skips the rest of a string; i is after the opening quote.
func (s *scanner) str(i int) (int, *Error) {
	b := s.b
	// Most strings end within their first eight bytes: plain, without the call.
	if i+8 <= len(b) {
		w := binary.LittleEndian.Uint64(b[i:])
		s.high |= w
		if found := stops(w); found == 0 {
			i += 8
		} else if j := i + bits.TrailingZeros64(found)>>3; b[j] == '"' {
			return j + 1, nil
		}
	}
	for {
		i = s.plain(i)
		if i >= len(b) {
			return i, early(b)
		}
		switch b[i] {
		case '"':
			return i + 1, nil
		case '\\':
			var err *Error
			if i, err = s.escape(i + 1); err != nil {
				return i, err
			}
		default:
			return i, unexpected(b, i, "an escape sequence for a control character")
		}
	}
}

// stops has the top bit set of the first byte of w that is a quote, a backslash or a control character: the subtractions
// borrow, and so set a byte's top bit, where a byte is a backslash (xor-ed to 0), a quote or a control character (xor-ed to
// at most 0x20). A borrow may spill into the bytes above, so only the lowest bit set counts.
func stops(w uint64) uint64 {
	return (((w ^ '\\'*ones) - ones) | ((w ^ 0x02*ones) - 0x21*ones)) &^ w & tops
}

// plain returns the index of the first quote, backslash or control character at or after i.
func (s *scanner) plain(i int) int {
	b := s.b
	high := s.high
	for i+8 <= len(b) {
		w := binary.LittleEndian.Uint64(b[i:])
		high |= w
		if found := stops(w); found != 0 {
			s.high = high
			return i + bits.TrailingZeros64(found)>>3
		}
		i += 8
	}
	for ; i < len(b); i++ {
		c := b[i]
		high |= uint64(c)
		if c == '"' || c == '\\' || c < ' ' {
			break
		}
	}
	s.high = high
	return i
}

// escape skips an escape sequence; i is after the backslash.
func (s *scanner) escape(i int) (int, *Error) {
	b := s.b
	if i >= len(b) {
		return i, early(b)
	}
	switch b[i] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return i + 1, nil
	case 'u':
		for j := i + 1; j <= i+4; j++ {
			if j >= len(b) || hexValue(b[j]) < 0 {
				return j, unexpected(b, j, "a hexadecimal digit")
			}
		}
		return i + 5, nil
	}
	return i, unexpected(b, i, "an escape sequence")
}

// afterElement explains what may follow an element.
func (s *scanner) afterElement(i int, object bool) *Error {
	if object {
		return unexpected(s.b, i, "',' or '}'")
	}
	return unexpected(s.b, i, "',' or ']'")
}

func tooDeep(i int) *Error {
	return invalid(i, fmt.Sprintf("nested deeper than %d", maxDepth))
}
