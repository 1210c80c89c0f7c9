// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package leaktest finds goroutines that tests leave behind. On a busy machine, goroutines that end take longer than
// goleak alone waits for.
package leaktest

import (
	"fmt"
	"os"
	"time"

	"go.uber.org/goleak"
)

// patience is how long goroutines may take to end.
const patience = time.Minute

// Main runs the tests of a package, for its TestMain, and ends the process. The tests fail if goroutines are left that
// do not end.
func Main(m interface{ Run() int }) {
	code := m.Run()
	if code == 0 {
		if err := Find(); err != nil {
			fmt.Fprintln(os.Stderr, "leaktest: tests succeeded, but:", err)
			code = 1
		}
	}
	os.Exit(code)
}

// Find returns an error if there are goroutines beside the caller's that do not end.
func Find() error { return find(patience) }

func find(patience time.Duration) error {
	for deadline := time.Now().Add(patience); ; {
		err := goleak.Find()
		if err == nil || time.Now().After(deadline) {
			return err
		}
	}
}
