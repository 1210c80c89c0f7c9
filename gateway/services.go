// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"errors"

	"github.com/grpc-ecosystem/grpc-gateway/v2/runtime"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/hookgate/hookgate/catalog"
	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/hook"
)

// Contract is what the fronts serve: hooks, and the services that answer them. Services is the one of the product.
type Contract interface {
	// Catalog returns the hooks. It is the catalog of the dispatcher, the codec and the transports, too.
	Catalog() *catalog.Catalog
	// RegisterGRPC registers the services with a gRPC server, and RegisterREST with the mux of the REST front.
	RegisterGRPC(g grpc.ServiceRegistrar)
	RegisterREST(ctx context.Context, mux *runtime.ServeMux) error
}

var _ Contract = (*Services)(nil)

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

// Catalog returns the hooks that are served.
func (s *Services) Catalog() *catalog.Catalog { return s.catalog }

// RegisterGRPC registers the five services with a gRPC server.
func (s *Services) RegisterGRPC(g grpc.ServiceRegistrar) {
	hooksv1alpha1.RegisterDiscoveryServiceServer(g, s)
	hooksv1alpha1.RegisterLifecycleHooksServiceServer(g, s)
	hooksv1alpha1.RegisterTopologyMutationHooksServiceServer(g, s)
	hooksv1alpha1.RegisterInPlaceUpdateHooksServiceServer(g, s)
	hooksv1alpha1.RegisterUpgradePlanHooksServiceServer(g, s)
}

// RegisterREST registers the five services with the mux of the REST front.
func (s *Services) RegisterREST(ctx context.Context, mux *runtime.ServeMux) error {
	return errors.Join(
		hooksv1alpha1.RegisterTopologyMutationHooksServiceHandlerServer(ctx, mux, s),
		hooksv1alpha1.RegisterLifecycleHooksServiceHandlerServer(ctx, mux, s),
		hooksv1alpha1.RegisterInPlaceUpdateHooksServiceHandlerServer(ctx, mux, s),
		hooksv1alpha1.RegisterUpgradePlanHooksServiceHandlerServer(ctx, mux, s),
		hooksv1alpha1.RegisterDiscoveryServiceHandlerServer(ctx, mux, s),
	)
}

// Answer answers a request of a hook of the catalog, with the gateway's own handlers if it is one of Discovery. Response is the
// type of the hook's answers. Errors are those of Dispatcher.Dispatch.
func Answer[Response proto.Message](ctx context.Context, d *Dispatcher, c *catalog.Catalog, req proto.Message) (Response, error) {
	var none Response
	h, ok := c.ByRequest(req)
	if !ok {
		return none, hook.Errorf(hook.UnknownHook, "no hook has the request %s", req.ProtoReflect().Descriptor().FullName())
	}
	noteDeprecated(ctx, h, "")
	var m proto.Message
	var err error
	if h.Singleton() {
		m, err = d.Discover(c, h)
	} else {
		handler := ""
		if r, ok := req.(interface{ GetHandler() string }); ok {
			handler = r.GetHandler()
		}
		m, err = d.Dispatch(ctx, h, handler, req)
	}
	if err != nil {
		return none, err
	}
	r, ok := m.(Response)
	if !ok {
		return none, hook.Errorf(hook.Internal, "hook %s was answered with a %s", h, m.ProtoReflect().Descriptor().FullName())
	}
	return r, nil
}

// Discovery answers with the gateway's own handlers.
func (s *Services) Discovery(ctx context.Context, req *hooksv1alpha1.DiscoveryRequest) (*hooksv1alpha1.DiscoveryResponse, error) {
	return Answer[*hooksv1alpha1.DiscoveryResponse](ctx, s.dispatcher, s.catalog, req)
}

// BeforeClusterCreate answers the hook of that name.
func (s *Services) BeforeClusterCreate(ctx context.Context, req *hooksv1alpha1.BeforeClusterCreateRequest) (*hooksv1alpha1.BeforeClusterCreateResponse, error) {
	return Answer[*hooksv1alpha1.BeforeClusterCreateResponse](ctx, s.dispatcher, s.catalog, req)
}

// AfterControlPlaneInitialized answers the hook of that name.
func (s *Services) AfterControlPlaneInitialized(ctx context.Context, req *hooksv1alpha1.AfterControlPlaneInitializedRequest) (*hooksv1alpha1.AfterControlPlaneInitializedResponse, error) {
	return Answer[*hooksv1alpha1.AfterControlPlaneInitializedResponse](ctx, s.dispatcher, s.catalog, req)
}

// BeforeClusterUpgrade answers the hook of that name.
func (s *Services) BeforeClusterUpgrade(ctx context.Context, req *hooksv1alpha1.BeforeClusterUpgradeRequest) (*hooksv1alpha1.BeforeClusterUpgradeResponse, error) {
	return Answer[*hooksv1alpha1.BeforeClusterUpgradeResponse](ctx, s.dispatcher, s.catalog, req)
}

// BeforeControlPlaneUpgrade answers the hook of that name.
func (s *Services) BeforeControlPlaneUpgrade(ctx context.Context, req *hooksv1alpha1.BeforeControlPlaneUpgradeRequest) (*hooksv1alpha1.BeforeControlPlaneUpgradeResponse, error) {
	return Answer[*hooksv1alpha1.BeforeControlPlaneUpgradeResponse](ctx, s.dispatcher, s.catalog, req)
}

// AfterControlPlaneUpgrade answers the hook of that name.
func (s *Services) AfterControlPlaneUpgrade(ctx context.Context, req *hooksv1alpha1.AfterControlPlaneUpgradeRequest) (*hooksv1alpha1.AfterControlPlaneUpgradeResponse, error) {
	return Answer[*hooksv1alpha1.AfterControlPlaneUpgradeResponse](ctx, s.dispatcher, s.catalog, req)
}

// BeforeWorkersUpgrade answers the hook of that name.
func (s *Services) BeforeWorkersUpgrade(ctx context.Context, req *hooksv1alpha1.BeforeWorkersUpgradeRequest) (*hooksv1alpha1.BeforeWorkersUpgradeResponse, error) {
	return Answer[*hooksv1alpha1.BeforeWorkersUpgradeResponse](ctx, s.dispatcher, s.catalog, req)
}

// AfterWorkersUpgrade answers the hook of that name.
func (s *Services) AfterWorkersUpgrade(ctx context.Context, req *hooksv1alpha1.AfterWorkersUpgradeRequest) (*hooksv1alpha1.AfterWorkersUpgradeResponse, error) {
	return Answer[*hooksv1alpha1.AfterWorkersUpgradeResponse](ctx, s.dispatcher, s.catalog, req)
}

// AfterClusterUpgrade answers the hook of that name.
func (s *Services) AfterClusterUpgrade(ctx context.Context, req *hooksv1alpha1.AfterClusterUpgradeRequest) (*hooksv1alpha1.AfterClusterUpgradeResponse, error) {
	return Answer[*hooksv1alpha1.AfterClusterUpgradeResponse](ctx, s.dispatcher, s.catalog, req)
}

// BeforeClusterDelete answers the hook of that name.
func (s *Services) BeforeClusterDelete(ctx context.Context, req *hooksv1alpha1.BeforeClusterDeleteRequest) (*hooksv1alpha1.BeforeClusterDeleteResponse, error) {
	return Answer[*hooksv1alpha1.BeforeClusterDeleteResponse](ctx, s.dispatcher, s.catalog, req)
}

// GeneratePatches answers the hook of that name.
func (s *Services) GeneratePatches(ctx context.Context, req *hooksv1alpha1.GeneratePatchesRequest) (*hooksv1alpha1.GeneratePatchesResponse, error) {
	return Answer[*hooksv1alpha1.GeneratePatchesResponse](ctx, s.dispatcher, s.catalog, req)
}

// ValidateTopology answers the hook of that name.
func (s *Services) ValidateTopology(ctx context.Context, req *hooksv1alpha1.ValidateTopologyRequest) (*hooksv1alpha1.ValidateTopologyResponse, error) {
	return Answer[*hooksv1alpha1.ValidateTopologyResponse](ctx, s.dispatcher, s.catalog, req)
}

// DiscoverVariables answers the hook of that name.
func (s *Services) DiscoverVariables(ctx context.Context, req *hooksv1alpha1.DiscoverVariablesRequest) (*hooksv1alpha1.DiscoverVariablesResponse, error) {
	return Answer[*hooksv1alpha1.DiscoverVariablesResponse](ctx, s.dispatcher, s.catalog, req)
}

// CanUpdateMachine answers the hook of that name.
func (s *Services) CanUpdateMachine(ctx context.Context, req *hooksv1alpha1.CanUpdateMachineRequest) (*hooksv1alpha1.CanUpdateMachineResponse, error) {
	return Answer[*hooksv1alpha1.CanUpdateMachineResponse](ctx, s.dispatcher, s.catalog, req)
}

// CanUpdateMachineSet answers the hook of that name.
func (s *Services) CanUpdateMachineSet(ctx context.Context, req *hooksv1alpha1.CanUpdateMachineSetRequest) (*hooksv1alpha1.CanUpdateMachineSetResponse, error) {
	return Answer[*hooksv1alpha1.CanUpdateMachineSetResponse](ctx, s.dispatcher, s.catalog, req)
}

// UpdateMachine answers the hook of that name.
func (s *Services) UpdateMachine(ctx context.Context, req *hooksv1alpha1.UpdateMachineRequest) (*hooksv1alpha1.UpdateMachineResponse, error) {
	return Answer[*hooksv1alpha1.UpdateMachineResponse](ctx, s.dispatcher, s.catalog, req)
}

// GenerateUpgradePlan answers the hook of that name.
func (s *Services) GenerateUpgradePlan(ctx context.Context, req *hooksv1alpha1.GenerateUpgradePlanRequest) (*hooksv1alpha1.GenerateUpgradePlanResponse, error) {
	return Answer[*hooksv1alpha1.GenerateUpgradePlanResponse](ctx, s.dispatcher, s.catalog, req)
}
