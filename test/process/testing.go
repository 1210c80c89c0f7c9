// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"os"
	"testing"
)

// Program returns the path in an environment variable that the Makefile sets. Without it the test is skipped, or fails
// if HOOKGATE_COMPLETE is set: `make test-all` leaves nothing out.
func Program(t testing.TB, variable string) string {
	t.Helper()
	path := os.Getenv(variable)
	if path == "" {
		report := t.Skipf
		if os.Getenv("HOOKGATE_COMPLETE") != "" {
			report = t.Fatalf
		}
		report("%s is not set: `make test` and `make test-all` build what the tests need and set it", variable)
	}
	return path
}
