// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package hook holds the vocabulary that the other packages share: the names of hooks, what a failure is called, and
// what a failure policy may hide.
//
// It knows no transport and no message type; those are in the packages catalog, codec, extension and gateway.
// Everything in it is a value, safe for concurrent use.
package hook
