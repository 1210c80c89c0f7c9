// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"github.com/hookgate/hookgate/internal/base/table"
	"github.com/hookgate/hookgate/internal/base/text"
)

// maxPrintedFindings is the number of findings of one check that WriteTable prints.
const maxPrintedFindings = 5

// WriteJSON writes the report as JSON, with a member that says whether the extension conforms.
func (r *Report) WriteJSON(w io.Writer, strict bool) error {
	e := json.NewEncoder(text.EscapingWriter(w))
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(struct {
		Conforms bool `json:"conforms"`
		*Report
	}{r.Conforms(strict), r})
}

// WriteTable writes the broken rules with their findings, the checks that pass for some handlers only, and a summary,
// as text for people. If verbose, it also writes the other checks that pass, do not apply, or could not be carried out.
func (r *Report) WriteTable(w io.Writer, verbose bool) error {
	for i := range r.Results {
		if err := r.Results[i].writeTable(w, verbose); err != nil {
			return err
		}
	}
	if n := r.Count("", Error); n > 0 && !verbose {
		first := r.Results[slices.IndexFunc(r.Results, func(r Result) bool { return r.Status == Error })]
		_, err := fmt.Fprintf(w, "ERROR %s could not be carried out; the first is %s: %s\n",
			text.Plural(n, "check"), first.ID, text.Printable(first.Reason))
		if err != nil {
			return err
		}
	}
	broken := func(level Level) int { return r.Count(level, Fail) + r.Count(level, Error) }
	_, err := fmt.Fprintf(w, "%s, %s, %s: %d passed, %d failed, %s, %d not applicable\n",
		r.Target, r.Protocol, text.Plural(len(r.Handlers), "handler"), r.Count("", Pass), broken(Must),
		text.Plural(broken(Should), "warning"), r.Count("", Skip))
	return err
}

func (r *Result) writeTable(w io.Writer, verbose bool) error {
	if r.Status != Fail {
		if partly := r.Status == Pass && r.Reason != ""; !verbose && !partly {
			return nil
		}
		word := map[Status]string{Pass: "pass", Skip: "skip", Error: "ERROR"}[r.Status]
		explanation := r.Rule
		if r.Reason != "" {
			explanation = r.Reason
		}
		_, err := fmt.Fprintf(w, "%-5s %s: %s\n", word, r.ID, text.Printable(explanation))
		return err
	}
	word := "FAIL"
	if r.Level == Should {
		word = "warn"
	}
	if _, err := fmt.Fprintf(w, "%-5s %s (%s): %s\n", word, r.ID, r.Level, r.Rule); err != nil {
		return err
	}
	const indent = "      "
	t := table.New(w)
	for i, f := range r.Findings {
		if i == maxPrintedFindings {
			t.Lines(indent, fmt.Sprintf("and %s more", text.Plural(len(r.Findings)-i, "finding")))
			break
		}
		if f.Handler != "" {
			t.Lines(indent+"handler", f.Handler)
		}
		t.Lines(indent+"problem", f.Problem)
		t.Lines(indent+"sent", f.Sent)
		t.Lines(indent+"got", f.Got)
	}
	t.Lines(indent+"source", r.Source)
	return t.Flush()
}
