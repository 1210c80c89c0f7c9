// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package servers serves the addresses of a process: it listens, bounds connections, and what each of them may send and
// for how long, and drains them at the end. A Server serves the fronts of a gateway with its diagnostics, a Side any
// other address; what is served is handlers of net/http and services of gRPC.
//
// The bounds hold for all addresses alike: open connections, in total and for each remote host (Listener), what a
// connection of HTTP/2 sends besides bodies, and how many of its calls it resets (conn), the time to receive a request,
// for gRPC by messages (arrivals), and what is read of a request after its answer (LingeringClose). Their sizes are in
// package limits.
package servers
