// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"

	"github.com/hookgate/hookgate/internal/text"
)

type junitSuite struct {
	XMLName  xml.Name    `xml:"testsuite"`
	Name     string      `xml:"name,attr"`
	Tests    int         `xml:"tests,attr"`
	Failures int         `xml:"failures,attr"`
	Errors   int         `xml:"errors,attr"`
	Skipped  int         `xml:"skipped,attr"`
	Time     string      `xml:"time,attr"`
	Cases    []junitCase `xml:"testcase"`
}

type junitCase struct {
	Class   string        `xml:"classname,attr"`
	Name    string        `xml:"name,attr"`
	Time    string        `xml:"time,attr"`
	Failure *junitProblem `xml:"failure,omitempty"`
	Error   *junitProblem `xml:"error,omitempty"`
	Skipped *junitProblem `xml:"skipped,omitempty"`
	Output  string        `xml:"system-out,omitempty"`
}

type junitProblem struct {
	Message string `xml:"message,attr"`
	Text    string `xml:",chardata"`
}

// WriteJUnit writes the report as a suite of JUnit XML, with one test case per check. JUnit has no warnings: unless
// strict, a broken rule of the level Should is a skipped case, which says so.
func (r *Report) WriteJUnit(w io.Writer, strict bool) error {
	suite := junitSuite{Name: "hookgate check " + text.Printable(r.Target), Tests: len(r.Results)}
	var total float64
	for i := range r.Results {
		result := &r.Results[i]
		total += result.Took.Seconds()
		family, _, _ := strings.Cut(result.ID, ".")
		c := junitCase{
			Class: "hookgate.check." + family, Name: result.ID, Time: fmt.Sprintf("%.3f", result.Took.Seconds()),
		}
		problem := &junitProblem{
			Message: text.Printable(string(result.Level) + ": " + result.Rule), Text: result.detail(),
		}
		switch {
		case result.Status == Skip:
			suite.Skipped++
			c.Skipped = &junitProblem{Message: text.Printable(result.Reason)}
		case result.Status == Pass:
		case result.Level == Should && !strict:
			suite.Skipped++
			c.Skipped, c.Output = &junitProblem{Message: text.Printable("warning: " + result.Rule)}, problem.Text
		case result.Status == Error:
			suite.Errors++
			c.Error = problem
		default:
			suite.Failures++
			c.Failure = problem
		}
		suite.Cases = append(suite.Cases, c)
	}
	suite.Time = fmt.Sprintf("%.3f", total)
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	e := xml.NewEncoder(w)
	e.Indent("", "  ")
	if err := e.Encode(suite); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
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
