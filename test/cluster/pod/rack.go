// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"

	infrastructurev1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/infrastructure/v1alpha1"
	"github.com/hookgate/hookgate/sdk"
)

// rack serves the four functions of an infrastructure provider, whose machines are there at once: it prints what it makes
// and deletes.
func rack(args []string) error {
	if len(args) != 2 {
		return errors.New("rack ADDRESS DIRECTORY")
	}
	x := &sdk.Extension{}
	sdk.HandleResponse(x, "discover", func(
		context.Context, *infrastructurev1alpha1.DiscoverInfrastructureRequest,
	) (*infrastructurev1alpha1.DiscoverInfrastructureResponse, error) {
		return &infrastructurev1alpha1.DiscoverInfrastructureResponse{ProviderIdPrefix: "rack://"}, nil
	})
	sdk.HandleResponse(x, "reconcile-cluster", func(
		_ context.Context, r *infrastructurev1alpha1.ReconcileClusterRequest,
	) (*infrastructurev1alpha1.ReconcileClusterResponse, error) {
		fmt.Println("cluster", r.GetSubject().GetName())
		return &infrastructurev1alpha1.ReconcileClusterResponse{
			Phase:                infrastructurev1alpha1.Phase_PHASE_READY,
			ControlPlaneEndpoint: &infrastructurev1alpha1.Endpoint{Host: "192.0.2.1", Port: 6443},
		}, nil
	})
	sdk.HandleResponse(x, "delete-cluster", func(
		_ context.Context, r *infrastructurev1alpha1.DeleteClusterRequest,
	) (*infrastructurev1alpha1.DeleteClusterResponse, error) {
		fmt.Println("no cluster", r.GetSubject().GetName())
		return &infrastructurev1alpha1.DeleteClusterResponse{State: infrastructurev1alpha1.DeletionState_DELETION_STATE_GONE}, nil
	})
	sdk.HandleResponse(x, "reconcile-machine", func(
		_ context.Context, r *infrastructurev1alpha1.ReconcileMachineRequest,
	) (*infrastructurev1alpha1.ReconcileMachineResponse, error) {
		fmt.Println("machine", r.GetSubject().GetName())
		return &infrastructurev1alpha1.ReconcileMachineResponse{
			Phase: infrastructurev1alpha1.Phase_PHASE_READY, ProviderId: "rack://" + r.GetSubject().GetExternalId(),
		}, nil
	})
	sdk.HandleResponse(x, "delete-machine", func(
		_ context.Context, r *infrastructurev1alpha1.DeleteMachineRequest,
	) (*infrastructurev1alpha1.DeleteMachineResponse, error) {
		fmt.Println("no machine", r.GetSubject().GetName())
		return &infrastructurev1alpha1.DeleteMachineResponse{State: infrastructurev1alpha1.DeletionState_DELETION_STATE_GONE}, nil
	})
	return x.Serve(context.Background(), sdk.Config{
		Address: args[0], CertFile: args[1] + "/tls.crt", KeyFile: args[1] + "/tls.key",
	})
}
