// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"fmt"
	"strings"
	"testing"

	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	infrahooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/infrastructure/v1alpha1"
	"github.com/hookgate/hookgate/internal/base/limits"
)

// capacities returns n capacities, each with m resources.
func capacities(n, m int) []*infrahooksv1alpha1.MachineCapacity {
	var list []*infrahooksv1alpha1.MachineCapacity
	for range n {
		c := &infrahooksv1alpha1.MachineCapacity{Capacity: map[string]string{}, Architecture: "arm64"}
		for i := range m {
			c.Capacity[fmt.Sprintf("example.com/r%d", i)] = "1"
		}
		list = append(list, c)
	}
	return list
}

func TestDecide(t *testing.T) {
	one := func(change func(*infrahooksv1alpha1.MachineCapacity)) []*infrahooksv1alpha1.MachineCapacity {
		list := capacities(2, 1)
		change(list[1])
		return list
	}
	for _, c := range []struct {
		reason    string
		announced []*infrahooksv1alpha1.MachineCapacity
		want      string
	}{
		{"nothing", nil, ""},
		{"as many as there may be", capacities(limits.MachineCapacities, 1), ""},
		{"one more", capacities(limits.MachineCapacities+1, 1), "has 501 entries, but at most 500 are allowed"},
		{"as many resources as there may be", capacities(1, limits.CapacityResources), ""},
		{"one more resource", capacities(1, limits.CapacityResources+1), "machineCapacities[0].capacity: must have at most 64 resources"},
		{"too large together", capacities(limits.MachineCapacities, limits.CapacityResources), "must have at most 262144 bytes as JSON"},
		{"an architecture alone", one(func(c *infrahooksv1alpha1.MachineCapacity) { c.Capacity = nil }), ""},
		{"nothing about the machines", one(func(c *infrahooksv1alpha1.MachineCapacity) { c.Capacity, c.Architecture = nil, "" }),
			"machineCapacities[1]: must have capacity, architecture or operatingSystem"},
		{"an unknown architecture", one(func(c *infrahooksv1alpha1.MachineCapacity) { c.Architecture = "x86_64" }),
			`machineCapacities[1].architecture: "x86_64" is none of`},
		{"the longest operating system", one(func(c *infrahooksv1alpha1.MachineCapacity) {
			c.OperatingSystem = strings.Repeat("l", maxOperatingSystem)
		}), ""},
		{"a longer operating system", one(func(c *infrahooksv1alpha1.MachineCapacity) {
			c.OperatingSystem = strings.Repeat("l", maxOperatingSystem+1)
		}), "machineCapacities[1].operatingSystem: must have at most 63"},
		{"no quantity", one(func(c *infrahooksv1alpha1.MachineCapacity) { c.Capacity["cpu"] = "four" }),
			`machineCapacities[1].capacity[cpu]: "four" is not a quantity`},
		{"less than nothing", one(func(c *infrahooksv1alpha1.MachineCapacity) { c.Capacity["cpu"] = "-1" }), `"-1" is not a quantity`},
		{"a quantity without end", one(func(c *infrahooksv1alpha1.MachineCapacity) { c.Capacity["cpu"] = strings.Repeat("1", 65) }),
			"must have at most 64 characters"},
		{"no resource", one(func(c *infrahooksv1alpha1.MachineCapacity) { c.Capacity["a b"] = "1" }), "is not the name of a resource"},
		{"no object", one(func(c *infrahooksv1alpha1.MachineCapacity) { c.Parameters = &hooksv1alpha1.JSON{Raw: []byte("[]")} }),
			"machineCapacities[1].parameters"},
	} {
		list, err := Decide(c.announced)
		if c.want == "" && (err != nil || len(list) != len(c.announced)) {
			t.Errorf("%s: %d capacities, %v", c.reason, len(list), err)
		}
		if c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || list != nil) {
			t.Errorf("%s: %d capacities, %v; want %q", c.reason, len(list), err, c.want)
		}
	}
}
