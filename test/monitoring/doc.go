// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package monitoring checks deploy/monitoring with the real promtool, and runs the queries of its dashboard against a
// real Prometheus that scrapes a gateway. `make test-monitoring` runs it.
package monitoring
