// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package calls is a folder. Its packages are what a call passes between the dispatcher and an extension, and back: who
// may make it, conditions, admission, circuits, the cache, recordings, and the transport.
package calls
