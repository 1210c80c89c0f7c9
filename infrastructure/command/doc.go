// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package command is what the command line has about the infrastructure provider alone: hookgate infrastructure, which
// runs the controllers, hookgate get for their objects, and the check of parameters of hookgate call. Package command
// at the root wires them.
package command
