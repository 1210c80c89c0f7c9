// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package conformance

import "context"

// TestingT is what Test needs of a *testing.T. It is spelled out so that programs with this package do not have package testing
// in them.
type TestingT[T any] interface {
	Helper()
	Context() context.Context
	Run(name string, f func(T)) bool
	Log(args ...any)
	Skip(args ...any)
	Error(args ...any)
	Fatal(args ...any)
}

// Test checks the extension, one subtest a check. A broken rule of the level MUST fails its subtest; one of the level SHOULD
// is logged. A run that finds nothing to check fails t.
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
