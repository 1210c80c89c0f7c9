// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package conformance

import "time"

// Status is the outcome of a check.
type Status string

// The statuses.
const (
	Pass  Status = "pass"
	Fail  Status = "fail"
	Skip  Status = "skip"  // it does not apply
	Error Status = "error" // it could not be carried out
)

// Report is the result of a run.
type Report struct {
	Target   string   `json:"target"`
	Protocol Protocol `json:"protocol"`
	Handlers []string `json:"handlers"` // those of infrastructure are called only if Options.Infrastructure is set
	Results  []Result `json:"results"`  // in the order of Checks
}

// Result is the result of one check.
type Result struct {
	ID       string        `json:"id"`
	Level    Level         `json:"level"`
	Status   Status        `json:"status"`
	Rule     string        `json:"rule"`
	Source   string        `json:"source"`
	Reason   string        `json:"reason,omitempty"` // of Skip and Error, and of a Pass that is not about all handlers
	Findings []Finding     `json:"findings,omitempty"`
	Took     time.Duration `json:"nanoseconds"`
}

// Finding is one violation of a rule.
type Finding struct {
	Handler string `json:"handler,omitempty"`
	Sent    string `json:"sent"`
	Got     string `json:"got"`
	Problem string `json:"problem"`
}

// Count returns the number of results with the level and the status; an empty level means any.
func (r *Report) Count(level Level, status Status) int {
	n := 0
	for i := range r.Results {
		if (level == "" || r.Results[i].Level == level) && r.Results[i].Status == status {
			n++
		}
	}
	return n
}

// Conforms reports whether the extension keeps every rule of the level Must and, if strict, of the level Should. A
// check that could not be carried out counts as a broken rule. If no check applies, Conforms returns false.
func (r *Report) Conforms(strict bool) bool {
	level := Must
	if strict {
		level = ""
	}
	return r.Count(level, Fail)+r.Count(level, Error) == 0 && r.Count("", Skip) < len(r.Results)
}
