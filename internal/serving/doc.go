// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package serving is a folder. Its packages are what a process listens with: the edge of the gateway's servers, before
// the fronts, and the webhooks of an API server.
package serving
