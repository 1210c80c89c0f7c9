// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux || darwin

package servers

import "syscall"

// descriptors returns how many descriptors the process may have open. Package os has raised that as far as it may be.
func descriptors() uint64 {
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) != nil {
		return unlimited
	}
	return limit.Cur
}
