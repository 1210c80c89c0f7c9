// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"context"
	"fmt"
	"maps"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	infrahooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/infrastructure/v1alpha1"
	machinesv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/machines/v1alpha1"
)

const success = hooksv1alpha1.ResponseStatus_RESPONSE_STATUS_SUCCESS

// cloud is an extension with what it has made, by external_id. Everything is ready at once, and gone at once.
type cloud struct {
	infrahooksv1alpha1.UnimplementedDiscoveryServiceServer
	infrahooksv1alpha1.UnimplementedClusterHooksServiceServer
	infrahooksv1alpha1.UnimplementedMachineHooksServiceServer
	infrahooksv1alpha1.UnimplementedMachinePoolHooksServiceServer

	mu       sync.Mutex
	clusters map[string]bool
	machines map[string]*infrahooksv1alpha1.ReconcileMachineRequest
	made     map[string]int // how often something was made, by external_id
	requests []proto.Message
	answer   func(req proto.Message) (proto.Message, error)
	announce func(*infrahooksv1alpha1.DiscoverInfrastructureResponse)

	delay time.Duration // of each answer

	creates bool // the gateway knows the hooks of Machines
	machinesv1alpha1.UnimplementedLifecycleHooksServiceServer

	pools    bool // announces handlers for pools
	groups   map[string][]*infrahooksv1alpha1.Instance
	sequence int
	chosen   int // how many instances of groups went that the cloud chose itself
}

func newCloud() *cloud {
	return &cloud{
		clusters: map[string]bool{}, machines: map[string]*infrahooksv1alpha1.ReconcileMachineRequest{},
		made: map[string]int{}, groups: map[string][]*infrahooksv1alpha1.Instance{},
	}
}

// serve serves the cloud, and returns its address.
func (c *cloud) serve(t testing.TB, options ...grpc.ServerOption) string {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := grpc.NewServer(append(options, grpc.UnaryInterceptor(c.intercept))...)
	infrahooksv1alpha1.RegisterDiscoveryServiceServer(s, c)
	infrahooksv1alpha1.RegisterClusterHooksServiceServer(s, c)
	infrahooksv1alpha1.RegisterMachineHooksServiceServer(s, c)
	infrahooksv1alpha1.RegisterMachinePoolHooksServiceServer(s, c)
	if c.creates {
		machinesv1alpha1.RegisterLifecycleHooksServiceServer(s, c)
	}
	go func() { _ = s.Serve(listener) }()
	t.Cleanup(s.Stop)
	return listener.Addr().String()
}

// answers makes the cloud answer what f returns; nil and nil leave the answer to the cloud. A nil f ends that.
func (c *cloud) answers(f func(req proto.Message) (proto.Message, error)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.answer = f
}

func (c *cloud) intercept(
	ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler,
) (any, error) {
	m, _ := req.(proto.Message)
	c.mu.Lock()
	c.requests = append(c.requests, proto.Clone(m))
	answer := c.answer
	c.mu.Unlock()
	time.Sleep(c.delay)
	if answer != nil {
		if a, err := answer(m); a != nil || err != nil {
			return a, err
		}
	}
	return handler(ctx, req)
}

// calls returns the requests of a type that came, without discoveries.
func calls[R proto.Message](c *cloud) []R {
	c.mu.Lock()
	defer c.mu.Unlock()
	var list []R
	for _, m := range c.requests {
		if r, ok := m.(R); ok {
			list = append(list, r)
		}
	}
	return list
}

// count returns how many calls there were that are no discoveries.
func (c *cloud) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := 0
	for _, m := range c.requests {
		if _, ok := m.(*infrahooksv1alpha1.DiscoverInfrastructureRequest); !ok {
			n++
		}
	}
	return n
}

// existing returns the external_ids of the machines that exist.
func (c *cloud) existing() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Sorted(maps.Keys(c.machines))
}

// madeOf returns how often a machine was made.
func (c *cloud) madeOf(externalID string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.made[externalID]
}

func (c *cloud) BeforeMachineCreate(
	context.Context, *machinesv1alpha1.BeforeMachineCreateRequest,
) (*machinesv1alpha1.BeforeMachineCreateResponse, error) {
	return &machinesv1alpha1.BeforeMachineCreateResponse{Status: success}, nil
}

func (c *cloud) DiscoverInfrastructure(
	context.Context, *infrahooksv1alpha1.DiscoverInfrastructureRequest,
) (*infrahooksv1alpha1.DiscoverInfrastructureResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := &infrahooksv1alpha1.DiscoverInfrastructureResponse{
		Status: success, ProviderIdPrefix: "fake://",
		ClusterParameters: schemaOf(`{"type":"object","properties":{"region":{"type":"string"}}}`),
		MachineParameters: schemaOf(`{"type":"object","properties":{"size":{"type":"string","enum":["small","large"],` +
			`"default":"small"}}}`),
		MachinePoolParameters: schemaOf(`{"type":"object","properties":{"size":{"type":"string"}}}`),
	}
	hooks := []string{"ReconcileCluster", "DeleteCluster", "ReconcileMachine", "DeleteMachine"}
	if c.pools {
		hooks = append(hooks, "ReconcileMachinePool", "DeleteMachinePool")
	}
	for i, h := range hooks {
		r.Handlers = append(r.Handlers, &hooksv1alpha1.ExtensionHandler{
			Name:        fmt.Sprintf("h%d", i),
			RequestHook: &hooksv1alpha1.GroupVersionHook{ApiVersion: "infrastructure.hookgate.dev/v1alpha1", Hook: h},
		})
	}
	if c.announce != nil {
		c.announce(r)
	}
	return r, nil
}

func schemaOf(text string) *hooksv1alpha1.JSON { return &hooksv1alpha1.JSON{Raw: []byte(text)} }

func (c *cloud) ReconcileCluster(
	_ context.Context, req *infrahooksv1alpha1.ReconcileClusterRequest,
) (*infrahooksv1alpha1.ReconcileClusterResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.clusters[req.GetSubject().GetExternalId()] = true
	e := req.GetControlPlaneEndpoint()
	if e == nil {
		e = &infrahooksv1alpha1.Endpoint{Host: "10.0.0.1", Port: 6443}
	}
	return &infrahooksv1alpha1.ReconcileClusterResponse{
		Status: success, Phase: infrahooksv1alpha1.Phase_PHASE_READY, ControlPlaneEndpoint: e,
		FailureDomains: []*infrahooksv1alpha1.FailureDomain{{Name: "a", ControlPlane: true}, {Name: "b"}},
		Outputs:        schemaOf(`{"network":"n1"}`),
	}, nil
}

func (c *cloud) DeleteCluster(
	_ context.Context, req *infrahooksv1alpha1.DeleteClusterRequest,
) (*infrahooksv1alpha1.DeleteClusterResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.clusters, req.GetSubject().GetExternalId())
	return &infrahooksv1alpha1.DeleteClusterResponse{
		Status: success, State: infrahooksv1alpha1.DeletionState_DELETION_STATE_GONE,
	}, nil
}

func (c *cloud) ReconcileMachine(
	_ context.Context, req *infrahooksv1alpha1.ReconcileMachineRequest,
) (*infrahooksv1alpha1.ReconcileMachineResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	id := req.GetSubject().GetExternalId()
	if c.machines[id] == nil {
		if req.GetProviderId() != "" {
			return &infrahooksv1alpha1.ReconcileMachineResponse{
				Status: success, Phase: infrahooksv1alpha1.Phase_PHASE_FAILED, Reason: "InstanceGone",
				Message: "the machine is gone", RetryAfterSeconds: 1,
			}, nil
		}
		c.machines[id] = req
		c.made[id]++
	}
	return readyMachine(id), nil
}

// readyMachine returns the answer for a machine that is ready.
func readyMachine(id string) *infrahooksv1alpha1.ReconcileMachineResponse {
	return &infrahooksv1alpha1.ReconcileMachineResponse{
		Status: success, Phase: infrahooksv1alpha1.Phase_PHASE_READY, ProviderId: "fake://" + id, FailureDomain: "a",
		Addresses: []*infrahooksv1alpha1.MachineAddress{{Type: "InternalIP", Address: "10.0.0.7"}},
	}
}

func (c *cloud) DeleteMachine(
	_ context.Context, req *infrahooksv1alpha1.DeleteMachineRequest,
) (*infrahooksv1alpha1.DeleteMachineResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.machines, req.GetSubject().GetExternalId())
	return &infrahooksv1alpha1.DeleteMachineResponse{
		Status: success, State: infrahooksv1alpha1.DeletionState_DELETION_STATE_GONE,
	}, nil
}
