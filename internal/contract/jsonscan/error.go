// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package jsonscan

import (
	"fmt"
	"strconv"

	"github.com/hookgate/hookgate/internal/base/limits"
)

// Error is a syntax error with its position.
type Error struct {
	Offset  int // in bytes from 0
	Message string
}

// Error returns the message, which names the offset.
func (e *Error) Error() string { return e.Message }

// Unexpected returns the error of the character at i where want was wanted, or of the end of the text.
func (s *Scanner) Unexpected(i int, want string) error {
	if i >= len(s.Text) {
		return early(s.Text)
	}
	return invalid(i, fmt.Sprintf("unexpected %s, want %s", character(s.Text[i]), want))
}

// invalid returns a violation of JSON's syntax.
func invalid(offset int, what string) error {
	return &Error{Offset: offset, Message: fmt.Sprintf("invalid JSON at byte %d: %s", offset, what)}
}

// early returns the error of a text that ends before it is complete.
func early(b []byte) error {
	return &Error{Offset: len(b), Message: fmt.Sprintf("JSON ends early at byte %d", len(b))}
}

func tooDeep(i int) error {
	return invalid(i, fmt.Sprintf("nested deeper than %d", limits.JSONDepth))
}

// character returns a byte as an error shows it.
func character(c byte) string {
	if c < ' ' || c > '~' {
		return fmt.Sprintf("byte 0x%02x", c)
	}
	return strconv.QuoteRune(rune(c))
}
