// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package policy holds what an operator says about how a handler is called, ready for use: settings that take the place of
// the extension's own, and conditions in CEL (https://cel.dev) on the requests that the handler shall get.
//
// It neither reads ExtensionPolicy objects (package controllers does) nor decides which policy is for which handler
// (package registry) nor calls anything (package gateway).
//
// A Policy and Conditions never change once they are made, and are safe for concurrent use.
package policy
