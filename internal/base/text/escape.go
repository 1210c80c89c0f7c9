// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package text

import (
	"bytes"
	"fmt"
	"io"
)

// Escape returns b, which is JSON, or YAML whose scalars with control characters are in double quotes, with every
// character that could control a terminal, or change the direction of text in it, as an escape \uXXXX. Both formats
// read it as the same text.
func Escape(b []byte) []byte {
	escaped := func(r rune) bool { return IsControl(r) && r != '\n' && r != '\r' && r != '\t' }
	if !bytes.ContainsFunc(b, escaped) {
		return b
	}
	out := make([]byte, 0, len(b)+64)
	for _, r := range string(b) {
		if escaped(r) {
			out = fmt.Appendf(out, `\u%04x`, r) // all of them are in the basic plane
			continue
		}
		out = append(out, string(r)...)
	}
	return out
}

// EscapingWriter returns a writer that writes to w what Escape makes of each slice that it is given, which must not end
// within a character. json.Encoder writes each value as one slice.
func EscapingWriter(w io.Writer) io.Writer { return escapingWriter{w} }

type escapingWriter struct{ w io.Writer }

func (e escapingWriter) Write(p []byte) (int, error) {
	if _, err := e.w.Write(Escape(p)); err != nil {
		return 0, err
	}
	return len(p), nil
}
