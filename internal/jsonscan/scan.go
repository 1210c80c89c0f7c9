// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package jsonscan reads JSON in place: it validates a text and finds the values in it without building tokens. It is
// the basis of codecs for particular types.
//
// It accepts exactly what encoding/json accepts, but for nesting deeper than limits.JSONDepth. Scanner.UTF8 and
// Scanner.String are stricter: they refuse text that is not UTF-8 and halves of surrogate pairs.
//
// Its functions are pure. A Scanner belongs to one goroutine.
package jsonscan

import (
	"encoding/binary"
	"unicode/utf8"

	"github.com/hookgate/hookgate/internal/limits"
)

// Scanner validates Text. Its methods take the index at which a value begins, after white space, and return the index
// after what they have read. Their errors are of type *Error, or that of Step.
type Scanner struct {
	Text []byte
	// Step is called during the scan of a large text, after every 256 KiB or so. It may wait, and its error ends the
	// scan. Nil does nothing.
	Step    func() error
	high    uint64 // all words that strings consist of, or-ed: shows whether there is anything but ASCII
	stepped int    // the index at which Step was called last
}

// stepEvery is the number of bytes between two calls of Step: fewer than a scanner reads in a millisecond.
const stepEvery = 256 << 10

// step calls Step.
func (s *Scanner) step(i int) error {
	s.stepped = i
	if s.Step == nil {
		return nil
	}
	return s.Step()
}

// At returns the byte at i, or 0 if i is beyond the end.
func (s *Scanner) At(i int) byte {
	if i < len(s.Text) {
		return s.Text[i]
	}
	return 0
}

// UTF8 returns an error unless Text, all of which must have been scanned, is UTF-8.
func (s *Scanner) UTF8() error {
	if s.high&tops == 0 || utf8.Valid(s.Text) { // outside of strings, the scanner accepts nothing but ASCII
		return nil
	}
	for i := 0; ; {
		r, n := utf8.DecodeRune(s.Text[i:])
		if r == utf8.RuneError && n == 1 {
			return invalid(i, "not UTF-8")
		}
		i += n
	}
}

// End returns an error unless nothing but white space begins at i.
func (s *Scanner) End(i int) error {
	if i = Space(s.Text, i); i < len(s.Text) {
		return s.Unexpected(i, "nothing after the value")
	}
	return nil
}

// Space returns the index of the first byte at or after i that is not white space.
func Space(b []byte, i int) int {
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

// Value skips the value that begins at i and has depth objects and arrays around it.
func (s *Scanner) Value(i, depth int) (int, error) {
	if i < len(s.Text) && (s.Text[i] == '{' || s.Text[i] == '[') {
		return s.container(i, depth)
	}
	return s.scalar(i)
}

// Next returns the index of the next element of an array, or of the next member's name in an object. first is set for
// the first one, with i at the opening bracket; later, i is after the last value. end is the closing bracket. At the
// end, more is false and next is the index after it.
func (s *Scanner) Next(i int, first bool, end byte) (next int, more bool, err error) {
	b := s.Text
	if first {
		i++
	}
	if i = Space(b, i); i < len(b) && b[i] == end {
		return i + 1, false, nil
	}
	if i-s.stepped > stepEvery {
		if err = s.step(i); err != nil {
			return i, false, err
		}
	}
	if !first {
		if i < len(b) && b[i] != ',' {
			return i, false, s.afterElement(i, end == '}')
		}
		i = Space(b, i+1)
	}
	if i >= len(b) {
		return i, false, early(b)
	}
	return i, true, nil
}

// Name skips the member's name that begins at i and the colon after it. It returns the end of the name, quotes
// included, and the index of the value.
func (s *Scanner) Name(i int) (end, value int, err error) {
	b := s.Text
	if i >= len(b) || b[i] != '"' {
		return i, i, s.Unexpected(i, "a member name")
	}
	if end, err = s.str(i + 1); err != nil {
		return end, end, err
	}
	if value, err = s.colon(end); err == nil && value >= len(b) {
		err = early(b)
	}
	return end, value, err
}

// colon skips a colon and the white space around it.
func (s *Scanner) colon(i int) (int, error) {
	i = Space(s.Text, i)
	if i >= len(s.Text) || s.Text[i] != ':' {
		return i, s.Unexpected(i, "':'")
	}
	return Space(s.Text, i+1), nil
}

// container skips the object or array that begins at i. It keeps a stack of its own, one bit per level, so that no
// input can exhaust the goroutine's. Members without white space, the common case, are read here; Name and scalar
// read the rest.
func (s *Scanner) container(i, depth int) (int, error) { //nolint:gocognit // calls would cost a fifth of its speed
	b := s.Text
	var err error
	var objects [limits.JSONDepth/64 + 1]uint64 // whether each open level is an object
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
			if depth++; depth > limits.JSONDepth {
				return i, tooDeep(i)
			}
			if object = c == '{'; object {
				objects[depth/64] |= 1 << (depth % 64)
			} else {
				objects[depth/64] &^= 1 << (depth % 64)
			}
			i = Space(b, i+1)
			if i >= len(b) {
				return i, early(b)
			}
			if b[i] != c+2 { // '}' is '{'+2, ']' is '['+2
				if object {
					if _, i, err = s.Name(i); err != nil {
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
		if i-s.stepped > stepEvery {
			if err = s.step(i); err != nil {
				return i, err
			}
		}
		if !object {
			continue
		}
		if i >= len(b) || b[i] != '"' {
			return i, s.Unexpected(i, "a member name")
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
