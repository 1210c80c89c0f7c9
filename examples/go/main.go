// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Command extension is a Runtime Extension over gRPC, built on the stubs in gen/go. Cluster API calls the gateway in
// front of it. This file is the server; hooks.go implements the hooks.
package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log"
	"net"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"

	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
)

const (
	// messageLimit is Cluster API's limit, in both directions. gRPC's is 4 MiB, which the templates of one cluster can
	// exceed.
	messageLimit = 20 << 20
	// grace is how long calls may take to finish. A handler's timeout is 30 s at most.
	grace = 30 * time.Second
)

func main() {
	address := "127.0.0.1:9090"
	if len(os.Args) > 1 {
		address = os.Args[1]
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, address)
	stop()
	if err != nil {
		log.Fatal(err)
	}
}

// run serves until ctx ends, and finishes the calls in flight.
func run(ctx context.Context, address string) error {
	listener, err := listen(address)
	if err != nil {
		return err
	}
	// Without TLS: the gateway is beside it, on loopback or on a socket that only it can open.
	server := grpc.NewServer(grpc.MaxRecvMsgSize(messageLimit), grpc.MaxSendMsgSize(messageLimit))
	hooksv1alpha1.RegisterDiscoveryServiceServer(server, discovery{})
	hooksv1alpha1.RegisterLifecycleHooksServiceServer(server, lifecycle{})
	hooksv1alpha1.RegisterTopologyMutationHooksServiceServer(server, topology{})
	hooksv1alpha1.RegisterInPlaceUpdateHooksServiceServer(server, inPlace{})
	grpc_health_v1.RegisterHealthServer(server, health.NewServer())

	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		<-ctx.Done()
		force := time.AfterFunc(grace, server.Stop)
		defer force.Stop()
		server.GracefulStop()
	}()
	fmt.Println("listening on", address)
	if err := server.Serve(listener); err != nil {
		return err
	}
	<-stopped
	return nil
}

// listen listens on host:port or unix:///path. A killed server leaves its socket's file, so listen replaces it.
func listen(address string) (net.Listener, error) {
	path, ok := strings.CutPrefix(address, "unix://")
	if !ok {
		return net.Listen("tcp", address)
	}
	if info, err := os.Lstat(path); err == nil && info.Mode().Type() == fs.ModeSocket {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	return net.Listen("unix", path)
}
