// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package capacity checks what an extension announces about the capacity of machines, from which an autoscaler knows
// what the first machine of a set would have. It does no I/O, and all is safe for concurrent use.
package capacity

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	infrahooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/infrastructure/v1alpha1"
	"github.com/hookgate/hookgate/infrastructure/parameters"
	infrav1 "github.com/hookgate/hookgate/infrastructure/v1alpha1"
	"github.com/hookgate/hookgate/internal/base/limits"
)

const maxOperatingSystem = 63

// architectures are those that an autoscaler knows.
var architectures = []string{"", "amd64", "arm64", "s390x", "ppc64le"}

// Decide returns what an extension announces about the capacity of machines, or nothing and what is wrong with it: an
// autoscaler that used half of it would make Nodes that do not fit.
func Decide(announced []*infrahooksv1alpha1.MachineCapacity) ([]infrav1.MachineCapacity, error) {
	if len(announced) > limits.MachineCapacities {
		return nil, fmt.Errorf("machineCapacities: has %d entries, but at most %d are allowed", len(announced),
			limits.MachineCapacities)
	}
	var list []infrav1.MachineCapacity
	for i, a := range announced {
		c, err := decideOne(field.NewPath("machineCapacities").Index(i), a)
		if err != nil {
			return nil, err
		}
		list = append(list, c)
	}
	text, err := json.Marshal(list)
	if err != nil {
		return nil, fmt.Errorf("machineCapacities: %w", err)
	}
	if len(text) > limits.MachineCapacityBytes {
		return nil, fmt.Errorf("machineCapacities: must have at most %d bytes as JSON", limits.MachineCapacityBytes)
	}
	return list, nil
}

// decideOne returns one capacity.
func decideOne(
	at *field.Path, a *infrahooksv1alpha1.MachineCapacity,
) (c infrav1.MachineCapacity, err error) {
	if raw := a.GetParameters().GetRaw(); len(raw) > 0 {
		if errs := parameters.Check(at.Child("parameters"), raw); len(errs) > 0 {
			return c, errs.ToAggregate()
		}
		c.Parameters = &apiextensionsv1.JSON{Raw: raw}
	}
	switch {
	case len(a.GetCapacity()) == 0 && a.GetArchitecture() == "" && a.GetOperatingSystem() == "":
		return c, fmt.Errorf("%s: must have capacity, architecture or operatingSystem", at)
	case len(a.GetCapacity()) > limits.CapacityResources:
		return c, fmt.Errorf("%s: must have at most %d resources", at.Child("capacity"), limits.CapacityResources)
	case !slices.Contains(architectures, a.GetArchitecture()):
		return c, fmt.Errorf("%s: %q is none of amd64, arm64, s390x and ppc64le", at.Child("architecture"),
			a.GetArchitecture())
	case len(a.GetOperatingSystem()) > maxOperatingSystem:
		return c, fmt.Errorf("%s: must have at most %d characters", at.Child("operatingSystem"), maxOperatingSystem)
	}
	c.NodeInfo = infrav1.NodeInfo{Architecture: a.GetArchitecture(), OperatingSystem: a.GetOperatingSystem()}
	for _, name := range slices.Sorted(maps.Keys(a.GetCapacity())) {
		quantity, err := quantityOf(name, a.GetCapacity()[name])
		if err != nil {
			return c, fmt.Errorf("%s: %w", at.Child("capacity").Key(name), err)
		}
		if c.Capacity == nil {
			c.Capacity = corev1.ResourceList{}
		}
		c.Capacity[corev1.ResourceName(name)] = quantity
	}
	return c, nil
}

// quantityOf returns the quantity of a resource.
func quantityOf(name, text string) (resource.Quantity, error) {
	const most = 64 // characters; the largest that Kubernetes takes have fewer
	if problems := validation.IsQualifiedName(name); len(problems) > 0 {
		return resource.Quantity{}, errors.New("is not the name of a resource: " + problems[0])
	}
	if len(text) > most {
		return resource.Quantity{}, fmt.Errorf("must have at most %d characters", most)
	}
	quantity, err := resource.ParseQuantity(text)
	if err != nil || quantity.Sign() < 0 {
		return resource.Quantity{}, fmt.Errorf("%q is not a quantity", text)
	}
	return quantity, nil
}
