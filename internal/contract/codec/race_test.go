// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build race

package codec

func init() { underRace = true }
