// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package certs reads the certificates that the gateway serves with and shows to extensions, and follows their files
// while the gateway runs. It refuses unusable files at the start, and keeps the last valid certificates when a file
// becomes invalid later.
//
// All types are safe for concurrent use; call each Run once.
package certs
