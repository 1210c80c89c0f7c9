// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Command acme-dns is an extension over gRPC that implements the hooks of the folder above. It keeps the records in
// memory.
package main

import (
	"context"
	"fmt"
	"log"
	"net"
	"os"
	"path/filepath"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"

	dnsv1alpha1 "github.com/hookgate/hookgate/examples/own-hooks/gen/acme/dns/v1alpha1"
	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
)

const success = hooksv1alpha1.ResponseStatus_RESPONSE_STATUS_SUCCESS

func main() {
	if len(os.Args) != 2 && len(os.Args) != 3 {
		log.Fatal("usage: acme-dns HOST:PORT [DIRECTORY with tls.crt and tls.key]")
	}
	transport := insecure.NewCredentials() // for a gateway beside it
	if len(os.Args) == 3 {
		var err error
		transport, err = credentials.NewServerTLSFromFile(
			filepath.Join(os.Args[2], "tls.crt"), filepath.Join(os.Args[2], "tls.key"))
		if err != nil {
			log.Fatal(err)
		}
	}
	listener, err := net.Listen("tcp", os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	server := grpc.NewServer(grpc.Creds(transport), grpc.MaxRecvMsgSize(20<<20)) // as large as bodies may be
	e := &extension{records: map[string][]string{}}
	dnsv1alpha1.RegisterDiscoveryServiceServer(server, e)
	dnsv1alpha1.RegisterRecordHooksServiceServer(server, e)
	healthv1.RegisterHealthServer(server, health.NewServer())
	fmt.Println("listening on", listener.Addr())
	log.Fatal(server.Serve(listener))
}

// extension keeps the addresses of records by name.
type extension struct {
	dnsv1alpha1.UnimplementedDiscoveryServiceServer
	dnsv1alpha1.UnimplementedRecordHooksServiceServer

	mu      sync.Mutex
	records map[string][]string
}

// DiscoverDNS lists the handlers.
func (*extension) DiscoverDNS(
	context.Context, *dnsv1alpha1.DiscoverDNSRequest,
) (*dnsv1alpha1.DiscoverDNSResponse, error) {
	answer := &dnsv1alpha1.DiscoverDNSResponse{Status: success}
	for name, hook := range map[string]string{"ensure": "EnsureRecord", "remove": "RemoveRecord"} {
		answer.Handlers = append(answer.Handlers, &hooksv1alpha1.ExtensionHandler{
			Name:        name,
			RequestHook: &hooksv1alpha1.GroupVersionHook{ApiVersion: "dns.acme.example/v1alpha1", Hook: hook},
		})
	}
	return answer, nil
}

// EnsureRecord publishes a record.
func (e *extension) EnsureRecord(
	_ context.Context, request *dnsv1alpha1.EnsureRecordRequest,
) (*dnsv1alpha1.EnsureRecordResponse, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.records[request.GetName()] = request.GetAddresses()
	return &dnsv1alpha1.EnsureRecordResponse{
		Status: success, Message: fmt.Sprintf("%s is %v", request.GetName(), request.GetAddresses()),
		State: dnsv1alpha1.State_STATE_PUBLISHED,
	}, nil
}

// RemoveRecord removes a record.
func (e *extension) RemoveRecord(
	_ context.Context, request *dnsv1alpha1.RemoveRecordRequest,
) (*dnsv1alpha1.RemoveRecordResponse, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.records, request.GetName())
	return &dnsv1alpha1.RemoveRecordResponse{Status: success}, nil
}
