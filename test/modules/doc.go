// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package modules compares the Go modules of the repository, and looks at what the packages of the product export.
package modules
