// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"encoding/json"
	"io"

	"github.com/hookgate/hookgate/internal/text"
	"github.com/hookgate/hookgate/internal/yaml"
)

// The formats of -o.
const (
	formatTable = "table"
	formatYAML  = "yaml"
	formatJSON  = "json"
)

// printer writes an answer: body is its JSON, and table writes it for people.
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
			_, err := w.Write(text.Escape(b.Bytes()))
			return err
		}, nil
	default:
		return nil, usagef("--output %q: want table, yaml or json", format)
	}
}
