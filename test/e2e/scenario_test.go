// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"strings"
	"time"
)

// stepPatience bounds each step of a scenario.
const stepPatience = 6 * time.Minute

// step is a step of a scenario: what is done, and what must be so before the next step.
type step struct {
	what string
	do   func()
	done func() (saw string, ok bool)
}

// sideBySide runs scenarios at the same time, in the goroutine of the test. It runs each at every look.
func (w *fixture) sideBySide(say func(string, ...any), each func(), scenarios ...[]step) {
	w.t.Helper()
	begun := make([]time.Time, len(scenarios))
	for i, steps := range scenarios {
		begun[i] = time.Now()
		steps[0].do()
	}
	w.eventuallyWithin(lifetime, "all scenarios are through", func() (string, bool) {
		w.t.Helper()
		each()
		var waiting []string
		for i := range scenarios {
			for len(scenarios[i]) > 0 {
				current := scenarios[i][0]
				saw, ok := current.done()
				if !ok {
					if time.Since(begun[i]) > stepPatience {
						w.t.Fatalf("not within %s: %s; last seen: %s", stepPatience, current.what, saw)
					}
					waiting = append(waiting, current.what+": "+saw)
					break
				}
				say("%s", current.what)
				if scenarios[i] = scenarios[i][1:]; len(scenarios[i]) > 0 {
					begun[i] = time.Now()
					scenarios[i][0].do()
				}
			}
		}
		return strings.Join(waiting, "; "), len(waiting) == 0
	})
}
