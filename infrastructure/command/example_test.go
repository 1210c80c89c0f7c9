// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package command_test

import (
	"fmt"

	"github.com/hookgate/hookgate/infrastructure/command"
)

// Each kind whose objects stand for something outside has a list.
func ExampleNewGet() {
	for _, list := range command.NewGet(command.Formats{}) {
		fmt.Println(list.Name(), list.Aliases)
	}
	// Output:
	// clusters [cluster HookgateCluster]
	// machines [machine HookgateMachine]
	// pools [pool HookgateMachinePool]
}
