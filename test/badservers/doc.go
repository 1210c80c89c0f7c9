// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package badservers runs the built gateway in front of extensions that behave badly, written in Python (server.py) and
// in Node (server.mjs) with the gRPC libraries of those languages: each disconnects, hangs or sends garbage in its own
// way, and the caller gets the same error. Package extension tests bad servers in Go.
//
// The tests are skipped unless HOOKGATE_BIN names the gateway; `make test-examples` builds it, and the examples whose
// packages and stubs the servers use. With it, a server that cannot start fails.
package badservers
