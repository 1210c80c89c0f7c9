// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/hookgate/hookgate/internal/base/junit"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/base/table"
	"github.com/hookgate/hookgate/internal/base/text"
	"github.com/hookgate/hookgate/internal/cli/cmdline"
	"github.com/hookgate/hookgate/internal/cli/hooktest"
	"github.com/hookgate/hookgate/internal/cli/target"
)

// testResults prints the results of hookgate chain test and rule test.
type testResults struct {
	of     string // chain or rule
	output string
}

// addFlags adds -o.
func (t *testResults) addFlags(f *pflag.FlagSet) {
	f.StringVarP(&t.output, "output", "o", cmdline.FormatTable, "format: table; json; or junit, for CI systems")
}

// check returns an error unless the format is known.
func (t *testResults) check() error {
	if !slices.Contains([]string{cmdline.FormatTable, cmdline.FormatJSON, formatJUnit}, t.output) {
		return cmdline.Usagef("--output %q: want table, json or junit", t.output)
	}
	return nil
}

// print prints the results, and returns an error if a case has failed.
func (t *testResults) print(w io.Writer, results []hooktest.Result) error {
	write := map[string]func(io.Writer, []hooktest.Result) error{
		cmdline.FormatTable: t.table, cmdline.FormatJSON: t.json, formatJUnit: t.junit,
	}[t.output]
	if err := write(w, results); err != nil {
		return fmt.Errorf("print results: %w", err)
	}
	failed := 0
	for i := range results {
		if len(results[i].Problems) > 0 {
			failed++
		}
	}
	if failed > 0 {
		return fmt.Errorf("%s test: %d of %s failed", t.of, failed, text.Plural(len(results), "case"))
	}
	return nil
}

func (t *testResults) table(w io.Writer, results []hooktest.Result) error {
	rows := table.New(w)
	rows.Row("TEST", "CASE", "RESULT")
	for i := range results {
		result := "ok"
		if len(results[i].Problems) > 0 {
			result = "FAILED"
		}
		rows.Row(results[i].Test, results[i].Case, result)
	}
	if err := rows.Flush(); err != nil {
		return err
	}
	for i := range results {
		r := &results[i]
		if len(r.Problems) == 0 {
			continue
		}
		_, err := fmt.Fprintf(w, "\n%s: %s, %s:\n  %s\n", text.Printable(r.Place.String()), text.Printable(r.Test),
			text.Printable(r.Case), strings.Join(problemsOf(r), "\n  "))
		if err != nil {
			return err
		}
	}
	return nil
}

// problemsOf returns the problems of a result, as far as they are printed.
func problemsOf(r *hooktest.Result) []string {
	lines := make([]string, 0, limits.Problems+1)
	for i, p := range r.Problems {
		if i == limits.Problems {
			lines = append(lines, fmt.Sprintf("and %d more", len(r.Problems)-i))
			break
		}
		lines = append(lines, text.Printable(p))
	}
	return lines
}

// testedCase is a case as -o json prints it.
type testedCase struct {
	File     string   `json:"file"`
	Line     int      `json:"line"`
	Test     string   `json:"test"`
	Case     string   `json:"case"`
	Passed   bool     `json:"passed"`
	Problems []string `json:"problems,omitempty"`
}

func (t *testResults) json(w io.Writer, results []hooktest.Result) error {
	cases := make([]testedCase, len(results))
	for i := range results {
		r := &results[i]
		cases[i] = testedCase{
			File: r.Place.File, Line: r.Place.Line, Test: r.Test, Case: r.Case, Passed: len(r.Problems) == 0,
			Problems: problemsOf(r),
		}
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(map[string]any{"cases": cases})
}

func (t *testResults) junit(w io.Writer, results []hooktest.Result) error {
	suite := junit.Suite{Name: "hookgate " + t.of + " test"}
	for i := range results {
		r := &results[i]
		c := junit.Case{
			Class: text.Printable(r.Test), Name: text.Printable(r.Case), File: filepath.ToSlash(r.Place.File),
			Line: r.Place.Line, Time: junit.Seconds(r.Took),
		}
		if lines := problemsOf(r); len(lines) > 0 {
			c.Failure = &junit.Problem{Message: lines[0], Text: r.Place.String() + "\n" + strings.Join(lines, "\n")}
		}
		suite.Cases = append(suite.Cases, c)
	}
	return suite.Write(w)
}

// beside returns how files that tests name are read: from the folder of the file of the test.
func beside(file string) func(path string) ([]byte, error) {
	return func(path string) ([]byte, error) {
		if !filepath.IsAbs(path) {
			path = filepath.Join(filepath.Dir(file), path)
		}
		return target.ReadJSON(nil, path)
	}
}
