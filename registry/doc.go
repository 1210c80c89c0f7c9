// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package registry holds what the gateway knows of extensions: which are registered, which handlers they have, and
// under which names.
//
// It neither finds extensions nor calls them: a source (package controllers) applies registrations, and the call
// pipeline (package gateway) looks handlers up. It does not know which hooks exist, either; that is the catalog's.
//
// A Registry is safe for concurrent use. Readers take a Snapshot, which never changes, with one atomic load; they wait
// for nobody, and two lookups in one snapshot always agree. Writers take turns.
package registry
