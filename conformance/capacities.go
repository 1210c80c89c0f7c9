// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"bytes"
	"context"
	"encoding/json"

	"k8s.io/apimachinery/pkg/util/validation/field"

	infrastructurev1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/infrastructure/v1alpha1"
	"github.com/hookgate/hookgate/infrastructure/parameters"
)

// capacities returns what the extension announces about the capacity of machines. If it announces nothing, or nothing
// that can be read, v says so, and ok is false.
func (p *provider) capacities(v *verdict) (list []*infrastructurev1alpha1.MachineCapacity, ok bool) {
	a, ok := p.described.message.(*infrastructurev1alpha1.DiscoverInfrastructureResponse)
	switch {
	case !ok:
		v.failf(p.described, "the answer cannot be read: %v", p.described.wrong)
	case len(a.GetMachineCapacities()) == 0:
		v.skipf("the extension announces no capacities of machines")
	default:
		return a.GetMachineCapacities(), true
	}
	return nil, false
}

// inspectCapacities adds the capacities that no machine can have: the first whose parameters a machine has counts.
func inspectCapacities(
	ctx context.Context, p *provider, list []*infrastructurev1alpha1.MachineCapacity, v *verdict,
) {
	a, _ := p.described.message.(*infrastructurev1alpha1.DiscoverInfrastructureResponse)
	schema, err := parameters.Compile(a.GetMachineParameters().GetRaw())
	if err != nil {
		v.skipf("the schema of machines is wrong: see infrastructure.schemas")
		return
	}
	first := map[string]int{} // by parameters
	for i, c := range list {
		if len(v.findings) >= maxFindings {
			return
		}
		at := field.NewPath("machineCapacities").Index(i)
		raw := c.GetParameters().GetRaw()
		if len(raw) == 0 {
			raw = []byte("{}")
		}
		for _, problem := range schema.ValidatePartly(ctx, at.Child("parameters"), raw) {
			v.failf(p.described, "%v", problem)
		}
		if before, ok := first["{}"]; ok {
			v.failf(p.described, "%s: machineCapacities[%d] has no parameters, and so counts for every machine", at, before)
			return
		}
		key := sorted(raw)
		if before, ok := first[key]; ok {
			v.failf(p.described, "%s: machineCapacities[%d] has the same parameters", at, before)
			continue
		}
		first[key] = i
	}
}

// sorted returns a JSON text with its members in order, to compare it.
func sorted(raw []byte) string {
	var value any
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if d.Decode(&value) != nil {
		return string(raw)
	}
	text, err := json.Marshal(value)
	if err != nil {
		return string(raw)
	}
	return string(text)
}
