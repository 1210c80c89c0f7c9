// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package junit writes the XML in which CI systems read the outcomes of tests.
package junit

import (
	"encoding/xml"
	"fmt"
	"io"
	"time"
)

// Suite is a suite of tests. Write counts its cases.
type Suite struct {
	XMLName  xml.Name `xml:"testsuite"`
	Name     string   `xml:"name,attr"`
	Tests    int      `xml:"tests,attr"`
	Failures int      `xml:"failures,attr"`
	Errors   int      `xml:"errors,attr"`
	Skipped  int      `xml:"skipped,attr"`
	Time     Seconds  `xml:"time,attr"`
	Cases    []Case   `xml:"testcase"`
}

// Case is a test. One with neither Failure nor Error nor Skipped has passed.
type Case struct {
	Class   string   `xml:"classname,attr"`
	Name    string   `xml:"name,attr"`
	File    string   `xml:"file,attr,omitempty"`
	Line    int      `xml:"line,attr,omitempty"`
	Time    Seconds  `xml:"time,attr"`
	Failure *Problem `xml:"failure,omitempty"`
	Error   *Problem `xml:"error,omitempty"`
	Skipped *Problem `xml:"skipped,omitempty"`
	Output  string   `xml:"system-out,omitempty"`
}

// Problem says why a test has not passed.
type Problem struct {
	Message string `xml:"message,attr"`
	Text    string `xml:",chardata"`
}

// Seconds is a time that is written in seconds.
type Seconds time.Duration

// MarshalText implements encoding.TextMarshaler.
func (s Seconds) MarshalText() ([]byte, error) {
	return fmt.Appendf(nil, "%.3f", time.Duration(s).Seconds()), nil
}

// Write writes the suite. Its texts have to be printable.
func (s *Suite) Write(w io.Writer) error {
	s.Tests, s.Failures, s.Errors, s.Skipped, s.Time = len(s.Cases), 0, 0, 0, 0
	for i := range s.Cases {
		c := &s.Cases[i]
		s.Time += c.Time
		switch {
		case c.Failure != nil:
			s.Failures++
		case c.Error != nil:
			s.Errors++
		case c.Skipped != nil:
			s.Skipped++
		}
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	e := xml.NewEncoder(w)
	e.Indent("", "  ")
	if err := e.Encode(s); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}
