// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package extensionconfig has the rules of ExtensionConfigs and ExtensionPolicies: it validates them, sets defaults,
// converts them to what package registry and package discovery work with, and decides which policy is in effect for
// which handlers.
//
// All of it is functions of their arguments, which they do not change. Where the objects come from is left to the
// sources; files and their lines to package manifest.
package extensionconfig
