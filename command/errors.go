// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import "fmt"

// The exit statuses.
const (
	exitDone   = 0
	exitFailed = 1
	exitUsage  = 2
)

// usageError is a mistake in the command line.
type usageError struct{ Err error }

func (e usageError) Error() string { return e.Err.Error() }
func (e usageError) Unwrap() error { return e.Err }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// incompleteError is why a command could not do all that it was asked for, so that what it found may not be all.
type incompleteError struct{ Err error }

func (e incompleteError) Error() string { return e.Err.Error() }
func (e incompleteError) Unwrap() error { return e.Err }

// exitError is the exit status of a program that has said why.
type exitError int

func (e exitError) Error() string { return fmt.Sprintf("exit status %d", int(e)) }
