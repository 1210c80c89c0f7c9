// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package main

import (
	"os/exec"
	"syscall"
)

// ownGroup keeps the terminal's Ctrl-C from the program: the quickstart stops its programs itself, in order.
func ownGroup(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
