// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package hook holds what every other package refers to: the names of hooks, the kinds of errors, and what a failure
// policy may hide. It does not depend on transports or message types. All values are safe for concurrent use.
package hook
