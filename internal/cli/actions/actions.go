// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package actions serves the pages on which people confirm, in the browser, what commands do. It has an address of its
// own on loopback, and so an origin that no page of a gateway belongs to: what a gateway serves can only link to it.
// Nothing is done without the code that the command has printed, and a form that this process has made.
package actions

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"slices"
	"time"

	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/cli/cmdline"
)

// Action is the work of a command.
type Action struct {
	// Name is the path of its page.
	Name string
	// Title says what it does, and Does what it changes.
	Title, Does string
	Fields      []Field
	// Asks is set if Run prints what it changes, and then reads the answer to a question from in. Otherwise, Does is
	// what is confirmed.
	Asks bool
	// Streams is set if Run takes up to Longest, during which its output is shown. It ends with the page.
	Streams bool
	Longest time.Duration
	// Prepare, if it is set, gives fields that are edited a first value.
	Prepare func(ctx context.Context, v Values)
	Run     func(ctx context.Context, v Values, in io.Reader, out io.Writer) error
}

// Values are the arguments of an action, by the names of fields.
type Values map[string]string

// Field is an argument of an action.
type Field struct {
	Name, Label string
	Required    bool
	// Edited is set if the value comes from the form, and not from the link to it.
	Edited bool
	// Options are the values to choose from, and Lines says that there may be several lines.
	Options []string
	Lines   bool
}

// most is the number of bytes of a value.
func (f *Field) most() int {
	if f.Lines {
		return limits.DashboardFormBytes
	}
	return limits.QuotedBytes
}

// values returns what a query or a form has for an action. edited says that it is a form.
func (a *Action) values(from url.Values, edited bool) (Values, error) {
	v := Values{}
	for name := range from {
		if !slices.ContainsFunc(a.Fields, func(f Field) bool { return f.Name == name }) && name != tokenField {
			return nil, cmdline.Usagef("%s takes no argument of this name", a.Name)
		}
	}
	for i := range a.Fields {
		f := &a.Fields[i]
		switch value := from.Get(f.Name); {
		case len(from[f.Name]) > 1, len(value) > f.most():
			return nil, cmdline.Usagef("%s: want one value of at most %d bytes", f.Name, f.most())
		case value == "" && f.Required && (edited || !f.Edited):
			return nil, cmdline.Usagef("%s is missing", f.Name)
		case value != "" && len(f.Options) > 0 && !slices.Contains(f.Options, value):
			return nil, cmdline.Usagef("%s: want one of %v", f.Name, f.Options)
		default:
			v[f.Name] = value
		}
	}
	return v, nil
}

// about returns the values that a link has given, in order, for messages and for the token.
func (a *Action) about(v Values) (pairs []string) {
	for i := range a.Fields {
		if f := &a.Fields[i]; !f.Lines && (v[f.Name] != "" || !f.Edited) {
			pairs = append(pairs, fmt.Sprintf("%s=%q", f.Name, v[f.Name]))
		}
	}
	return pairs
}
