// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"unicode"

	"github.com/hookgate/hookgate/internal/yaml"
)

// The formats of -o.
const (
	formatTable = "table"
	formatYAML  = "yaml"
	formatJSON  = "json"
)

// printer writes an answer: body is its JSON, table writes it for people.
type printer func(w io.Writer, body []byte, table func(io.Writer) error) error

func newPrinter(format string) (printer, error) {
	switch format {
	case formatTable:
		return func(w io.Writer, _ []byte, table func(io.Writer) error) error { return table(w) }, nil
	case formatYAML:
		return func(w io.Writer, body []byte, _ func(io.Writer) error) error { return yaml.FromJSON(w, body) }, nil
	case formatJSON:
		return func(w io.Writer, body []byte, _ func(io.Writer) error) error {
			var b bytes.Buffer
			if err := json.Indent(&b, bytes.TrimSpace(body), "", "  "); err != nil {
				return err
			}
			b.WriteByte('\n')
			_, err := b.WriteTo(w)
			return err
		}, nil
	default:
		return nil, usagef("--output %q: want table, yaml or json", format)
	}
}

// table aligns rows of cells. Cells may hold whatever a server sent: they cannot break lines or reach the terminal.
type table struct {
	tabs *tabwriter.Writer
}

func newTable(w io.Writer) *table { return &table{tabs: tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)} }

func (t *table) row(cells ...string) {
	shown := make([]string, len(cells))
	for i, c := range cells {
		if shown[i] = printable(c); shown[i] == "" {
			shown[i] = "-"
		}
	}
	_, _ = fmt.Fprintln(t.tabs, strings.Join(shown, "\t")) // flush returns the error
}

// lines writes a name and a text of several lines, the name in front of the first.
func (t *table) lines(name, text string) {
	for i, line := range strings.Split(strings.TrimRight(text, "\n"), "\n") {
		if i > 0 {
			name = ""
		}
		_, _ = fmt.Fprintf(t.tabs, "%s\t%s\n", name, printable(line))
	}
}

func (t *table) flush() error { return t.tabs.Flush() }

// printable shows control characters as escapes, so that no server can write to the terminal what it likes.
func printable(s string) string {
	if !strings.ContainsFunc(s, isControl) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if isControl(r) {
			quoted := fmt.Sprintf("%+q", r)
			b.WriteString(quoted[1 : len(quoted)-1])
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

// isControl includes the characters that change the direction of text.
func isControl(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) }
