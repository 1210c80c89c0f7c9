// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package certs reads the certificates that the gateway serves with and shows to extensions, and follows their files
// while the gateway runs. It refuses at the start what could not be used, and keeps what it read last when a file turns
// bad later.
//
// All types are safe for concurrent use; call each Run once.
package certs
