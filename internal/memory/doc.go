// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package memory settles how much memory the gateway may use: TuneGC for a hub, which shall be quick, and a Releaser for a
// sidecar, which shall be small. What each gains is measured by the benchmark beside it.
package memory
