// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package directory registers extensions from a directory of manifests. A Source follows the files, discovers each
// ExtensionConfig in a worker of its own, and applies policies. Package manifest interprets
// manifests, and package discovery registers ExtensionConfigs.
//
// Run a Source once. Its NamespaceLabels takes no lock and is safe for concurrent use.
package directory
