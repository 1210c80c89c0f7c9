// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package memory trades memory for speed: TuneGC makes a hub quick, and a Releaser keeps a sidecar small. The benchmark
// beside each measures its gain.
package memory
