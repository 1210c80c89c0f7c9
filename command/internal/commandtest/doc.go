// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package commandtest is for tests of commands: it runs the program with arguments, and has what commands talk to, such
// as gateways, extensions and clusters. Each package of tests calls Main in its TestMain.
package commandtest
