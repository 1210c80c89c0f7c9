// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Command hookgate is the gateway between the Cluster API runtime and its Runtime Extensions, and a client of both.
package main

import (
	_ "time/tzdata" // the image has no time zones, which windows of rules name

	"github.com/hookgate/hookgate/command"
)

func main() { command.Main() }
