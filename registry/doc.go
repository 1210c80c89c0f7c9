// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package registry holds the registered extensions, their handlers, the names of these, and the operator's policies for
// them.
//
// It neither discovers nor calls extensions: a source (package controllers) applies registrations, and the call
// pipeline (package gateway) looks up handlers. Package catalog defines the hooks.
//
// A Registry is safe for concurrent use. Readers load a Snapshot, which never changes, with one atomic operation: they
// never block, and lookups in one snapshot are consistent. Writers take turns.
package registry
