// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package policy holds an operator's policy for calls to a handler: settings that override those of the extension, and
// compiled conditions in CEL (https://cel.dev) that requests have to meet.
//
// Package controllers makes policies from ExtensionPolicy objects, package registry assigns them to handlers, and
// package gateway applies them.
//
// A Policy must not change once a registry holds it. Conditions are immutable and safe for concurrent use.
package policy
