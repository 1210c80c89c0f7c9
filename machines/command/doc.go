// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package command is what the command line has about the hooks of single Machines alone: the flags of their
// controllers, and hookgate machines release. Package command at the root wires both: the controllers run in the
// process of a gateway.
package command
