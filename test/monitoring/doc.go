// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package monitoring checks deploy/monitoring with the real promtool. `make test-monitoring` runs it.
package monitoring
