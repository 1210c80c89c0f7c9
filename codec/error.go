// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/hookgate/hookgate/internal/jsonscan"
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

// asError returns an error of the decoder as an *Error.
func asError(err error) *Error {
	var e *Error
	var syntax *jsonscan.Error
	switch {
	case errors.As(err, &e):
		return e
	case errors.As(err, &syntax):
		return &Error{Offset: int64(syntax.Offset), Message: syntax.Message}
	}
	return &Error{Offset: -1, Message: err.Error()}
}

// in returns err as seen from the object that has the member: with the member's name in front of the path. Errors without
// a path are about the body, not about a member, and stay as they are.
func in(err error, member string) error {
	var e *Error
	if errors.As(err, &e) && e.Path != "" {
		e.Path = member + "." + e.Path
	}
	return err
}

// wrong returns the error of a well-formed value that is not the one wanted, at the member that path names.
func wrong(path string, offset int, format string, args ...any) error {
	return &Error{Path: path, Offset: int64(offset), Message: fmt.Sprintf(format, args...)}
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
