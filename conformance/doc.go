// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package conformance checks an extension from outside, over REST or gRPC: it discovers the handlers, calls each of them with
// realistic requests and with wrong ones, and holds the answers against the rules of the Runtime SDK. "hookgate check" is
// its command; a team's own Go tests call Test or Run.
//
//	func TestConformance(t *testing.T) {
//		conformance.Test(t, conformance.Target{URL: "grpc://127.0.0.1:9090"}, conformance.Options{})
//	}
//
// The objects in the requests are made up, and handlers are called for them: every announced hook, UpdateMachine and
// BeforeClusterDelete among them, also several times and at the same time. Check an instance that takes no real action.
//
// Each check has an identifier that stays, a level, and a rule with its source. It leaves to others: whether the answers of an
// extension are those that its author wants, and everything that happens inside a gateway.
//
// All functions are safe for concurrent use. A Report belongs to its caller.
package conformance
