// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package extensionpolicy has the rules of ExtensionPolicies: it compiles them, and decides which is in effect for
// which handlers. A Set applies those of a source to the registry.
package extensionpolicy
