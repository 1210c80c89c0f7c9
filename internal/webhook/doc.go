// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package webhook serves the admission and conversion webhooks of ExtensionConfigs and the admission webhook of
// ExtensionPolicies.
//
// It applies the rules of package extensionconfig, as the sources do, so that no source refuses an admitted object.
// Valid but probably unintended content causes a warning, once. An object that is being deleted, or whose metadata
// alone changes, passes: a newer rule must not block that. Conditions report discovery and everything else that changes
// with time. Every replica answers, whether it leads or not; there is no state between two requests and no cache to
// wait for.
//
// All types are safe for concurrent use except Server; call its Listen and Run once each.
package webhook
