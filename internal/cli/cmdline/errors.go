// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package cmdline

import "fmt"

// The exit statuses.
const (
	ExitDone   = 0
	ExitFailed = 1
	ExitUsage  = 2
)

// UsageError is a mistake in the command line.
type UsageError struct{ Err error }

func (e UsageError) Error() string { return e.Err.Error() }
func (e UsageError) Unwrap() error { return e.Err }

// Usagef returns an error of usage, with which a program ends with status 2.
func Usagef(format string, args ...any) error { return UsageError{fmt.Errorf(format, args...)} }

// IncompleteError is why a command could not do all that it was asked for, so that what it found may not be all.
type IncompleteError struct{ Err error }

func (e IncompleteError) Error() string { return e.Err.Error() }
func (e IncompleteError) Unwrap() error { return e.Err }

// ExitError is the exit status of a program that has said why.
type ExitError int

func (e ExitError) Error() string { return fmt.Sprintf("exit status %d", int(e)) }
