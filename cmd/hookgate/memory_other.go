// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package main

// releaseProgram does nothing here: see the one for Linux.
func releaseProgram() error { return nil }

// resident does not know.
func resident() int64 { return 0 }
