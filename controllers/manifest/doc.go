// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package manifest reads what the manifests of a directory define: ExtensionConfigs, ExtensionPolicies, Namespaces
// and CustomResourceDefinitions. Each problem has the file and the line of what is wrong, and costs one document, not
// the file.
//
// An Inventory is made from the one before, so that what is wrong now stays as it was. When to read is left to the
// caller. An Inventory never changes; all else belongs to one goroutine.
package manifest
