// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Command hookgate is the gateway between the Cluster API runtime and its Runtime Extensions, and a client of both.
package main

import "github.com/hookgate/hookgate/command"

func main() { command.Main() }
