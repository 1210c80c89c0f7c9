// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/contract/jsonscan"
)

// Error describes JSON that cannot be decoded, or a message that cannot be encoded. Its text is the same for the same
// input.
type Error struct {
	// Path names the member, as in `items[3].holderReference.name`. It is empty for invalid JSON in a body.
	Path string
	// Offset is the position in the body, in bytes from 0, or -1 if it is unknown.
	Offset int64
	// Message describes the problem.
	Message string
}

// ErrTooMany reports that a body has more elements than limits.Elements. It names no member: which one is the first
// beyond the limit says nothing about the others.
var ErrTooMany error = &Error{Offset: -1, Message: fmt.Sprintf(
	"has more than %d list elements, map entries and unknown members in total", limits.Elements)}

// Error returns the path and the message.
func (e *Error) Error() string {
	if e.Path == "" {
		return e.Message
	}
	return e.Path + ": " + e.Message
}

// ErrTooLarge reports that the JSON of a message has more bytes than EncodeWithin may write.
var ErrTooLarge error = &Error{Offset: -1, Message: "is too large as JSON"}

// asError returns an error of the decoder as an *Error, and one of a Guard as it is.
func asError(err error) error {
	if syntax, ok := errors.AsType[*jsonscan.Error](err); ok {
		return &Error{Offset: int64(syntax.Offset), Message: syntax.Message}
	}
	return err
}

// in puts the name of a member in front of the path of err, an error of the object in that member. Errors without a
// path are about the whole body and stay as they are.
func in(err error, member string) error {
	var e *Error
	if errors.As(err, &e) && e.Path != "" {
		e.Path = member + "." + e.Path
	}
	return err
}

// wrong returns the error of a well-formed value that is not the wanted one, at the member that path names.
func wrong(path string, offset int, format string, args ...any) error {
	return &Error{Path: path, Offset: int64(offset), Message: fmt.Sprintf(format, args...)}
}

// onlyInCase returns the error of the member at path, whose name differs from another one's only in case.
func onlyInCase(path string, offset int, other string) error {
	return wrong(path, offset, "differs from %s only in case", excerpt(other))
}

// twice returns the error of the second of two members that are one: of the same name, or as encoding/json takes them.
func twice(path string, offset int, folded bool) error {
	if folded {
		return wrong(path, offset, "occurs twice in one object, in upper and lower case")
	}
	return wrong(path, offset, "occurs twice in one object")
}

// longest is how many bytes of a text an error shows.
const longest = 64

// excerpt quotes the beginning of s for an error, because a peer must not be able to fill a condition.
func excerpt(s string) string {
	if len(s) > longest {
		return strconv.Quote(s[:longest]) + "…"
	}
	return strconv.Quote(s)
}

// element returns the path of an element of a list.
func element(i int) string { return "[" + strconv.Itoa(i) + "]" }

// entry returns the path of an entry of a map.
func entry(key string) string { return "[" + excerpt(key) + "]" }

// quoted quotes texts for an error.
func quoted(texts []string) []string {
	out := make([]string, len(texts))
	for i, s := range texts {
		out[i] = strconv.Quote(s)
	}
	return out
}

// printable returns s for an error: unchanged if it is short and plain, and otherwise quoted.
func printable(s string) string {
	for _, c := range []byte(s) {
		if c <= ' ' || c > '~' || c == '"' {
			return excerpt(s)
		}
	}
	if s == "" || len(s) > longest {
		return excerpt(s)
	}
	return s
}
