// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package extensionconfig has the rules of ExtensionConfigs and ExtensionPolicies: it validates them, sets defaults,
// converts them to the types of packages registry and discovery, and decides which policy is in effect for which
// handlers.
//
// All functions are pure. The sources read the objects; package manifest handles files and their lines.
package extensionconfig
