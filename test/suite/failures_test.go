// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"fmt"
	"net/http"
	"regexp"
	"testing"

	"github.com/hookgate/hookgate/test/samples"
)

// The metrics name the handler, and count ignored failures.
func TestMetricsNameTheHandlerAndCountIgnoredFailures(t *testing.T) {
	g, _ := startStubs(t, func(s *stub) {
		s.serve("BeforeClusterCreate", "good", handlerOptions{}, success(""))
		s.serve("BeforeClusterCreate", "ignored", handlerOptions{ignore: true}, say(`<html>`))
	})
	const calls = 3
	for range calls {
		if got := g.post(t, path("BeforeClusterCreate", ""), samples.S()); got.code != http.StatusOK {
			t.Fatalf("status %d: %s", got.code, got.body)
		}
	}
	text := g.metrics(t)
	for what, pattern := range map[string]string{
		"calls of the good handler":       `(?m)^hookgate_handler_calls_total\{[^}]*handler="good\.s"[^}]*outcome="success"[^}]*\} %d$`,
		"ignored calls":                   `(?m)^hookgate_handler_calls_total\{[^}]*handler="ignored\.s"[^}]*kind="BadResponse"[^}]*outcome="ignored"[^}]*\} %d$`,
		"ignored failures":                `(?m)^hookgate_handler_ignored_failures_total\{[^}]*handler="ignored\.s"[^}]*\} %d$`,
		"duration of the good handler":    `(?m)^hookgate_handler_call_duration_seconds_count\{[^}]*handler="good\.s"[^}]*\} %d$`,
		"duration of the ignored handler": `(?m)^hookgate_handler_call_duration_seconds_count\{[^}]*handler="ignored\.s"[^}]*\} %d$`,
	} {
		if !regexp.MustCompile(fmt.Sprintf(pattern, calls)).MatchString(text) {
			t.Errorf("%s: nothing in /metrics matches %s", what, fmt.Sprintf(pattern, calls))
		}
	}
}
