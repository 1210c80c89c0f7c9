// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package calls calls the hooks of infrastructure at a gateway, and returns only answers that keep the contract.
//
// An answer that breaks the contract is an error: one without a phase, a machine that is ready without a provider ID, a
// list that was cut. Nothing is repaired, because a guess about what exists outside may make it twice or lose it. An
// error has the reason and the text of a condition. Both are equal for equal failures, and the values of credentials
// are not in them.
//
// The package does not decide when to call, and changes no object. A Client is safe for concurrent use.
package calls
