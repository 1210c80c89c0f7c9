// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package author has the commands for authors of extensions, chains and rules, and for those who upgrade: init, check,
// lint, chain test, rule test, preflight and render. They need no gateway.
package author
