// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package conformance

import "context"

// TestingT is the part of *testing.T that Test uses. With it, programs that import this package do not contain package
// testing.
type TestingT[T any] interface {
	Helper()
	Context() context.Context
	Run(name string, f func(T)) bool
	Log(args ...any)
	Skip(args ...any)
	Error(args ...any)
	Fatal(args ...any)
}

// Test checks the extension, with one subtest per check. A broken rule of the level Must fails its subtest; one of the
// level Should is logged. If Run returns an error, t fails.
func Test[T TestingT[T]](t T, target Target, options Options) {
	t.Helper()
	report, err := Run(t.Context(), target, options)
	if err != nil {
		t.Fatal(err)
		return
	}
	for i := range report.Results {
		r := &report.Results[i]
		t.Run(r.ID, func(t T) {
			t.Helper()
			switch {
			case r.Status == Pass:
			case r.Status == Skip:
				t.Skip(r.Reason)
			case r.Level == Should:
				t.Log("SHOULD: " + r.detail())
			default:
				t.Error(r.detail())
			}
		})
	}
}
