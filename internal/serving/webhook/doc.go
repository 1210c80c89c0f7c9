// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package webhook serves the admission and conversion webhooks of ExtensionConfigs, and an admission webhook for each
// of Hookgate's own kinds.
//
// It applies the rules of the kinds, as the sources do, so that no source refuses an admitted object.
// Valid but probably unintended content causes a warning, once. An object that is being deleted, or whose metadata
// alone changes, passes: a newer rule must not block that. Conditions report discovery and everything else that changes
// with time. Every replica answers, whether it leads or not; there is no state between two requests. What an object
// means beside others, such as whether its name is taken, is judged by the registry as it is, and by the condition of
// the object where that comes too late.
//
// All types are safe for concurrent use except Server; call its Listen and Run once each.
package webhook
