// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
	"sigs.k8s.io/cluster-api/exp/topology/scope"

	"github.com/hookgate/hookgate/cmd/hookgate-render/internal/extensions"
	"github.com/hookgate/hookgate/internal/kinds/handlerchain"
)

// Step is what one patch of the ClusterClass has changed.
type Step struct {
	// Patch is its name, and Handler what answers it; empty for a patch that is written in the ClusterClass.
	Patch, Handler string

	touched map[string][]string // JSON pointers, by role
}

// Name returns the name of a step for people.
func (s *Step) Name() string {
	if s.Handler == "" {
		return "patch " + s.Patch
	}
	return s.Handler
}

// recorder learns what each patch changes. Behind each, and before the first, it has a patch of its own, which
// changes nothing: its request has the templates as all patches before it have left them.
type recorder struct {
	steps  []Step
	before map[string][]byte // the templates, by the UID of their item
	items  []item            // what has been changed, by item
	err    error
}

// item is a template that a step has changed.
type item struct {
	step     int
	holder   runtimehooksv1.HolderReference
	pointers []string
}

// prepare adds the recorder's patches to a ClusterClass.
func (r *recorder) prepare(class *clusterv1.ClusterClass) {
	if len(class.Spec.Patches) == 0 {
		return
	}
	patches := []clusterv1.ClusterClassPatch{probe(0)}
	for i := range class.Spec.Patches {
		p := &class.Spec.Patches[i]
		step := Step{Patch: p.Name}
		if p.External != nil {
			step.Handler = p.External.GeneratePatchesExtension
		}
		r.steps = append(r.steps, step)
		patches = append(patches, *p, probe(i+1))
	}
	class.Spec.Patches = patches
}

func probe(i int) clusterv1.ClusterClassPatch {
	name := extensions.ProbePrefix + strconv.Itoa(i)
	return clusterv1.ClusterClassPatch{
		Name: name, External: &clusterv1.ExternalPatchDefinition{GeneratePatchesExtension: name},
	}
}

// probe learns what the patch before it has changed.
func (r *recorder) probe(handler string, request *runtimehooksv1.GeneratePatchesRequest) {
	done, err := strconv.Atoi(strings.TrimPrefix(handler, extensions.ProbePrefix))
	if err != nil {
		r.err = err
		return
	}
	now := map[string][]byte{}
	for i := range request.Items {
		x := &request.Items[i]
		now[string(x.UID)] = slices.Clone(x.Object.Raw)
		before, ok := r.before[string(x.UID)]
		if !ok {
			continue
		}
		differences, err := handlerchain.Differences(before, x.Object.Raw)
		if err != nil {
			r.err = fmt.Errorf("patch %q: %w", r.steps[done-1].Patch, err)
			return
		}
		var pointers []string
		for _, d := range differences {
			pointers = append(pointers, d.Pointer)
		}
		if len(pointers) > 0 {
			r.items = append(r.items, item{done - 1, x.HolderReference, pointers})
		}
	}
	r.before = now
}

// result returns the steps, with what they have changed in the objects of the desired state.
func (r *recorder) result(desired *scope.ClusterState) ([]Step, error) {
	for _, x := range r.items {
		role, inTemplate := roleOf(desired, &x.holder)
		s := &r.steps[x.step]
		if s.touched == nil {
			s.touched = map[string][]string{}
		}
		for _, pointer := range x.pointers {
			if !inTemplate { // the object is made of what the template holds
				rest, ok := strings.CutPrefix(pointer, "/spec/template")
				if !ok {
					continue
				}
				pointer = rest
			}
			s.touched[role] = append(s.touched[role], pointer)
		}
	}
	return r.steps, r.err
}

// roleOf returns the role of the object that the template of an item is for, and whether it is a template, too.
func roleOf(desired *scope.ClusterState, holder *runtimehooksv1.HolderReference) (role string, isTemplate bool) {
	part := PartInfrastructure
	if strings.HasSuffix(holder.FieldPath, ".configRef") {
		part = PartBootstrap
	}
	switch holder.Kind {
	case "Cluster":
		if holder.FieldPath == "spec.controlPlaneRef" {
			return RoleControlPlane, false
		}
		return RoleInfrastructureCluster, false
	case "MachineDeployment":
		for name, md := range desired.MachineDeployments {
			if md.Object.Name == holder.Name {
				return MachineDeploymentRole(name) + part, true
			}
		}
	case "MachinePool":
		for name, mp := range desired.MachinePools {
			if mp.Object.Name == holder.Name {
				return MachinePoolRole(name) + part, false
			}
		}
	}
	return RoleControlPlane + PartInfrastructure, true
}

// ChangedBy returns the names of the steps that have changed a value of an object, what is in it, or what it is in, in
// their order.
func (r *Render) ChangedBy(role, pointer string) []string {
	var names []string
	for i := range r.Steps {
		touches := func(touched string) bool { return within(pointer, touched) || within(touched, pointer) }
		name := r.Steps[i].Name()
		if slices.ContainsFunc(r.Steps[i].touched[role], touches) && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// within reports whether a JSON pointer is another one, or below it.
func within(pointer, place string) bool {
	rest, ok := strings.CutPrefix(pointer, place)
	return ok && (rest == "" || rest[0] == '/')
}
