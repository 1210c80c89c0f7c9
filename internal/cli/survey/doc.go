// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package survey reads the registrations of a directory of manifests, or of a cluster, once. It builds the inventory
// that package preflight judges, by the same rules as the sources of registrations: which manifest counts,
// which policy applies to which handler, and which handlers a status lists.
//
// It writes nothing, and needs no gateway. Its functions are safe for concurrent use.
package survey
