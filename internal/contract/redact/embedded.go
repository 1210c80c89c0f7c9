// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"errors"
	"slices"
	"strings"

	"github.com/hookgate/hookgate/internal/contract/jsonscan"
)

// embedded returns s without the secrets in the JSON and in the quoted texts that it has.
func (c *cleaner) embedded(s string, depth int) string {
	if !strings.ContainsAny(s, "{[") && strings.IndexByte(s, '\\') < 0 {
		return s
	}
	var b strings.Builder
	copied := 0
	for i := 0; i < len(s) && c.left > 0; {
		clean, end := "", 0
		switch {
		case (s[i] == '{' || s[i] == '[') && beginsJSON(s[i+1:]):
			clean, end = c.value(s[i:], depth)
		case s[i] == '"':
			clean, end = c.quoted(s[i:], depth)
		}
		if end == 0 {
			i++
			continue
		}
		if clean != s[i:i+end] {
			b.WriteString(s[copied:i] + clean)
			copied = i + end
		}
		i += end
	}
	if copied == 0 {
		return s
	}
	b.WriteString(s[copied:])
	return b.String()
}

// beginsJSON reports whether what follows a bracket may be JSON.
func beginsJSON(s string) bool {
	s = strings.TrimLeft(s, " \t\r\n")
	return s != "" && (s[0] == '"' || s[0] == '{' || s[0] == '[')
}

// value returns the JSON with which s begins without its secrets, and where it ends; 0 if s does not begin with JSON.
// JSON that was cut is read as far as it goes.
func (c *cleaner) value(s string, depth int) (clean string, end int) {
	scanner := jsonscan.Scanner{Text: []byte(s)}
	end, err := scanner.Value(0, 0)
	closing := ""
	if err != nil {
		var syntax *jsonscan.Error
		if !errors.As(err, &syntax) {
			return "", 0
		}
		if syntax.Offset < len(s) {
			c.left -= syntax.Offset + 1
			return "", 0
		}
		closing, end = closingOf(s), len(s)
	}
	c.left -= end
	json, n, err := c.json(nil, []byte(s[:end]+closing), depth, jsonForm{spaces: true})
	switch {
	case err == nil && n == 0:
		return s[:end], end
	case err == nil:
		return strings.TrimSuffix(string(json), closing), end
	case errors.As(err, new(*jsonscan.Error)):
		return "", 0
	}
	return Mask, end
}

// closingOf returns what a JSON text that was cut lacks at its end.
func closingOf(s string) string {
	var open []byte
	quoted, escaped := false, false
	for i := range len(s) {
		switch c := s[i]; {
		case escaped:
			escaped = false
		case quoted && c == '\\':
			escaped = true
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			open = append(open, c+2) // the closing one
		case (c == '}' || c == ']') && len(open) > 0:
			open = open[:len(open)-1]
		}
	}
	var b strings.Builder
	if escaped {
		b.WriteByte('\\')
	}
	last := strings.TrimRight(s, " \t\r\n")
	switch last[len(last)-1] {
	case ':':
		b.WriteString("null")
	case ',':
		if open[len(open)-1] == '}' {
			b.WriteString(`"":null`)
		} else {
			b.WriteString("null")
		}
	}
	if quoted {
		b.Reset()
		if escaped {
			b.WriteByte('\\')
		}
		b.WriteByte('"')
	}
	end := b.String()
	for _, c := range slices.Backward(open) {
		b.WriteByte(c)
	}
	if scanner := (jsonscan.Scanner{Text: []byte(s + b.String())}); len(open) > 0 && open[len(open)-1] == '}' {
		if _, err := scanner.Value(0, 0); err != nil { // the text ends with the name of a member
			return end + ":null" + b.String()[len(end):]
		}
	}
	return b.String()
}

// quoted returns the text in quotes with which s begins, if parts of it are escaped, without its secrets.
func (c *cleaner) quoted(s string, depth int) (clean string, end int) {
	escaped := false
	for end = 1; end < len(s) && s[end] != '"' && s[end] != '\n'; end++ {
		if s[end] == '\\' {
			escaped = true
			end++
		}
	}
	if !escaped || end >= len(s) || s[end] != '"' {
		return "", 0
	}
	end++
	c.left -= end
	text, ok := jsonscan.String([]byte(s[:end]))
	if !ok {
		return "", 0
	}
	after := c.text(text, depth+1, false)
	if after == text {
		return s[:end], end
	}
	return string(jsonscan.AppendString(nil, after)), end
}
