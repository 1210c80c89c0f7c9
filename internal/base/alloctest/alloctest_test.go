// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package alloctest

import (
	"fmt"
	"runtime"
	"testing"
)

// recorder notes the error that a test would report.
type recorder struct {
	testing.TB
	failure string
}

func (*recorder) Helper() {}

func (r *recorder) Errorf(format string, args ...any) { r.failure = fmt.Sprintf(format, args...) }

func TestCheck(t *testing.T) {
	bound := Bound{Base: 1 << 20, PerByte: 1 << 10}
	for name, tt := range map[string]struct {
		size, allocates int
		fails           bool
	}{
		"nothing":                {0, 0, false},
		"less than the base":     {0, 900 << 10, false},
		"more than the base":     {0, 1100 << 10, true},
		"less than a large one":  {1 << 10, 1900 << 10, false},
		"more than a large one":  {1 << 10, 2200 << 10, true},
		"freed before the check": {0, 40 << 20, true},
	} {
		t.Run(name, func(t *testing.T) {
			r := &recorder{TB: t}
			bound.Check(r, tt.size, func() {
				for left := tt.allocates; left > 0; left -= 100 << 10 {
					runtime.KeepAlive(make([]byte, min(left, 100<<10)))
				}
			})
			if (r.failure != "") != tt.fails {
				t.Errorf("failure is %q, want one: %t", r.failure, tt.fails)
			}
		})
	}
}
