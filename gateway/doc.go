// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package gateway dispatches calls: it decides which handlers answer them, with which settings and timeouts, and how to
// treat their failures. Two fronts, HTTPS JSON and gRPC, decode requests and pass them to the Dispatcher, which selects
// handlers, calls each of them through one chain of links, and merges their answers.
//
// Package extension is the transport at the end of the chain. Package registry holds the registrations; the sources
// (package controllers, and those below internal/sources) fill it.
//
// All types are safe for concurrent use. The call path takes no lock of its own.
package gateway
