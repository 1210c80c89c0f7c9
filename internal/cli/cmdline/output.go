// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package cmdline

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/base/text"
	"github.com/hookgate/hookgate/internal/base/yaml"
	"github.com/hookgate/hookgate/internal/contract/jsonscan"
)

// The formats of -o.
const (
	FormatTable = "table"
	FormatYAML  = "yaml"
	FormatJSON  = "json"
)

const (
	// IndentedBytes bounds the size of indented text. A value that is nested 1,000 levels deep is indented by 2,000 bytes,
	// each time that it occurs.
	IndentedBytes = limits.IndentedBytes
	// YamlValues is the number of values that are written as YAML, each of which takes 500 bytes meanwhile. A status of
	// 2,000 extensions with five handlers has half as many.
	YamlValues = limits.YAMLValues
)

// Printer writes an answer: body is its JSON, and table writes it for people.
type Printer func(w io.Writer, body []byte, table func(io.Writer) error) error

// NewPrinter returns the printer of a format, or an error of usage.
func NewPrinter(format string) (Printer, error) {
	switch format {
	case FormatTable:
		return func(w io.Writer, _ []byte, table func(io.Writer) error) error {
			return NewScreen(w).Write(false, table)
		}, nil
	case FormatYAML:
		return func(w io.Writer, body []byte, _ func(io.Writer) error) error {
			if c := jsonscan.Count(body); c.Values > YamlValues || c.Indented > IndentedBytes {
				return errors.New("the output has too many values, or levels, for YAML: use -o json")
			}
			return yaml.FromJSON(w, body)
		}, nil
	case FormatJSON:
		return func(w io.Writer, body []byte, _ func(io.Writer) error) error {
			if jsonscan.Count(body).Indented > IndentedBytes {
				_, err := w.Write(append(text.Escape(body), '\n')) // as it came
				return err
			}
			var b bytes.Buffer
			if err := json.Indent(&b, bytes.TrimSpace(body), "", "  "); err != nil {
				return err
			}
			b.WriteByte('\n')
			_, err := w.Write(text.Escape(b.Bytes()))
			return err
		}, nil
	default:
		return nil, Usagef("--output %q: want table, yaml or json", format)
	}
}

// ProgramAnnotation is the annotation of the root command with the name by which the program was started.
const ProgramAnnotation = "hookgate.dev/program"

// Program returns what a command to copy begins with, for a shell in any directory: the name by which the program was
// started, such as hookgate or kubectl hookgate, or its absolute path if it was started by a path.
func Program(cmd *cobra.Command) string {
	if program := cmd.Root().Annotations[ProgramAnnotation]; program != "" {
		if filepath.Base(program) != program {
			if path, err := filepath.Abs(program); err == nil {
				program = path
			}
		}
		return ShellWord(program)
	}
	return cmd.Root().CommandPath()
}

// ShellWord returns a word for a shell, in quotes if it needs some.
func ShellWord(s string) string {
	if strings.ContainsFunc(s, func(r rune) bool {
		return !strings.ContainsRune("/._-+@%:,=", r) && (r < '0' || r > '9' && r < 'A' || r > 'Z' && r < 'a' || r > 'z')
	}) {
		return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
	}
	return s
}
