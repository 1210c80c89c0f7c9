// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package discovery brings ExtensionConfigs into the registry: a Reconciler asks an extension for its handlers, applies
// them, and keeps the known ones when the extension does not answer.
//
// The sources decide when to discover; package extension calls extensions, and package registry defines snapshots.
//
// Three rules hold for every source. An ExtensionConfig that is invalid or does not answer affects no other. Registered
// handlers stay registered until working ones replace them. And nothing is final: discovery is retried with a growing
// delay while it fails, and repeated from time to time while it succeeds, because an extension may be upgraded behind
// the same URL.
//
// A Reconciler may reconcile different ExtensionConfigs at the same time, and one ExtensionConfig once at a time.
package discovery
