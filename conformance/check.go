// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
)

// Level says what it means that a check fails.
type Level string

// The levels.
const (
	// Must is a rule without which Cluster API or the gateway cannot work with the extension, or works wrongly.
	Must Level = "MUST"
	// Should is a rule that makes extensions easier to operate. One that breaks it works.
	Should Level = "SHOULD"
)

// Protocol is what an extension speaks.
type Protocol string

// The protocols.
const (
	REST Protocol = "REST"
	GRPC Protocol = "gRPC"
)

// Check is one rule, and how it is checked.
type Check struct {
	ID       string   `json:"id"` // family and name, as in "patches.apply"; it does not change
	Level    Level    `json:"level"`
	Protocol Protocol `json:"protocol,omitempty"` // the only protocol that it is for; empty means both
	Rule     string   `json:"rule"`               // one sentence
	Source   string   `json:"source"`             // where the rule is written down

	run func(ctx context.Context, s *session, v *verdict)
}

// Family returns the part of the identifier before the dot.
func (c *Check) Family() string {
	family, _, _ := strings.Cut(c.ID, ".")
	return family
}

// Checks returns all checks, in the order in which they run. The slice is the caller's.
func Checks() []Check {
	return slices.Concat(secureChecks, discoveryChecks, answerChecks, patchChecks, variableChecks, inPlaceChecks, planChecks,
		envelopeChecks, repeatChecks, malformedChecks, loadChecks, protocolChecks)
}

// SelectionError is a pattern of Options that selects no check.
type SelectionError struct{ Pattern string }

// Error names the pattern.
func (e *SelectionError) Error() string {
	return fmt.Sprintf("there is no check %q; want an identifier, a family such as \"patches\", or a pattern such as \"*.stable\"", e.Pattern)
}

// selected returns the checks that Only and Skip leave.
func (o *Options) selected() ([]Check, error) {
	all := Checks()
	for _, pattern := range slices.Concat(o.Only, o.Skip) {
		if !slices.ContainsFunc(all, func(c Check) bool { return c.matches(pattern) }) {
			return nil, &SelectionError{Pattern: pattern}
		}
	}
	return slices.DeleteFunc(all, func(c Check) bool {
		return len(o.Only) > 0 && !slices.ContainsFunc(o.Only, c.matches) || slices.ContainsFunc(o.Skip, c.matches)
	}), nil
}

func (c *Check) matches(pattern string) bool {
	if pattern == c.ID || pattern == c.Family() {
		return true
	}
	ok, err := path.Match(pattern, c.ID)
	return err == nil && ok
}

// verdict is what a check comes to: nothing means that it passes.
type verdict struct {
	findings []Finding
	notFor   string // why the check does not apply
}

// fail reports that an exchange breaks the rule.
func (v *verdict) fail(x *exchange, format string, args ...any) {
	v.findings = append(v.findings, Finding{Handler: x.handler, Sent: x.sent, Got: x.got(), Problem: fmt.Sprintf(format, args...)})
}

// skip says why the check does not apply. It counts only without findings.
func (v *verdict) skip(format string, args ...any) { v.notFor = fmt.Sprintf(format, args...) }
