// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package badservers runs the built gateway before extensions that behave badly, written in Python (server.py) and in Node
// (server.mjs) with the gRPC libraries of those languages: each breaks off, stays mute or says the wrong thing in its own way,
// and the caller is told the same. What the gateway does with bad servers in Go is tested where it is done, in extension.
//
// The tests are skipped unless HOOKGATE_BIN names the gateway; `make test-examples` builds it, and the examples whose packages
// and stubs the servers use. With it, a server that cannot start fails.
package badservers
