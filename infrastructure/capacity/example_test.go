// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package capacity_test

import (
	"fmt"

	infrahooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/infrastructure/v1alpha1"
	"github.com/hookgate/hookgate/infrastructure/capacity"
)

// An extension announces the capacity of its machines, of which an autoscaler makes Nodes.
func ExampleDecide() {
	for _, cpu := range []string{"4", "many"} {
		decided, err := capacity.Decide([]*infrahooksv1alpha1.MachineCapacity{{Capacity: map[string]string{"cpu": cpu}}})
		if err != nil {
			fmt.Println(err)
			continue
		}
		fmt.Println(decided[0].Capacity.Cpu())
	}
	// Output:
	// 4
	// machineCapacities[0].capacity[cpu]: "many" is not a quantity
}
