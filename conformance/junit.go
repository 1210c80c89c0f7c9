// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"fmt"
	"io"
	"strings"

	"github.com/hookgate/hookgate/internal/base/junit"
	"github.com/hookgate/hookgate/internal/base/text"
)

// WriteJUnit writes the report as a suite of JUnit XML, with one test case per check. JUnit has no warnings: unless
// strict, a broken rule of the level Should is a skipped case, which says so.
func (r *Report) WriteJUnit(w io.Writer, strict bool) error {
	suite := junit.Suite{Name: "hookgate check " + text.Printable(r.Target)}
	for i := range r.Results {
		result := &r.Results[i]
		family, _, _ := strings.Cut(result.ID, ".")
		c := junit.Case{Class: "hookgate.check." + family, Name: result.ID, Time: junit.Seconds(result.Took)}
		problem := &junit.Problem{
			Message: text.Printable(string(result.Level) + ": " + result.Rule), Text: result.detail(),
		}
		switch {
		case result.Status == Skip:
			c.Skipped = &junit.Problem{Message: text.Printable(result.Reason)}
		case result.Status == Pass:
		case result.Level == Should && !strict:
			c.Skipped, c.Output = &junit.Problem{Message: text.Printable("warning: " + result.Rule)}, problem.Text
		case result.Status == Error:
			c.Error = problem
		default:
			c.Failure = problem
		}
		suite.Cases = append(suite.Cases, c)
	}
	return suite.Write(w)
}

// detail returns all that is known about a result that did not pass.
func (r *Result) detail() string {
	var b strings.Builder
	if r.Reason != "" {
		fmt.Fprintf(&b, "%s\n", text.Printable(r.Reason))
	}
	for _, f := range r.Findings {
		if f.Handler != "" {
			fmt.Fprintf(&b, "handler: %s\n", text.Printable(f.Handler))
		}
		fmt.Fprintf(&b, "problem: %s\nsent: %s\ngot: %s\n", text.Printable(f.Problem), text.Printable(f.Sent),
			text.Printable(f.Got))
	}
	fmt.Fprintf(&b, "rule: %s\nsource: %s", r.Rule, r.Source)
	return b.String()
}
