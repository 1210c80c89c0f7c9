// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package tunnel connects to ports of a Pod through the API server, as kubectl port-forward does, but without a port on
// this machine: other users of the machine cannot use what the caller may reach.
//
// A Tunnel is safe for concurrent use.
package tunnel
