// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package contract tests the checks that protect the contract: they refuse edits of the protos that would break
// existing stubs, and allow all others. Package codec tests the contents of the contract.
package contract
