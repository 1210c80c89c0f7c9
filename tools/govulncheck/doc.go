// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package govulncheck tests how `make verify` looks for known vulnerabilities.
package govulncheck
