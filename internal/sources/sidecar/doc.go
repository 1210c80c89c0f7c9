// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package sidecar registers the one extension that runs beside the gateway, by its URL. It needs neither
// ExtensionConfigs nor an API server.
//
// Run a Source once. Its NamespaceLabels is safe for concurrent use.
package sidecar
