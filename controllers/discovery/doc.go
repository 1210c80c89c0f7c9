// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package discovery brings ExtensionConfigs and their policies into the registry: a Reconciler asks an extension for
// its handlers, applies them, and keeps what was known when the extension does not answer. A PolicySet applies
// ExtensionPolicies and says what has become of each.
//
// When to try is left to the sources, how an extension is called to package extension, and what a snapshot promises
// to package registry.
//
// Three rules hold for every source. One ExtensionConfig that is wrong or does not answer hurts only itself. What was
// served stays served until something that works replaces it. And nothing is final: discovery is tried again with a
// growing delay while it fails, and repeated from time to time while it succeeds, because an extension may be
// upgraded behind the same URL.
//
// A Reconciler may reconcile different ExtensionConfigs at the same time, and one ExtensionConfig once at a time.
package discovery
