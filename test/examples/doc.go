// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package examples runs the extension of every language in examples/ behind the built gateway, over TCP and over a Unix
// socket, and compares all of them with the same answers (answers_test.go). It uses only the contract of an example:
// its run script, the line that it prints once it serves, and the services of the protos.
//
// The tests are skipped unless HOOKGATE_BIN names the gateway; `make test-examples` builds it and every example. With
// it, an example that was not built fails.
package examples
