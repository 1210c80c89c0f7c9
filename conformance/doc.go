// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package conformance checks an extension from outside, over REST or gRPC: it discovers the handlers, calls each of
// them with realistic and with wrong requests, and compares the answers with the rules of the Runtime SDK. "hookgate
// check" is its command; Go tests call Test or Run.
//
//	func TestConformance(t *testing.T) {
//		conformance.Test(t, conformance.Target{URL: "grpc://127.0.0.1:9090"}, conformance.Options{})
//	}
//
// The requests hold made-up objects, and every announced handler is called with them, several times and concurrently,
// including handlers of UpdateMachine and BeforeClusterDelete. Use a test instance that takes no real action.
//
// Handlers of infrastructure are not called with made-up requests. Only if Options.Infrastructure says so, a cluster, a
// machine and a pool are made in the real backend, with external IDs of the run alone, and deleted again, also if the
// run is interrupted.
//
// Each check has an identifier that never changes, a level, and a rule with its source. The package does not check
// whether the answers are those that the author of the extension wants, nor anything inside a gateway.
//
// All functions are safe for concurrent use.
package conformance
