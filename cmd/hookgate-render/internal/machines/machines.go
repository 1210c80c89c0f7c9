// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package machines says what changes of a Cluster's objects do to its Machines. Cluster API's own code decides whether
// Machines are up to date, and extensions whether they can be updated in place.
package machines

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/core/reconcilers/machinedeployment/mdutil"

	"github.com/hookgate/hookgate/cmd/hookgate-render/internal/difference"
	"github.com/hookgate/hookgate/cmd/hookgate-render/internal/topology"
)

// What happens to the Machines of a control plane, a MachineDeployment or a MachinePool.
const (
	Unchanged = "Unchanged"
	Scaled    = "Scaled"
	Replaced  = "Replaced"
	InPlace   = "UpdatedInPlace"
	Created   = "Created"
	Deleted   = "Deleted"
	// ByProvider means that the provider of the kind decides whether and how it changes its machines.
	ByProvider = "DecidedByProvider"
)

// Effect is what happens to the Machines of one object.
type Effect struct {
	Object string `json:"object"`
	Kind   string `json:"kind"`
	Name   string `json:"name"`
	// Machines is how many there are, or will be if they are created.
	Machines int64  `json:"machines"`
	Effect   string `json:"effect"`
	// Why has the reasons.
	Why []string `json:"why,omitempty"`
}

// comparison is what effects are derived from.
type comparison struct {
	was         map[string]*unstructured.Unstructured
	now         *topology.Render
	differences []difference.Difference
}

// Effects returns what the differences of a render from other objects do to Machines.
func Effects(
	ctx context.Context, was map[string]*unstructured.Unstructured, now *topology.Render,
	differences []difference.Difference,
) ([]Effect, error) {
	c := &comparison{was, now, differences}
	var effects []Effect
	for i := range now.Objects {
		x := &now.Objects[i]
		if !hasMachines(x.Role) {
			continue
		}
		e, err := c.effect(ctx, x)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", x.Role, err)
		}
		effects = append(effects, e)
	}
	var left []string
	for role := range was {
		if hasMachines(role) && now.Object(role) == nil {
			left = append(left, role)
		}
	}
	slices.Sort(left)
	for _, role := range left {
		o := was[role]
		effects = append(effects, Effect{
			Object: role, Kind: o.GetKind(), Name: o.GetName(), Machines: replicas(o), Effect: Deleted,
		})
	}
	return effects, nil
}

// hasMachines reports whether an object of a role has Machines.
func hasMachines(role string) bool {
	kind, name, _ := strings.Cut(role, "/")
	switch kind {
	case "MachineDeployment", "MachinePool":
		return !strings.Contains(name, "/")
	case topology.RoleControlPlane:
		return name == ""
	}
	return false
}

// replicas returns how many Machines an object has.
func replicas(o *unstructured.Unstructured) int64 {
	n, ok, err := unstructured.NestedInt64(o.Object, "spec", "replicas")
	if !ok || err != nil {
		return 1
	}
	return n
}

// effect returns what happens to the Machines of an object.
func (c *comparison) effect(ctx context.Context, x *topology.Object) (Effect, error) {
	e := Effect{
		Object: x.Role, Kind: x.GetKind(), Name: x.GetName(), Machines: replicas(x.Unstructured), Effect: Unchanged,
	}
	was := c.was[x.Role]
	if was == nil {
		e.Effect = Created
		return e, nil
	}
	counted := was
	if live := c.now.Live[x.Role]; live != nil {
		counted = live // it may be scaled by others
	}
	wanted, scales := e.Machines, x.Object["spec"].(map[string]any)["replicas"] != nil
	if e.Machines = replicas(counted); scales && e.Machines != wanted {
		e.Effect, e.Why = Scaled, []string{fmt.Sprintf("from %d to %d", e.Machines, wanted)}
	}
	var update *update
	var err error
	switch {
	case x.GetKind() == "MachineDeployment":
		update, err = c.machineDeployment(x, was)
	case x.GetKind() == "KubeadmControlPlane" && was.GetKind() == x.GetKind():
		update, err = c.kubeadmControlPlane(ctx, x, was)
	default:
		return c.other(e, x.Role), nil
	}
	if err != nil || update == nil {
		return e, err
	}
	e.Effect, e.Why = Replaced, append(e.Why, update.reasons...)
	if update.ask == nil {
		return e, nil
	}
	ok, reason, err := update.ask(ctx)
	if err != nil {
		return e, err
	}
	if reason != "" {
		e.Why = append(e.Why, reason)
	}
	if ok {
		e.Effect = InPlace
	}
	return e, nil
}

// update is what makes Machines out of date.
type update struct {
	reasons []string
	// ask asks extensions whether they can update the Machines in place. Nil means that they cannot be.
	ask func(ctx context.Context) (ok bool, reason string, err error)
}

// other returns the effect for a kind of whose provider Cluster API knows nothing.
func (c *comparison) other(e Effect, role string) Effect {
	for _, part := range []string{"", topology.PartInfrastructure, topology.PartBootstrap} {
		for i := range c.differences {
			d := &c.differences[i]
			if d.Object == role+part && strings.HasPrefix(d.Path, "/spec") && d.Path != "/spec/replicas" {
				e.Effect = ByProvider
				e.Why = append(e.Why, d.Kind+" changes")
				break
			}
		}
	}
	return e
}

// machineDeployment returns what makes the Machines of a MachineDeployment out of date.
func (c *comparison) machineDeployment(x *topology.Object, was *unstructured.Unstructured) (*update, error) {
	var before, after clusterv1.MachineDeployment
	if err := errors.Join(fromUnstructured(was, &before), fromUnstructured(x.Unstructured, &after)); err != nil {
		return nil, err
	}
	// Cluster API gives a template with another spec another name.
	named := func(ref, old *clusterv1.ContractVersionedObjectReference, part string) {
		ref.Name = old.Name
		if difference.SpecOf(c.differences, x.Role+part) {
			ref.Name += "-changed"
		}
	}
	template := after.Spec.Template.DeepCopy()
	named(&template.Spec.InfrastructureRef, &before.Spec.Template.Spec.InfrastructureRef, topology.PartInfrastructure)
	named(&template.Spec.Bootstrap.ConfigRef, &before.Spec.Template.Spec.Bootstrap.ConfigRef, topology.PartBootstrap)
	upToDate, result := mdutil.MachineTemplateUpToDate(&before.Spec.Template, template)
	if upToDate {
		return nil, nil
	}
	u := &update{reasons: result.ConditionMessages}
	if after.Spec.Rollout.Strategy.Type == clusterv1.OnDeleteMachineDeploymentStrategyType {
		u.reasons = append(u.reasons, "when they are deleted (rollout.strategy.type is OnDelete)")
	}
	if result.EligibleForInPlaceUpdate {
		u.ask = func(ctx context.Context) (bool, string, error) { return c.askMachineSet(ctx, x.Role, &before, &after) }
	}
	return u, nil
}

// fromUnstructured decodes an object.
func fromUnstructured(o *unstructured.Unstructured, into any) error {
	return runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, into)
}
