// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package network is a folder. Its packages know connections and bytes, and nothing of what is said: bodies and the
// memory that they take, certificates, URLs, how to dial, and who has passed a call on.
package network
