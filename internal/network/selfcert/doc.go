// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package selfcert makes and renews the certificates of a gateway in a cluster without cert-manager: it keeps them in
// Secrets, which all replicas share, writes them to the directories from which package certs reads them, and sets the
// caBundle of webhooks. It never changes a Secret that it has not made.
//
// Replicas need no leader: every write states what it is based on, and the replica that comes second reads again.
//
// An Issuer is safe for concurrent use; call its Start and Run once each.
package selfcert
