// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
)

// canUpdateMachine can change everything but the provider ID: the version of the Machine by JSON patch, the spec of the
// others by merge patch.
func canUpdateMachine(q *runtimehooksv1.CanUpdateMachineRequest, r *runtimehooksv1.CanUpdateMachineResponse) {
	if from, to := q.Current.Machine.Spec.ProviderID, q.Desired.Machine.Spec.ProviderID; from != to {
		refuse(r, fmt.Errorf("providerID %q cannot become %q", from, to))
		return
	}
	if from, to := q.Current.Machine.Spec.Version, q.Desired.Machine.Spec.Version; from != to {
		r.MachinePatch = replace("/spec/version", marshal(to))
	}
	r.InfrastructureMachinePatch = mergeSpec(q.Current.InfrastructureMachine, q.Desired.InfrastructureMachine)
	r.BootstrapConfigPatch = mergeSpec(q.Current.BootstrapConfig, q.Desired.BootstrapConfig)
}

// canUpdateMachineSet is the same for a MachineSet and its templates.
func canUpdateMachineSet(q *runtimehooksv1.CanUpdateMachineSetRequest, r *runtimehooksv1.CanUpdateMachineSetResponse) {
	if from, to := q.Current.MachineSet.Spec.Template.Spec.Version,
		q.Desired.MachineSet.Spec.Template.Spec.Version; from != to {
		r.MachineSetPatch = replace("/spec/template/spec/version", marshal(to))
	}
	r.InfrastructureMachineTemplatePatch = mergeSpec(q.Current.InfrastructureMachineTemplate,
		q.Desired.InfrastructureMachineTemplate)
	r.BootstrapConfigTemplatePatch = mergeSpec(q.Current.BootstrapConfigTemplate, q.Desired.BootstrapConfigTemplate)
}

// updateMachine has nothing of its own to answer: instructions say whether the update goes on.
func updateMachine(*runtimehooksv1.UpdateMachineRequest, *runtimehooksv1.UpdateMachineResponse) {}

func replace(path string, value []byte) runtimehooksv1.Patch {
	return runtimehooksv1.Patch{
		PatchType: runtimehooksv1.JSONPatchType,
		Patch:     marshal([]operation{{Op: "replace", Path: path, Value: value}}),
	}
}

// mergeSpec returns a merge patch with the whole wanted spec, byte for byte, if it differs from the current one.
func mergeSpec(current, desired runtime.RawExtension) runtimehooksv1.Patch {
	from, to := spec(current), spec(desired)
	if bytes.Equal(from, to) {
		return runtimehooksv1.Patch{}
	}
	return runtimehooksv1.Patch{
		PatchType: runtimehooksv1.JSONMergePatchType,
		Patch:     append(append([]byte(`{"spec":`), to...), '}'),
	}
}

// spec returns the unchanged spec of an object, or nil if the object is absent.
func spec(object runtime.RawExtension) json.RawMessage {
	var parts struct {
		Spec json.RawMessage `json:"spec"`
	}
	if json.Unmarshal(object.Raw, &parts) != nil {
		return nil
	}
	return parts.Spec
}
