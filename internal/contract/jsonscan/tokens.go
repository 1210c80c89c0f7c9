// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package jsonscan

// scalar skips a string, number or literal.
func (s *Scanner) scalar(i int) (int, error) {
	if i >= len(s.Text) {
		return i, early(s.Text)
	}
	switch c := s.Text[i]; {
	case c == '"':
		return s.str(i + 1)
	case c == '-' || c-'0' <= 9:
		return s.Number(i)
	case c == 't':
		return s.Literal(i, "true")
	case c == 'f':
		return s.Literal(i, "false")
	case c == 'n':
		return s.Literal(i, "null")
	}
	return i, s.Unexpected(i, "a value")
}

// Literal skips the literal text: true, false or null.
func (s *Scanner) Literal(i int, text string) (int, error) {
	if len(s.Text)-i >= len(text) && string(s.Text[i:i+len(text)]) == text {
		return i + len(text), nil
	}
	for j := range len(text) {
		if i+j >= len(s.Text) || s.Text[i+j] != text[j] {
			return i, s.Unexpected(i+j, text)
		}
	}
	return i + len(text), nil
}

// Number skips the number that begins at i, with a digit or a sign.
func (s *Scanner) Number(i int) (int, error) {
	b := s.Text
	if end := integer(b, i); end > i {
		return end, nil
	}
	if b[i] == '-' {
		i++
	}
	start := i
	i = digits(b, i)
	switch {
	case i == start:
		return i, s.Unexpected(i, "a digit")
	case b[start] == '0' && i > start+1:
		return i, s.Unexpected(start+1, "no digit after a leading 0")
	}
	if i < len(b) && b[i] == '.' {
		start = i + 1
		if i = digits(b, start); i == start {
			return i, s.Unexpected(i, "a digit")
		}
	}
	if i < len(b) && b[i]|0x20 == 'e' {
		i++
		if i < len(b) && (b[i] == '+' || b[i] == '-') {
			i++
		}
		start = i
		if i = digits(b, start); i == start {
			return i, s.Unexpected(i, "a digit")
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

// afterElement explains what may follow an element.
func (s *Scanner) afterElement(i int, object bool) error {
	if object {
		return s.Unexpected(i, "',' or '}'")
	}
	return s.Unexpected(i, "',' or ']'")
}
