// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"errors"
	"maps"

	"github.com/grpc-ecosystem/grpc-gateway/v2/runtime"
	"google.golang.org/grpc"

	"github.com/hookgate/hookgate/catalog"
	infrastructurev1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/infrastructure/v1alpha1"
	"github.com/hookgate/hookgate/hookversion"
)

// Group is a group of hooks that a gateway serves besides Cluster API's, in the same way: over both fronts, through the
// same chain, with a discovery of its own. Infrastructure is one.
type Group struct {
	// Versions lists the versions of the group. The group has a DiscoveryService with one hook, whose response lists
	// handlers as hookgate.hooks.v1alpha1.ExtensionHandler.
	Versions []catalog.Source
	// Spokes convert between Versions. A group of one version has none.
	Spokes hookversion.Spokes
	// Services returns the generated services of the group, whose methods call Answer with d. Over REST, a request has
	// nothing but the name of its handler before that. If it is nil, the services are those of DescribedServices.
	Services func(d *Dispatcher) GroupServices
}

// GroupServices are the services of a group.
type GroupServices interface {
	// RegisterGRPC registers the services with a gRPC server, and RegisterREST with the mux of the REST front.
	RegisterGRPC(g grpc.ServiceRegistrar)
	RegisterREST(ctx context.Context, mux *runtime.ServeMux) error
}

// Hooks returns the catalog of Cluster API's hooks and of the groups, and the conversions between their versions. The
// error joins every mistake in the groups.
func Hooks(groups ...Group) (*catalog.Catalog, *hookversion.Converter, error) {
	var versions []catalog.Source
	spokes := hookversion.Spokes{}
	for _, g := range groups {
		versions = append(versions, g.Versions...)
		maps.Copy(spokes, g.Spokes)
	}
	hooks, err := catalog.With(versions...)
	if err != nil {
		return nil, nil, err
	}
	converter, err := hookversion.Build(hooks, spokes)
	if err != nil {
		return nil, nil, err
	}
	return hooks, converter, nil
}

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
