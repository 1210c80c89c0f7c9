// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package main

import "os/exec"

// ownGroup does nothing where there are no process groups.
func ownGroup(*exec.Cmd) {}
