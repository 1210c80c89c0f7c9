// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"

	"google.golang.org/protobuf/proto"

	"github.com/hookgate/hookgate/catalog"
	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/hook"
)

// Services implements the five services of the contract over a Dispatcher. Both fronts serve it, so that a hook behaves
// the same whichever way it was called. Errors are *hook.Error; each front says them in its own way.
type Services struct {
	hooksv1alpha1.UnimplementedDiscoveryServiceServer
	hooksv1alpha1.UnimplementedLifecycleHooksServiceServer
	hooksv1alpha1.UnimplementedTopologyMutationHooksServiceServer
	hooksv1alpha1.UnimplementedInPlaceUpdateHooksServiceServer
	hooksv1alpha1.UnimplementedUpgradePlanHooksServiceServer

	dispatcher *Dispatcher
	catalog    *catalog.Catalog
}

// NewServices returns the services over d.
func NewServices(d *Dispatcher, c *catalog.Catalog) *Services {
	return &Services{dispatcher: d, catalog: c}
}

// handlerRequest is a request that can name its handler: every one but Discovery's.
type handlerRequest interface {
	proto.Message
	GetHandler() string
}

// answer dispatches the request of the hook of that name.
func answer[Response proto.Message](ctx context.Context, s *Services, name string, req handlerRequest) (Response, error) {
	var none Response
	h, ok := s.catalog.ByName(name)
	if !ok {
		return none, hook.Errorf(hook.UnknownHook, "no hook %q", name)
	}
	m, err := s.dispatcher.Dispatch(ctx, h, req.GetHandler(), req)
	if err != nil {
		return none, err
	}
	r, ok := m.(Response)
	if !ok {
		return none, hook.Errorf(hook.Internal, "hook %s was answered with a %s", name, m.ProtoReflect().Descriptor().FullName())
	}
	return r, nil
}

// Discovery answers with the gateway's own handlers.
func (s *Services) Discovery(context.Context, *hooksv1alpha1.DiscoveryRequest) (*hooksv1alpha1.DiscoveryResponse, error) {
	return s.dispatcher.Discover(s.catalog)
}

// BeforeClusterCreate answers the hook of that name.
func (s *Services) BeforeClusterCreate(ctx context.Context, req *hooksv1alpha1.BeforeClusterCreateRequest) (*hooksv1alpha1.BeforeClusterCreateResponse, error) {
	return answer[*hooksv1alpha1.BeforeClusterCreateResponse](ctx, s, "BeforeClusterCreate", req)
}

// AfterControlPlaneInitialized answers the hook of that name.
func (s *Services) AfterControlPlaneInitialized(ctx context.Context, req *hooksv1alpha1.AfterControlPlaneInitializedRequest) (*hooksv1alpha1.AfterControlPlaneInitializedResponse, error) {
	return answer[*hooksv1alpha1.AfterControlPlaneInitializedResponse](ctx, s, "AfterControlPlaneInitialized", req)
}

// BeforeClusterUpgrade answers the hook of that name.
func (s *Services) BeforeClusterUpgrade(ctx context.Context, req *hooksv1alpha1.BeforeClusterUpgradeRequest) (*hooksv1alpha1.BeforeClusterUpgradeResponse, error) {
	return answer[*hooksv1alpha1.BeforeClusterUpgradeResponse](ctx, s, "BeforeClusterUpgrade", req)
}

// BeforeControlPlaneUpgrade answers the hook of that name.
func (s *Services) BeforeControlPlaneUpgrade(ctx context.Context, req *hooksv1alpha1.BeforeControlPlaneUpgradeRequest) (*hooksv1alpha1.BeforeControlPlaneUpgradeResponse, error) {
	return answer[*hooksv1alpha1.BeforeControlPlaneUpgradeResponse](ctx, s, "BeforeControlPlaneUpgrade", req)
}

// AfterControlPlaneUpgrade answers the hook of that name.
func (s *Services) AfterControlPlaneUpgrade(ctx context.Context, req *hooksv1alpha1.AfterControlPlaneUpgradeRequest) (*hooksv1alpha1.AfterControlPlaneUpgradeResponse, error) {
	return answer[*hooksv1alpha1.AfterControlPlaneUpgradeResponse](ctx, s, "AfterControlPlaneUpgrade", req)
}

// BeforeWorkersUpgrade answers the hook of that name.
func (s *Services) BeforeWorkersUpgrade(ctx context.Context, req *hooksv1alpha1.BeforeWorkersUpgradeRequest) (*hooksv1alpha1.BeforeWorkersUpgradeResponse, error) {
	return answer[*hooksv1alpha1.BeforeWorkersUpgradeResponse](ctx, s, "BeforeWorkersUpgrade", req)
}

// AfterWorkersUpgrade answers the hook of that name.
func (s *Services) AfterWorkersUpgrade(ctx context.Context, req *hooksv1alpha1.AfterWorkersUpgradeRequest) (*hooksv1alpha1.AfterWorkersUpgradeResponse, error) {
	return answer[*hooksv1alpha1.AfterWorkersUpgradeResponse](ctx, s, "AfterWorkersUpgrade", req)
}

// AfterClusterUpgrade answers the hook of that name.
func (s *Services) AfterClusterUpgrade(ctx context.Context, req *hooksv1alpha1.AfterClusterUpgradeRequest) (*hooksv1alpha1.AfterClusterUpgradeResponse, error) {
	return answer[*hooksv1alpha1.AfterClusterUpgradeResponse](ctx, s, "AfterClusterUpgrade", req)
}

// BeforeClusterDelete answers the hook of that name.
func (s *Services) BeforeClusterDelete(ctx context.Context, req *hooksv1alpha1.BeforeClusterDeleteRequest) (*hooksv1alpha1.BeforeClusterDeleteResponse, error) {
	return answer[*hooksv1alpha1.BeforeClusterDeleteResponse](ctx, s, "BeforeClusterDelete", req)
}

// GeneratePatches answers the hook of that name.
func (s *Services) GeneratePatches(ctx context.Context, req *hooksv1alpha1.GeneratePatchesRequest) (*hooksv1alpha1.GeneratePatchesResponse, error) {
	return answer[*hooksv1alpha1.GeneratePatchesResponse](ctx, s, "GeneratePatches", req)
}

// ValidateTopology answers the hook of that name.
func (s *Services) ValidateTopology(ctx context.Context, req *hooksv1alpha1.ValidateTopologyRequest) (*hooksv1alpha1.ValidateTopologyResponse, error) {
	return answer[*hooksv1alpha1.ValidateTopologyResponse](ctx, s, "ValidateTopology", req)
}

// DiscoverVariables answers the hook of that name.
func (s *Services) DiscoverVariables(ctx context.Context, req *hooksv1alpha1.DiscoverVariablesRequest) (*hooksv1alpha1.DiscoverVariablesResponse, error) {
	return answer[*hooksv1alpha1.DiscoverVariablesResponse](ctx, s, "DiscoverVariables", req)
}

// CanUpdateMachine answers the hook of that name.
func (s *Services) CanUpdateMachine(ctx context.Context, req *hooksv1alpha1.CanUpdateMachineRequest) (*hooksv1alpha1.CanUpdateMachineResponse, error) {
	return answer[*hooksv1alpha1.CanUpdateMachineResponse](ctx, s, "CanUpdateMachine", req)
}

// CanUpdateMachineSet answers the hook of that name.
func (s *Services) CanUpdateMachineSet(ctx context.Context, req *hooksv1alpha1.CanUpdateMachineSetRequest) (*hooksv1alpha1.CanUpdateMachineSetResponse, error) {
	return answer[*hooksv1alpha1.CanUpdateMachineSetResponse](ctx, s, "CanUpdateMachineSet", req)
}

// UpdateMachine answers the hook of that name.
func (s *Services) UpdateMachine(ctx context.Context, req *hooksv1alpha1.UpdateMachineRequest) (*hooksv1alpha1.UpdateMachineResponse, error) {
	return answer[*hooksv1alpha1.UpdateMachineResponse](ctx, s, "UpdateMachine", req)
}

// GenerateUpgradePlan answers the hook of that name.
func (s *Services) GenerateUpgradePlan(ctx context.Context, req *hooksv1alpha1.GenerateUpgradePlanRequest) (*hooksv1alpha1.GenerateUpgradePlanResponse, error) {
	return answer[*hooksv1alpha1.GenerateUpgradePlanResponse](ctx, s, "GenerateUpgradePlan", req)
}
