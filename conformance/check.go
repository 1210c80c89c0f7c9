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

// Level is the severity of a failed check.
type Level string

// The levels.
const (
	// Must is a rule without which Cluster API or the gateway cannot work with the extension, or works wrongly.
	Must Level = "MUST"
	// Should is a rule that makes extensions easier to operate. An extension that breaks it works nevertheless.
	Should Level = "SHOULD"
)

// Protocol is the protocol that an extension speaks.
type Protocol string

// The protocols.
const (
	REST Protocol = "REST"
	GRPC Protocol = "gRPC"
)

// Check checks one rule.
type Check struct {
	ID       string   `json:"id"` // family and name, as in "patches.apply"; it never changes
	Level    Level    `json:"level"`
	Protocol Protocol `json:"protocol,omitempty"` // the only protocol that it applies to; empty means both
	Rule     string   `json:"rule"`               // one sentence
	Source   string   `json:"source"`             // where the rule is written down

	run runFunc
}

// runFunc carries out a check and adds its findings to the verdict.
type runFunc func(ctx context.Context, s *session, v *verdict)

// family returns the part of the identifier before the dot.
func (c *Check) family() string {
	family, _, _ := strings.Cut(c.ID, ".")
	return family
}

// Checks returns all checks in the order in which they run. The caller may change the slice.
func Checks() []Check {
	return slices.Concat(secureChecks, discoveryChecks, answerChecks, patchChecks, variableChecks,
		inPlaceChecks, planChecks, envelopeChecks, repeatChecks, malformedChecks, loadChecks, protocolChecks,
		infrastructureChecks, groupChecks)
}

// SelectionError reports a pattern of Options that selects no check.
type SelectionError struct{ Pattern string }

// Error names the pattern.
func (e *SelectionError) Error() string {
	return fmt.Sprintf("there is no check %q; want an identifier, a family such as \"patches\", or a pattern such as "+
		"\"*.stable\"", e.Pattern)
}

// selected returns the checks that Only and Skip select.
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
	if pattern == c.ID || pattern == c.family() {
		return true
	}
	ok, err := path.Match(pattern, c.ID)
	return err == nil && ok
}

// verdict is the outcome of a check. The zero value means that it passes.
type verdict struct {
	findings []Finding
	notFor   string // why the check does not apply
	partly   string // of what it applies to, if that is not all
}

// failf adds a finding: the exchange breaks the rule.
func (v *verdict) failf(x *exchange, format string, args ...any) {
	v.findings = append(v.findings, Finding{
		Handler: x.handler, Sent: x.sent, Got: x.got(), Problem: fmt.Sprintf(format, args...),
	})
}

// skipf sets why the check does not apply. It counts only if there are no findings.
func (v *verdict) skipf(format string, args ...any) { v.notFor = fmt.Sprintf(format, args...) }
