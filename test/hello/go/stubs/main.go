// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Command stubs is an extension with one handler, on the stubs alone.
package main

import (
	"context"
	"log"
	"net"
	"os"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/reflection"

	hooks "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
)

type extension struct {
	hooks.UnimplementedDiscoveryServiceServer
	hooks.UnimplementedLifecycleHooksServiceServer
}

func (extension) Discovery(context.Context, *hooks.DiscoveryRequest) (*hooks.DiscoveryResponse, error) {
	return &hooks.DiscoveryResponse{
		Status: hooks.ResponseStatus_RESPONSE_STATUS_SUCCESS,
		Handlers: []*hooks.ExtensionHandler{{Name: "hello", RequestHook: &hooks.GroupVersionHook{
			ApiVersion: "hooks.runtime.cluster.x-k8s.io/v1alpha1", Hook: "BeforeClusterUpgrade",
		}}},
	}, nil
}

func (extension) BeforeClusterUpgrade(
	context.Context, *hooks.BeforeClusterUpgradeRequest,
) (*hooks.BeforeClusterUpgradeResponse, error) {
	return &hooks.BeforeClusterUpgradeResponse{Status: hooks.ResponseStatus_RESPONSE_STATUS_SUCCESS}, nil
}

func main() {
	listener, err := new(net.ListenConfig).Listen(context.Background(), "tcp", os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	server := grpc.NewServer()
	hooks.RegisterDiscoveryServiceServer(server, extension{})
	hooks.RegisterLifecycleHooksServiceServer(server, extension{})
	healthv1.RegisterHealthServer(server, health.NewServer())
	reflection.Register(server)
	if err := server.Serve(listener); err != nil {
		log.Fatal(err)
	}
}
