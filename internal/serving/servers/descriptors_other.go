// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux && !darwin

package servers

// descriptors returns how many descriptors the process may have open, which nothing limits here.
func descriptors() uint64 { return unlimited }
