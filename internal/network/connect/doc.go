// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package connect makes connections to servers of hooks, over HTTP and gRPC, and says why they fail. The gateway and
// the clients on the command line share it, so that a failure has the same name wherever it shows.
//
// Package extension decides which connections to keep, and what to send over them. All types are safe for concurrent
// use.
package connect
