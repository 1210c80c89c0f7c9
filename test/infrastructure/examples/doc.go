// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package examples runs the providers of examples/infrastructure: each as a process, in front of a fake cloud in the
// test's process, behind a built gateway whose hooks the tests call over gRPC. All of them must answer alike, whatever
// the cloud does, and leave as many machines as were asked for when they are killed.
//
// The tests are skipped unless HOOKGATE_BIN names the gateway; `make test-infrastructure` builds it.
package examples
