// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"strings"

	"github.com/hookgate/hookgate/internal/base/limits"
)

// isEscape reports whether s begins with an escape of URLs.
func isEscape[T string | []byte](s T) bool {
	return len(s) > 2 && s[0] == '%' && isHex(s[1]) && isHex(s[2])
}

func isHex(c byte) bool { return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F' }

// hasEscape reports whether s has an escape of URLs.
func hasEscape(s string) bool {
	for i := strings.IndexByte(s, '%'); i >= 0 && i < len(s); i++ {
		if isEscape(s[i:]) {
			return true
		}
	}
	return false
}

// unescapedURL returns s without its escapes of URLs.
func unescapedURL(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if isEscape(s[i:]) {
			b.WriteByte(hexValue(s[i+1])<<4 | hexValue(s[i+2]))
			i += 2
			continue
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

func hexValue(c byte) byte {
	if c <= '9' {
		return c - '0'
	}
	return c | 0x20 - 'a' + 10
}

// percent returns s without the secrets in its words that have escapes of URLs.
func (c *cleaner) percent(s string, depth int, patch bool) string {
	if !hasEscape(s) {
		return s
	}
	var b strings.Builder
	copied := 0
	for i := 0; i < len(s); i++ {
		if !isEscape(s[i:]) {
			continue
		}
		from := strings.LastIndexAny(s[copied:i], " \t\r\n\"'<>`") + 1 + copied
		end := i + indexOr(s[i:], " \t\r\n\"'<>`\\")
		i = end
		if comma := strings.IndexByte(s[from:end], ','); comma >= 0 && strings.HasPrefix(s[from:end], "data:") {
			from += comma + 1
		}
		word := unescapedURL(s[from:end])
		valid := strings.ToValidUTF8(word, "�")
		clean := valid
		if c.left -= len(word); c.left >= 0 && depth < limits.RedactDepth {
			clean = c.text(valid, depth+1, patch)
		} else if mayHide([]byte(word)) {
			clean = Mask
		}
		if clean == valid {
			continue
		}
		b.WriteString(s[copied:from])
		b.WriteString(escaped(clean))
		copied = end
	}
	b.WriteString(s[copied:])
	return b.String()
}

// escaped returns a text with escapes of URLs, but for what has a meaning in one.
func escaped(s string) string {
	var b strings.Builder
	for i := range len(s) {
		if c := s[i]; isNamePart(c) || strings.IndexByte("~*:/?=&,;@+!()[]#$", c) >= 0 {
			b.WriteByte(c)
		} else {
			const digits = "0123456789ABCDEF"
			b.Write([]byte{'%', digits[c>>4], digits[c&15]})
		}
	}
	return b.String()
}
