// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"errors"

	"github.com/grpc-ecosystem/grpc-gateway/v2/runtime"
	"google.golang.org/grpc"

	"github.com/hookgate/hookgate/catalog"
	infrastructurev1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/infrastructure/v1alpha1"
)

// Infrastructure returns the group of hooks through which extensions provide infrastructure.
func Infrastructure() Group {
	return Group{
		Versions: catalog.Infrastructure(),
		Services: func(d *Dispatcher) GroupServices { return &infrastructureServices{dispatcher: d} },
	}
}

// infrastructureServices implements the services of infrastructure over a Dispatcher.
type infrastructureServices struct {
	infrastructurev1alpha1.UnimplementedDiscoveryServiceServer
	infrastructurev1alpha1.UnimplementedClusterHooksServiceServer
	infrastructurev1alpha1.UnimplementedMachineHooksServiceServer
	infrastructurev1alpha1.UnimplementedMachinePoolHooksServiceServer

	dispatcher *Dispatcher
}

// RegisterGRPC implements GroupServices.
func (s *infrastructureServices) RegisterGRPC(g grpc.ServiceRegistrar) {
	infrastructurev1alpha1.RegisterDiscoveryServiceServer(g, s)
	infrastructurev1alpha1.RegisterClusterHooksServiceServer(g, s)
	infrastructurev1alpha1.RegisterMachineHooksServiceServer(g, s)
	infrastructurev1alpha1.RegisterMachinePoolHooksServiceServer(g, s)
}

// RegisterREST implements GroupServices.
func (s *infrastructureServices) RegisterREST(ctx context.Context, mux *runtime.ServeMux) error {
	return errors.Join(
		infrastructurev1alpha1.RegisterDiscoveryServiceHandlerServer(ctx, mux, s),
		infrastructurev1alpha1.RegisterClusterHooksServiceHandlerServer(ctx, mux, s),
		infrastructurev1alpha1.RegisterMachineHooksServiceHandlerServer(ctx, mux, s),
		infrastructurev1alpha1.RegisterMachinePoolHooksServiceHandlerServer(ctx, mux, s),
	)
}

// DiscoverInfrastructure answers the hook of this name.
func (s *infrastructureServices) DiscoverInfrastructure(
	ctx context.Context, req *infrastructurev1alpha1.DiscoverInfrastructureRequest,
) (*infrastructurev1alpha1.DiscoverInfrastructureResponse, error) {
	return Answer[*infrastructurev1alpha1.DiscoverInfrastructureResponse](ctx, s.dispatcher, req)
}

// ReconcileCluster answers the hook of this name.
func (s *infrastructureServices) ReconcileCluster(
	ctx context.Context, req *infrastructurev1alpha1.ReconcileClusterRequest,
) (*infrastructurev1alpha1.ReconcileClusterResponse, error) {
	return Answer[*infrastructurev1alpha1.ReconcileClusterResponse](ctx, s.dispatcher, req)
}

// DeleteCluster answers the hook of this name.
func (s *infrastructureServices) DeleteCluster(
	ctx context.Context, req *infrastructurev1alpha1.DeleteClusterRequest,
) (*infrastructurev1alpha1.DeleteClusterResponse, error) {
	return Answer[*infrastructurev1alpha1.DeleteClusterResponse](ctx, s.dispatcher, req)
}

// ReconcileMachine answers the hook of this name.
func (s *infrastructureServices) ReconcileMachine(
	ctx context.Context, req *infrastructurev1alpha1.ReconcileMachineRequest,
) (*infrastructurev1alpha1.ReconcileMachineResponse, error) {
	return Answer[*infrastructurev1alpha1.ReconcileMachineResponse](ctx, s.dispatcher, req)
}

// DeleteMachine answers the hook of this name.
func (s *infrastructureServices) DeleteMachine(
	ctx context.Context, req *infrastructurev1alpha1.DeleteMachineRequest,
) (*infrastructurev1alpha1.DeleteMachineResponse, error) {
	return Answer[*infrastructurev1alpha1.DeleteMachineResponse](ctx, s.dispatcher, req)
}

// ReconcileMachinePool answers the hook of this name.
func (s *infrastructureServices) ReconcileMachinePool(
	ctx context.Context, req *infrastructurev1alpha1.ReconcileMachinePoolRequest,
) (*infrastructurev1alpha1.ReconcileMachinePoolResponse, error) {
	return Answer[*infrastructurev1alpha1.ReconcileMachinePoolResponse](ctx, s.dispatcher, req)
}

// DeleteMachinePool answers the hook of this name.
func (s *infrastructureServices) DeleteMachinePool(
	ctx context.Context, req *infrastructurev1alpha1.DeleteMachinePoolRequest,
) (*infrastructurev1alpha1.DeleteMachinePoolResponse, error) {
	return Answer[*infrastructurev1alpha1.DeleteMachinePoolResponse](ctx, s.dispatcher, req)
}
