// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"fmt"
	"strconv"
)

// Error is JSON that cannot be read, or a message that cannot be written. The same input gives the same text.
type Error struct {
	// Path names the member, as in `items[3].holderReference.name`. It is empty for invalid JSON in a body.
	Path string
	// Offset is where in the body, in bytes from 0, or -1 if there is none.
	Offset int64
	// Message says what is wrong.
	Message string
}

// Error returns path and message.
func (e *Error) Error() string {
	if e.Path == "" {
		return e.Message
	}
	return e.Path + ": " + e.Message
}

// in returns e as seen from the object that has the member: with the member's name in front of the path. Errors without
// a path are about the body, not about a member, and stay as they are.
func (e *Error) in(member string) *Error {
	if e.Path != "" {
		e.Path = member + "." + e.Path
	}
	return e
}

// wrong is a well-formed value that is not the one wanted, at the member named by path.
func wrong(path string, offset int, format string, args ...any) *Error {
	return &Error{Path: path, Offset: int64(offset), Message: fmt.Sprintf(format, args...)}
}

// invalid is a violation of JSON's syntax.
func invalid(offset int, what string) *Error {
	return &Error{Offset: int64(offset), Message: fmt.Sprintf("invalid JSON at byte %d: %s", offset, what)}
}

// early is JSON that stops before it is complete.
func early(b []byte) *Error {
	return &Error{Offset: int64(len(b)), Message: fmt.Sprintf("JSON ends early at byte %d", len(b))}
}

// unexpected is a character where another was wanted, or the end of the text.
func unexpected(b []byte, i int, want string) *Error {
	if i >= len(b) {
		return early(b)
	}
	return invalid(i, fmt.Sprintf("unexpected %s, want %s", character(b[i]), want))
}

// character returns a byte as an error shows it.
func character(c byte) string {
	if c < ' ' || c > '~' {
		return fmt.Sprintf("byte 0x%02x", c)
	}
	return strconv.QuoteRune(rune(c))
}

// excerpt returns the beginning of a text as an error shows it: what a peer sent must not fill a condition.
func excerpt(s string) string {
	const most = 64
	if len(s) > most {
		return strconv.Quote(s[:most]) + "…"
	}
	return strconv.Quote(s)
}

// element returns the path of an element of a list.
func element(i int) string { return "[" + strconv.Itoa(i) + "]" }

// entry returns the path of an entry of a map.
func entry(key string) string { return "[" + excerpt(key) + "]" }

// quoted returns texts as an error shows what was wanted.
func quoted(texts []string) []string {
	out := make([]string, len(texts))
	for i, s := range texts {
		out[i] = strconv.Quote(s)
	}
	return out
}

// printable returns a text as it is if it is short and has nothing in it that could confuse a log, and quoted otherwise.
func printable(s string) string {
	for _, c := range []byte(s) {
		if c <= ' ' || c > '~' || c == '"' {
			return excerpt(s)
		}
	}
	if s == "" || len(s) > 64 {
		return excerpt(s)
	}
	return s
}
