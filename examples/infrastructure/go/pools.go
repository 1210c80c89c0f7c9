// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"net/http"
	"strings"

	infrastructurev1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/infrastructure/v1alpha1"
	"github.com/hookgate/hookgate/sdk"
)

// groupName is the length of the longest name of a group in the cloud, to which it adds what tells instances apart.
const groupName = 40

// addPools adds the hooks of pools, for a cloud that has groups of equal machines.
func (p *provider) addPools(x *sdk.Extension) {
	sdk.HandleResponse(x, "reconcile-machine-pool", p.reconcileMachinePool)
	sdk.HandleResponse(x, "delete-machine-pool", p.deleteMachinePool)
}

// reconcileMachinePool makes a group, or changes what it should be. The cloud makes its instances.
func (p *provider) reconcileMachinePool(
	ctx context.Context, req *infrastructurev1alpha1.ReconcileMachinePoolRequest,
) (*infrastructurev1alpha1.ReconcileMachinePoolResponse, error) {
	subject := req.GetSubject()
	if req.Replicas == nil { // something else shall decide it, such as the autoscaler of a cloud that has one
		return &infrastructurev1alpha1.ReconcileMachinePoolResponse{
			Phase: infrastructurev1alpha1.Phase_PHASE_FAILED, Reason: "InvalidParameters", InstanceCount: new(int32(0)),
			Message: "the groups of this cloud have the size that the MachinePool says, and it says none",
		}, nil
	}
	name := subject.GetName()
	if len(name) > groupName {
		name = strings.TrimRight(name[:groupName], "-")
	}
	var group struct {
		State, Reason, Message string
		InstanceCount          int32
		Instances              []struct {
			ID, Name, ProviderID, State, Revision, Version, FailureDomain string
			Addresses                                                     []struct{ Type, Address string }
		}
	}
	err := p.ask(ctx, http.MethodPut, "/groups/", subject, map[string]any{
		"network": subject.GetClusterExternalId(), "name": name, "replicas": req.GetReplicas(), "remove": req.GetRemove(),
		"revision": req.GetRevision(), "version": req.GetVersion(), "failureDomains": req.GetFailureDomains(),
		"bootstrap": map[string]any{"data": req.GetBootstrap().GetData(), "format": req.GetBootstrap().GetFormat()},
		"tags":      map[string]any{"size": parameter(subject, "size")},
	}, &group)
	response := &infrastructurev1alpha1.ReconcileMachinePoolResponse{InstanceCount: &group.InstanceCount}
	response.Phase, response.Reason, response.Message, err = outcome(group.State, group.Reason, group.Message, err)
	for _, i := range group.Instances { // those that are being deleted, too
		instance := &infrastructurev1alpha1.Instance{
			Name: i.Name, ProviderId: i.ProviderID, Revision: i.Revision, Version: i.Version, FailureDomain: i.FailureDomain,
		}
		instance.Phase, _, _, _ = outcome(i.State, "", "", nil)
		for _, a := range i.Addresses {
			instance.Addresses = append(instance.Addresses,
				&infrastructurev1alpha1.MachineAddress{Type: a.Type, Address: a.Address})
		}
		response.Instances = append(response.Instances, instance)
	}
	return response, err
}

// deleteMachinePool deletes the group with its instances.
func (p *provider) deleteMachinePool(
	ctx context.Context, req *infrastructurev1alpha1.DeleteMachinePoolRequest,
) (*infrastructurev1alpha1.DeleteMachinePoolResponse, error) {
	state, err := p.remove(ctx, "/groups/", req.GetSubject())
	return &infrastructurev1alpha1.DeleteMachinePoolResponse{State: state}, err
}
