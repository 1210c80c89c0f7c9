// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package memory

// releaseProgram does nothing here: see the implementation for Linux.
func releaseProgram() error { return nil }

// resident returns 0: the resident memory is not known here.
func resident() int64 { return 0 }
