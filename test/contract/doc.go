// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package contract tests the checks that protect the contract: they refuse an edit of the protos that would break
// existing stubs, and allow any other. Package codec tests the contents of the contract.
package contract
