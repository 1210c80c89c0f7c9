// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package jsonscan

import (
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Unescape returns the text of a valid string, given without its quotes. As in encoding/json, bytes that are not
// UTF-8 and halves of surrogate pairs become U+FFFD; ok is false if there was such a half.
func Unescape(b []byte) (text []byte, ok bool) {
	out, ok := make([]byte, 0, len(b)), true
	for i := 0; i < len(b); i++ {
		if b[i] >= utf8.RuneSelf {
			r, n := utf8.DecodeRune(b[i:])
			out = utf8.AppendRune(out, r)
			i += n - 1
			continue
		}
		if b[i] != '\\' {
			out = append(out, b[i])
			continue
		}
		i++
		switch b[i] {
		case 'b':
			out = append(out, '\b')
		case 'f':
			out = append(out, '\f')
		case 'n':
			out = append(out, '\n')
		case 'r':
			out = append(out, '\r')
		case 't':
			out = append(out, '\t')
		case 'u':
			r := hexRune(b[i+1:])
			i += 4
			if utf16.IsSurrogate(r) {
				pair := utf8.RuneError
				if i+6 < len(b) && b[i+1] == '\\' && b[i+2] == 'u' {
					pair = utf16.DecodeRune(r, hexRune(b[i+3:]))
				}
				if r = pair; r == utf8.RuneError {
					ok = false
				} else {
					i += 6
				}
			}
			out = utf8.AppendRune(out, r)
		default: // a quote, a backslash or a slash
			out = append(out, b[i])
		}
	}
	return out, ok
}

// hexRune returns the value of the four hexadecimal digits that b begins with.
func hexRune(b []byte) rune {
	var r rune
	for _, c := range b[:4] {
		r = r<<4 | rune(hexValue(c))
	}
	return r
}

// hexValue returns the value of a hexadecimal digit, or -1.
func hexValue(c byte) int {
	switch {
	case c-'0' <= 9:
		return int(c - '0')
	case c|0x20 >= 'a' && c|0x20 <= 'f':
		return int(c|0x20-'a') + 10
	}
	return -1
}

// verbatim has the ASCII characters that AppendString does not escape.
var verbatim = func() (is [256]bool) {
	for c := range utf8.RuneSelf {
		is[c] = c >= ' ' && !strings.ContainsRune(`"\<>&`, rune(c))
	}
	return is
}()

// AppendString appends s as a string literal, escaped as by encoding/json: also '<', '>' and '&', so that the text is
// safe within HTML, and U+2028 and U+2029, for JavaScript. Bytes that are not UTF-8 become U+FFFD.
func AppendString(dst []byte, s string) []byte {
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if verbatim[c] {
			i++
			continue
		}
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(s[i:])
			switch {
			case r == utf8.RuneError && n == 1:
				dst = append(append(dst, s[start:i]...), `\ufffd`...)
				start = i + n
			case r == '\u2028' || r == '\u2029':
				dst = append(append(dst, s[start:i]...), `\u202`...)
				dst = append(dst, hex[r&0xf])
				start = i + n
			}
			i += n
			continue
		}
		dst = append(dst, s[start:i]...)
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\b':
			dst = append(dst, '\\', 'b')
		case '\f':
			dst = append(dst, '\\', 'f')
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\r':
			dst = append(dst, '\\', 'r')
		case '\t':
			dst = append(dst, '\\', 't')
		default:
			dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&0xf])
		}
		i++
		start = i
	}
	dst = append(dst, s[start:]...)
	return append(dst, '"')
}
