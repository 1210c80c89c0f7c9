// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package command_test

import (
	"fmt"

	"github.com/hookgate/hookgate/machines/command"
)

// A program with commands of its own can have this one, too.
func ExampleNewRelease() {
	release := command.NewRelease()
	fmt.Println(release.Name() + ": " + release.Short)
	// Output: release: Remove the gateway's annotations from Machines
}
