// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package survey reads what is registered, once: from a directory of manifests, or from a cluster. It makes the
// inventory that package preflight judges, by the rules that the sources of package controllers have: which manifest
// counts, which policy is for whom, which handlers an earlier discovery has left in a status.
//
// It writes nothing, and needs no gateway. Its functions are safe for concurrent use.
package survey
