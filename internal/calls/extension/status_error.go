// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/hookgate/hookgate/internal/base/text"
)

// StatusError is the cause of an error because of a status code that is not 200.
type StatusError struct {
	Code int
	Body string // its beginning
	Cut  bool   // the body was longer
}

// Error returns the text for the log.
func (e *StatusError) Error() string {
	more := ""
	if e.Cut {
		more = "…"
	}
	return fmt.Sprintf("answer with status code %d: %q%s", e.Code, e.Body, more)
}

// Explain adds to the text of the error what the extension wrote, on one line. If the text has only the status code,
// that is left of it.
func (e *StatusError) Explain(message string) string {
	if start, ok := strings.CutSuffix(message, statusText(e.Code)); ok {
		message = start + strconv.Itoa(e.Code)
	}
	wrote := text.Printable(strings.Join(strings.Fields(strings.ToValidUTF8(e.Body, "\uFFFD")), " "))
	if e.Cut {
		wrote += "…"
	}
	return message + ": " + wrote
}

// statusText returns the text of an error because of a status code.
func statusText(code int) string {
	return strings.TrimSpace(fmt.Sprintf("answered %d %s", code, http.StatusText(code)))
}
