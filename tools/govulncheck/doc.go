// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package govulncheck pins the program that looks for known vulnerabilities, and tests how `make verify` uses it.
package govulncheck
