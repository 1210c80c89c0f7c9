// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"errors"
	"fmt"

	"github.com/grpc-ecosystem/grpc-gateway/v2/runtime"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	rest "github.com/hookgate/hookgate/gen/rest/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/internal/calls/outcome"
)

var _ GroupServices = (*Services)(nil)

// Services implements the five services of Cluster API's hooks over a Dispatcher, and has those of further groups. Both
// fronts serve it, so that a hook behaves the same whichever way it is called. Its methods return a *hook.Error, which
// each front maps to its protocol; they answer only requests from a front.
type Services struct {
	hooksv1alpha1.UnimplementedDiscoveryServiceServer
	hooksv1alpha1.UnimplementedLifecycleHooksServiceServer
	hooksv1alpha1.UnimplementedTopologyMutationHooksServiceServer
	hooksv1alpha1.UnimplementedInPlaceUpdateHooksServiceServer
	hooksv1alpha1.UnimplementedUpgradePlanHooksServiceServer

	dispatcher *Dispatcher
	groups     []GroupServices
}

// NewServices returns the services of Cluster API's hooks and of the groups over d, whose catalog has all of them.
func NewServices(d *Dispatcher, groups ...Group) *Services {
	s := &Services{dispatcher: d}
	for _, g := range groups {
		s.groups = append(s.groups, DescribedServices(d, g.Versions...))
	}
	return s
}

// RegisterGRPC registers all services with a gRPC server.
func (s *Services) RegisterGRPC(g grpc.ServiceRegistrar) {
	hooksv1alpha1.RegisterDiscoveryServiceServer(g, s)
	hooksv1alpha1.RegisterLifecycleHooksServiceServer(g, s)
	hooksv1alpha1.RegisterTopologyMutationHooksServiceServer(g, s)
	hooksv1alpha1.RegisterInPlaceUpdateHooksServiceServer(g, s)
	hooksv1alpha1.RegisterUpgradePlanHooksServiceServer(g, s)
	for _, group := range s.groups {
		group.RegisterGRPC(g)
	}
}

// RegisterREST registers all services with the mux of the REST front.
func (s *Services) RegisterREST(ctx context.Context, mux *runtime.ServeMux) error {
	errs := []error{
		rest.RegisterTopologyMutationHooksServiceHandlerServer(ctx, mux, s),
		rest.RegisterLifecycleHooksServiceHandlerServer(ctx, mux, s),
		rest.RegisterInPlaceUpdateHooksServiceHandlerServer(ctx, mux, s),
		rest.RegisterUpgradePlanHooksServiceHandlerServer(ctx, mux, s),
		rest.RegisterDiscoveryServiceHandlerServer(ctx, mux, s),
	}
	for _, group := range s.groups {
		errs = append(errs, group.RegisterREST(ctx, mux))
	}
	return errors.Join(errs...)
}

// answerCall answers a request that a front has received. ctx comes from the front. Over REST, it has the body, which
// is decoded into req here. Response is the type of the hook's responses. The errors are those of Dispatcher.Dispatch,
// and one of kind Loop for a request that has passed this gateway before.
func answerCall[Response proto.Message](ctx context.Context, d *Dispatcher, req proto.Message) (Response, error) {
	var none Response
	in := callFrom(ctx)
	if in == nil {
		return none, outcome.Internal(fmt.Errorf("%T did not come through a front", req))
	}
	snapshot := d.config.Registry.Snapshot()
	r, err := in.request(d.config.Codec, req, func(handler string) reading {
		return readingOf(snapshot, in.Hook, handler, d.config.Objects)
	})
	if err != nil {
		return none, err
	}
	if err := in.via.Check(d.config.Gateway); err != nil {
		return none, err
	}
	warnOfCaller(ctx, d.config.Observer, in.Hook)
	m, err := d.dispatchIn(ctx, snapshot, r)
	if err != nil {
		return none, err
	}
	response, ok := m.(Response)
	if !ok {
		return none, outcome.Internal(fmt.Errorf("hook %s was answered with %T", in.Hook, m))
	}
	return response, nil
}

// Discovery answers with the gateway's own handlers.
func (s *Services) Discovery(
	ctx context.Context, req *hooksv1alpha1.DiscoveryRequest,
) (*hooksv1alpha1.DiscoveryResponse, error) {
	return answerCall[*hooksv1alpha1.DiscoveryResponse](ctx, s.dispatcher, req)
}

// BeforeClusterCreate fires before the objects of a new Cluster are created. It may hold the caller.
func (s *Services) BeforeClusterCreate(
	ctx context.Context, req *hooksv1alpha1.BeforeClusterCreateRequest,
) (*hooksv1alpha1.BeforeClusterCreateResponse, error) {
	return answerCall[*hooksv1alpha1.BeforeClusterCreateResponse](ctx, s.dispatcher, req)
}

// AfterControlPlaneInitialized fires when the control plane of a Cluster is reachable for the first time.
func (s *Services) AfterControlPlaneInitialized(
	ctx context.Context, req *hooksv1alpha1.AfterControlPlaneInitializedRequest,
) (*hooksv1alpha1.AfterControlPlaneInitializedResponse, error) {
	return answerCall[*hooksv1alpha1.AfterControlPlaneInitializedResponse](ctx, s.dispatcher, req)
}

// BeforeClusterUpgrade fires once before a Cluster is upgraded. It may hold the caller.
func (s *Services) BeforeClusterUpgrade(
	ctx context.Context, req *hooksv1alpha1.BeforeClusterUpgradeRequest,
) (*hooksv1alpha1.BeforeClusterUpgradeResponse, error) {
	return answerCall[*hooksv1alpha1.BeforeClusterUpgradeResponse](ctx, s.dispatcher, req)
}

// BeforeControlPlaneUpgrade fires before each version reaches the control plane. It may hold the caller.
func (s *Services) BeforeControlPlaneUpgrade(
	ctx context.Context, req *hooksv1alpha1.BeforeControlPlaneUpgradeRequest,
) (*hooksv1alpha1.BeforeControlPlaneUpgradeResponse, error) {
	return answerCall[*hooksv1alpha1.BeforeControlPlaneUpgradeResponse](ctx, s.dispatcher, req)
}

// AfterControlPlaneUpgrade fires after the control plane has reached a version. It may hold the caller.
func (s *Services) AfterControlPlaneUpgrade(
	ctx context.Context, req *hooksv1alpha1.AfterControlPlaneUpgradeRequest,
) (*hooksv1alpha1.AfterControlPlaneUpgradeResponse, error) {
	return answerCall[*hooksv1alpha1.AfterControlPlaneUpgradeResponse](ctx, s.dispatcher, req)
}

// BeforeWorkersUpgrade fires before a version reaches the workers. It may hold the caller.
func (s *Services) BeforeWorkersUpgrade(
	ctx context.Context, req *hooksv1alpha1.BeforeWorkersUpgradeRequest,
) (*hooksv1alpha1.BeforeWorkersUpgradeResponse, error) {
	return answerCall[*hooksv1alpha1.BeforeWorkersUpgradeResponse](ctx, s.dispatcher, req)
}

// AfterWorkersUpgrade fires after all workers have reached a version. It may hold the caller.
func (s *Services) AfterWorkersUpgrade(
	ctx context.Context, req *hooksv1alpha1.AfterWorkersUpgradeRequest,
) (*hooksv1alpha1.AfterWorkersUpgradeResponse, error) {
	return answerCall[*hooksv1alpha1.AfterWorkersUpgradeResponse](ctx, s.dispatcher, req)
}

// AfterClusterUpgrade fires after a Cluster is upgraded. It may hold the next upgrade.
func (s *Services) AfterClusterUpgrade(
	ctx context.Context, req *hooksv1alpha1.AfterClusterUpgradeRequest,
) (*hooksv1alpha1.AfterClusterUpgradeResponse, error) {
	return answerCall[*hooksv1alpha1.AfterClusterUpgradeResponse](ctx, s.dispatcher, req)
}

// BeforeClusterDelete fires before a Cluster is deleted. It may hold the caller.
func (s *Services) BeforeClusterDelete(
	ctx context.Context, req *hooksv1alpha1.BeforeClusterDeleteRequest,
) (*hooksv1alpha1.BeforeClusterDeleteResponse, error) {
	return answerCall[*hooksv1alpha1.BeforeClusterDeleteResponse](ctx, s.dispatcher, req)
}

// GeneratePatches answers with patches for the templates of a Cluster.
func (s *Services) GeneratePatches(
	ctx context.Context, req *hooksv1alpha1.GeneratePatchesRequest,
) (*hooksv1alpha1.GeneratePatchesResponse, error) {
	return answerCall[*hooksv1alpha1.GeneratePatchesResponse](ctx, s.dispatcher, req)
}

// ValidateTopology answers whether the patched templates of a Cluster are valid.
func (s *Services) ValidateTopology(
	ctx context.Context, req *hooksv1alpha1.ValidateTopologyRequest,
) (*hooksv1alpha1.ValidateTopologyResponse, error) {
	return answerCall[*hooksv1alpha1.ValidateTopologyResponse](ctx, s.dispatcher, req)
}

// DiscoverVariables answers with the variables that the patches of an extension need.
func (s *Services) DiscoverVariables(
	ctx context.Context, req *hooksv1alpha1.DiscoverVariablesRequest,
) (*hooksv1alpha1.DiscoverVariablesResponse, error) {
	return answerCall[*hooksv1alpha1.DiscoverVariablesResponse](ctx, s.dispatcher, req)
}

// CanUpdateMachine answers which changes of a Machine an extension can make in place.
func (s *Services) CanUpdateMachine(
	ctx context.Context, req *hooksv1alpha1.CanUpdateMachineRequest,
) (*hooksv1alpha1.CanUpdateMachineResponse, error) {
	return answerCall[*hooksv1alpha1.CanUpdateMachineResponse](ctx, s.dispatcher, req)
}

// CanUpdateMachineSet answers which changes of a MachineSet an extension can make in place.
func (s *Services) CanUpdateMachineSet(
	ctx context.Context, req *hooksv1alpha1.CanUpdateMachineSetRequest,
) (*hooksv1alpha1.CanUpdateMachineSetResponse, error) {
	return answerCall[*hooksv1alpha1.CanUpdateMachineSetResponse](ctx, s.dispatcher, req)
}

// UpdateMachine updates a Machine in place. It may hold the caller.
func (s *Services) UpdateMachine(
	ctx context.Context, req *hooksv1alpha1.UpdateMachineRequest,
) (*hooksv1alpha1.UpdateMachineResponse, error) {
	return answerCall[*hooksv1alpha1.UpdateMachineResponse](ctx, s.dispatcher, req)
}

// GenerateUpgradePlan answers with the versions that an upgrade of a Cluster goes through.
func (s *Services) GenerateUpgradePlan(
	ctx context.Context, req *hooksv1alpha1.GenerateUpgradePlanRequest,
) (*hooksv1alpha1.GenerateUpgradePlanResponse, error) {
	return answerCall[*hooksv1alpha1.GenerateUpgradePlanResponse](ctx, s.dispatcher, req)
}
