// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package jsonscan

import (
	"encoding/binary"
	"math/bits"
)

// The patterns of the word-at-a-time loops: one byte, eight times.
const (
	ones   = 0x0101010101010101
	tops   = 0x8080808080808080
	spaces = ' ' * ones
)

// String returns the text of the string that begins at i. It aliases Text unless there are escape sequences in it,
// and is never nil. Halves of surrogate pairs are refused, because no UTF-8 can hold them.
func (s *Scanner) String(i int) (text []byte, end int, err error) {
	start := i + 1
	if end = s.plain(start); end < len(s.Text) && s.Text[end] == '"' {
		return s.Text[start:end:end], end + 1, nil
	}
	if end, err = s.str(end); err != nil {
		return nil, end, err
	}
	text, err = s.Unescape(i, end)
	return text, end, err
}

// SkipString skips the string that begins at i.
func (s *Scanner) SkipString(i int) (int, error) { return s.str(i + 1) }

// Unescape returns the text of the string from i to end, quotes included, which String or Name has skipped.
func (s *Scanner) Unescape(i, end int) ([]byte, error) {
	text, ok := Unescape(s.Text[i+1 : end-1])
	if !ok {
		return nil, invalid(i, "string with half of a surrogate pair")
	}
	return text, nil
}

// str skips the rest of a string; i is after the opening quote.
func (s *Scanner) str(i int) (int, error) {
	b := s.Text
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
			var err error
			if i, err = s.escape(i + 1); err != nil {
				return i, err
			}
		default:
			return i, s.Unexpected(i, "an escape sequence for a control character")
		}
	}
}

// stops returns a word whose lowest set bit is the top bit of the first quote, backslash or control character in w. The
// subtractions borrow, and so set a byte's top bit, where a byte is a backslash (xor-ed to 0), a quote or a control
// character (xor-ed to at most 0x20). A borrow may spill into the bytes above; only the lowest set bit counts.
func stops(w uint64) uint64 {
	return (((w ^ '\\'*ones) - ones) | ((w ^ 0x02*ones) - 0x21*ones)) &^ w & tops
}

// plain returns the index of the first quote, backslash or control character at or after i.
func (s *Scanner) plain(i int) int {
	b := s.Text
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
func (s *Scanner) escape(i int) (int, error) {
	b := s.Text
	if i >= len(b) {
		return i, early(b)
	}
	switch b[i] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return i + 1, nil
	case 'u':
		for j := i + 1; j <= i+4; j++ {
			if j >= len(b) || hexValue(b[j]) < 0 {
				return j, s.Unexpected(j, "a hexadecimal digit")
			}
		}
		return i + 5, nil
	}
	return i, s.Unexpected(i, "an escape sequence")
}
