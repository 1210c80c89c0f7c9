// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package suite drives the built gateway from end to end: real processes, real connections, and an extension built on
// Cluster API's own server. It knows the gateway by its contract only (flags, the line with the addresses, REST and
// gRPC) and never by its packages.
//
// The tests are skipped unless HOOKGATE_BIN and HOOKGATE_TEST_EXTENSION name the two programs, and those with Cluster
// API v1.12 also need HOOKGATE_SKEW_EXTENSION and HOOKGATE_SKEW_CORE (test/skew); `make test` and `make test-skew`
// build the programs and set the variables. Every test starts its own gateway and extensions; tests share nothing.
package suite
