// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cli is a folder. Its packages do what one command needs, or a few: what all do alike, and what they talk to,
// preflight, tests of rules and chains, new projects, and a gateway in the process of a command.
package cli
