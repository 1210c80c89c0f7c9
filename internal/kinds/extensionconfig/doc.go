// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package extensionconfig has the rules of ExtensionConfigs: it validates them, sets defaults, and converts them to the
// types of packages registry and discovery.
//
// All functions are pure. The sources read the objects; package manifest handles files and their lines.
package extensionconfig
