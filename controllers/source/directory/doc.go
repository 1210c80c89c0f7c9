// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package directory registers extensions from a directory of manifests. A Source follows the files, discovers each
// ExtensionConfig in a worker of its own, and applies policies. What manifests mean is left to package manifest, and how an
// ExtensionConfig gets into the registry to package discovery.
//
// Run a Source once. Its NamespaceLabels takes no lock and is safe for concurrent use.
package directory
