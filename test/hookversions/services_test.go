// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package hookversions

import (
	"context"
	"errors"

	"github.com/grpc-ecosystem/grpc-gateway/v2/runtime"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/gateway"
	v1 "github.com/hookgate/hookgate/test/hookversions/gen/hookversions/v1"
	v1alpha1 "github.com/hookgate/hookgate/test/hookversions/gen/hookversions/v1alpha1"
	v1beta1 "github.com/hookgate/hookgate/test/hookversions/gen/hookversions/v1beta1"
)

// answerer answers a request of any version, like the gateway's dispatcher or an extension.
type answerer interface {
	answer(ctx context.Context, req proto.Message) (proto.Message, error)
}

// answer returns what a answers, in its own type.
func answer[Response proto.Message](ctx context.Context, a answerer, req proto.Message) (Response, error) {
	var none Response
	m, err := a.answer(ctx, req)
	if err != nil {
		return none, err
	}
	return m.(Response), nil
}

// dispatched answers through the gateway's dispatcher, as the product's services do.
type dispatched struct{ dispatcher *gateway.Dispatcher }

func (d dispatched) answer(ctx context.Context, req proto.Message) (proto.Message, error) {
	return gateway.Answer[proto.Message](ctx, d.dispatcher, req)
}

// The services of each version. Those of v1alpha1 are these.
type alphaServices struct {
	v1alpha1.UnimplementedDiscoveryServiceServer
	v1alpha1.UnimplementedLifecycleHooksServiceServer
	v1alpha1.UnimplementedPlanHooksServiceServer
	answerer
}

func (s alphaServices) Discovery(ctx context.Context, req *v1alpha1.DiscoveryRequest) (
	*v1alpha1.DiscoveryResponse, error,
) {
	return answer[*v1alpha1.DiscoveryResponse](ctx, s, req)
}

func (s alphaServices) BeforeNodeDrain(ctx context.Context, req *v1alpha1.BeforeNodeDrainRequest) (
	*v1alpha1.BeforeNodeDrainResponse, error,
) {
	return answer[*v1alpha1.BeforeNodeDrainResponse](ctx, s, req)
}

func (s alphaServices) PlanDrains(ctx context.Context, req *v1alpha1.PlanDrainsRequest) (
	*v1alpha1.PlanDrainsResponse, error,
) {
	return answer[*v1alpha1.PlanDrainsResponse](ctx, s, req)
}

func (s alphaServices) register(g grpc.ServiceRegistrar) {
	v1alpha1.RegisterDiscoveryServiceServer(g, s)
	v1alpha1.RegisterLifecycleHooksServiceServer(g, s)
	v1alpha1.RegisterPlanHooksServiceServer(g, s)
}

// betaServices implements the services of v1beta1.
type betaServices struct {
	v1beta1.UnimplementedDiscoveryServiceServer
	v1beta1.UnimplementedLifecycleHooksServiceServer
	v1beta1.UnimplementedPlanHooksServiceServer
	answerer
}

func (s betaServices) Discovery(ctx context.Context, req *v1beta1.DiscoveryRequest) (
	*v1beta1.DiscoveryResponse, error,
) {
	return answer[*v1beta1.DiscoveryResponse](ctx, s, req)
}

func (s betaServices) BeforeNodeDrain(ctx context.Context, req *v1beta1.BeforeNodeDrainRequest) (
	*v1beta1.BeforeNodeDrainResponse, error,
) {
	return answer[*v1beta1.BeforeNodeDrainResponse](ctx, s, req)
}

func (s betaServices) PlanDrains(ctx context.Context, req *v1beta1.PlanDrainsRequest) (
	*v1beta1.PlanDrainsResponse, error,
) {
	return answer[*v1beta1.PlanDrainsResponse](ctx, s, req)
}

func (s betaServices) register(g grpc.ServiceRegistrar) {
	v1beta1.RegisterDiscoveryServiceServer(g, s)
	v1beta1.RegisterLifecycleHooksServiceServer(g, s)
	v1beta1.RegisterPlanHooksServiceServer(g, s)
}

// stableServices implements the services of v1.
type stableServices struct {
	v1.UnimplementedDiscoveryServiceServer
	v1.UnimplementedLifecycleHooksServiceServer
	v1.UnimplementedPlanHooksServiceServer
	answerer
}

func (s stableServices) Discovery(ctx context.Context, req *v1.DiscoveryRequest) (*v1.DiscoveryResponse, error) {
	return answer[*v1.DiscoveryResponse](ctx, s, req)
}

func (s stableServices) BeforeNodeDrain(ctx context.Context, req *v1.BeforeNodeDrainRequest) (
	*v1.BeforeNodeDrainResponse, error,
) {
	return answer[*v1.BeforeNodeDrainResponse](ctx, s, req)
}

func (s stableServices) PlanDrains(ctx context.Context, req *v1.PlanDrainsRequest) (*v1.PlanDrainsResponse, error) {
	return answer[*v1.PlanDrainsResponse](ctx, s, req)
}

func (s stableServices) register(g grpc.ServiceRegistrar) {
	v1.RegisterDiscoveryServiceServer(g, s)
	v1.RegisterLifecycleHooksServiceServer(g, s)
	v1.RegisterPlanHooksServiceServer(g, s)
}

// registerVersion registers the services of one version, which a answers.
func registerVersion(g grpc.ServiceRegistrar, version string, a answerer) {
	switch version {
	case "v1alpha1":
		alphaServices{answerer: a}.register(g)
	case "v1beta1":
		betaServices{answerer: a}.register(g)
	case "v1":
		stableServices{answerer: a}.register(g)
	}
}

// contract is the test group as the product's fronts serve it.
type contract struct {
	catalog *catalog.Catalog
	gateway.GroupServices
}

var _ gateway.Contract = contract{}

func (c contract) Catalog() *catalog.Catalog { return c.catalog }

// generatedServices are the services of the group as a group with generated services has them.
type generatedServices struct{ dispatched }

func newGeneratedServices(d *gateway.Dispatcher) gateway.GroupServices {
	return generatedServices{dispatched{dispatcher: d}}
}

// newDescribedServices returns the services as a group without code of its own has them.
func newDescribedServices(d *gateway.Dispatcher) gateway.GroupServices {
	return gateway.DescribedServices(d, Sources()...)
}

func (c generatedServices) RegisterGRPC(g grpc.ServiceRegistrar) {
	for _, version := range Versions() {
		registerVersion(g, version, c.dispatched)
	}
}

func (c generatedServices) RegisterREST(ctx context.Context, mux *runtime.ServeMux) error {
	alpha, beta, stable := alphaServices{answerer: c.dispatched}, betaServices{answerer: c.dispatched},
		stableServices{answerer: c.dispatched}
	return errors.Join(
		v1alpha1.RegisterDiscoveryServiceHandlerServer(ctx, mux, alpha),
		v1alpha1.RegisterLifecycleHooksServiceHandlerServer(ctx, mux, alpha),
		v1alpha1.RegisterPlanHooksServiceHandlerServer(ctx, mux, alpha),
		v1beta1.RegisterDiscoveryServiceHandlerServer(ctx, mux, beta),
		v1beta1.RegisterLifecycleHooksServiceHandlerServer(ctx, mux, beta),
		v1beta1.RegisterPlanHooksServiceHandlerServer(ctx, mux, beta),
		v1.RegisterDiscoveryServiceHandlerServer(ctx, mux, stable),
		v1.RegisterLifecycleHooksServiceHandlerServer(ctx, mux, stable),
		v1.RegisterPlanHooksServiceHandlerServer(ctx, mux, stable),
	)
}
