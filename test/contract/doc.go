// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package contract tests the checks that keep the contract: that an edit of the protos which would break somebody's
// stubs is refused, and one that would not is not. It leaves what the contract says to package codec.
package contract
