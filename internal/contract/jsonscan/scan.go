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
	"slices"

	"github.com/hookgate/hookgate/internal/base/limits"
)

// Scanner validates Text. Its methods take the index at which a value begins, after white space, and return the index
// after what they have read. Their errors are of type *Error, or that of Step.
type Scanner struct {
	Text []byte
	// Step is called during the scan of a large text, after every 256 KiB or so. It may wait, and its error ends the
	// scan. Nil does nothing.
	Step    func() error
	bad     int // the index of the first byte that is not UTF-8, or 0: a text does not begin with one
	stepped int // the index at which Step was called last
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
	if s.bad > 0 {
		return invalid(s.bad, "not UTF-8")
	}
	return nil
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
// input can exhaust the goroutine's. What most values consist of is read here, because calls would cost a fifth of the
// speed: plain strings, whole numbers, literals, and members without white space. Other methods read the rest.
func (s *Scanner) container(i, depth int) (int, error) { //nolint:gocognit // see above
	b := slices.Clip(s.Text) // the capacity would take a register
	var err error
	var objects [limits.JSONDepth/64 + 1]uint64 // whether each open level is an object
	closing := byte(0)                          // the bracket that closes the innermost level
	base := depth
	for {
		// A value begins at i.
		c := byte(0)
		if i < len(b) {
			c = b[i]
		}
		switch {
		case c == '"':
			if i = plain(b, i+1); i < len(b) && b[i] == '"' {
				i++
			} else if i, err = s.rest(i); err != nil {
				return i, err
			}
		case c == '{' || c == '[':
			if depth++; depth > limits.JSONDepth {
				return i, tooDeep(i)
			}
			closing = c + 2 // '}' is '{'+2, ']' is '['+2
			level, bit := &objects[uint(depth)/64%uint(len(objects))], uint64(1)<<(uint(depth)%64)
			if *level &^= bit; closing == '}' {
				*level |= bit
			}
			if i = Space(b, i+1); i >= len(b) {
				return i, early(b)
			}
			if b[i] != closing {
				if closing == '}' {
					goto member
				}
				continue
			}
			// An empty one: b[i] closes it below.
		case c-'1' <= 8:
			if end := integer(b, i); end > i {
				i = end
			} else if i, err = s.Number(i); err != nil {
				return i, err
			}
		case c == 't' && i+4 <= len(b) && string(b[i:i+4]) == "true",
			c == 'n' && i+4 <= len(b) && string(b[i:i+4]) == "null":
			i += 4
		case c == 'f' && i+5 <= len(b) && string(b[i:i+5]) == "false":
			i += 5
		default:
			if i, err = s.scalar(i); err != nil {
				return i, err
			}
		}
		// After a value, or at the end of an empty container.
		for {
			if i >= len(b) {
				return i, early(b)
			}
			if c = b[i]; c == ',' {
				break
			}
			if c != closing {
				if c <= ' ' {
					if j := skipSpace(b, i); j > i {
						i = j
						continue
					}
				}
				return i, s.afterElement(i, closing == '}')
			}
			i++
			if depth--; depth == base {
				return i, nil
			}
			closing = ']'
			if objects[uint(depth)/64%uint(len(objects))]>>(uint(depth)%64)&1 != 0 {
				closing = '}'
			}
		}
		if i++; i < len(b) && b[i] <= ' ' {
			i = skipSpace(b, i)
		}
		if i-s.stepped > stepEvery {
			if err = s.step(i); err != nil {
				return i, err
			}
		}
		if closing != '}' {
			continue
		}
	member:
		if i >= len(b) || b[i] != '"' {
			return i, s.Unexpected(i, "a member name")
		}
		if i = plain(b, i+1); i < len(b) && b[i] == '"' {
			i++
		} else if i, err = s.rest(i); err != nil {
			return i, err
		}
		if i+1 < len(b) && b[i] == ':' && b[i+1] > ' ' {
			i++
		} else if i, err = s.colon(i); err != nil {
			return i, err
		}
	}
}
