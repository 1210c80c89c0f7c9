// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package manifest reads the objects in the manifests of a directory: ExtensionConfigs, ExtensionPolicies, Namespaces
// and CustomResourceDefinitions. Each problem has its file and line, and costs one document, not the file.
//
// An Inventory is built from its predecessor, so that an object whose manifest is invalid now keeps its last valid
// state. The caller decides when to read. An Inventory is immutable; all other types belong to one goroutine.
package manifest
