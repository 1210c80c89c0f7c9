// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package modules compares the Go modules of the repository.
package modules
