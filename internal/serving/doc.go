// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package serving is a folder. Its packages are what a process listens with: the servers of the gateway, before
// the fronts, and the webhooks of an API server.
package serving
