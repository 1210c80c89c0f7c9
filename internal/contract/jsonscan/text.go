// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package jsonscan

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"unicode/utf8"
)

// String returns the text of the string that begins at i. It aliases Text unless there are escape sequences in it,
// and is never nil. Halves of surrogate pairs are refused, because no UTF-8 can hold them.
func (s *Scanner) String(i int) (text []byte, end int, err error) {
	start := i + 1
	if end = plain(s.Text, start); end < len(s.Text) && s.Text[end] == '"' {
		return s.Text[start:end:end], end + 1, nil
	}
	if end, err = s.rest(end); err != nil {
		return nil, end, err
	}
	if text = s.Text[start : end-1 : end-1]; bytes.IndexByte(text, '\\') >= 0 {
		text, err = s.Unescape(i, end)
	}
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
	if i = plain(s.Text, i); i < len(s.Text) && s.Text[i] == '"' {
		return i + 1, nil
	}
	return s.rest(i)
}

// rest skips the rest of a string; i is an index that plain has returned.
func (s *Scanner) rest(i int) (int, error) {
	b := s.Text
	for ; ; i = plain(b, i) {
		if i >= len(b) {
			return i, early(b)
		}
		switch c := b[i]; {
		case c == '"':
			return i + 1, nil
		case c == '\\' && i+1 < len(b) && short[b[i+1]]:
			i += 2
		case c == '\\':
			var err error
			if i, err = s.escape(i + 1); err != nil {
				return i, err
			}
		case c < ' ':
			return i, s.Unexpected(i, "an escape sequence for a control character")
		case c >= utf8.RuneSelf:
			i = s.runes(i)
		default:
			i++ // one of the last eight bytes, at which plain does not look
		}
	}
}

// runes skips the part of a string that begins at i, with a byte that is not ASCII, and ends before a quote, a
// backslash or a control character. It notes whether that is UTF-8.
func (s *Scanner) runes(i int) int {
	b, start := s.Text, i
	for i < len(b) && b[i] != '"' && b[i] != '\\' && b[i] >= ' ' {
		for i++; i >= 0 && i <= len(b)-8; i += 8 {
			if found := stops(binary.LittleEndian.Uint64(b[i : i+8 : i+8])); found != 0 {
				i += bits.TrailingZeros64(found) >> 3
				break
			}
		}
	}
	if part := b[start:i]; s.bad == 0 && !utf8.Valid(part) {
		s.bad = start + notUTF8(part)
	}
	return i
}

// notUTF8 returns the index of the first byte of b that is not UTF-8.
func notUTF8(b []byte) int {
	for i := 0; ; {
		r, n := utf8.DecodeRune(b[i:])
		if r == utf8.RuneError && n == 1 {
			return i
		}
		i += n
	}
}

// short has the characters that may follow a backslash, without the u of \u1234.
var short = [256]bool{'"': true, '\\': true, '/': true, 'b': true, 'f': true, 'n': true, 'r': true, 't': true}

// escape skips an escape sequence that is not short; i is after the backslash.
func (s *Scanner) escape(i int) (int, error) {
	b := s.Text
	if i >= len(b) || b[i] != 'u' {
		return i, s.Unexpected(i, "an escape sequence")
	}
	for j := i + 1; j <= i+4; j++ {
		if j >= len(b) || hexValue(b[j]) < 0 {
			return j, s.Unexpected(j, "a hexadecimal digit")
		}
	}
	return i + 5, nil
}
