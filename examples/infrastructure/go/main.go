// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Command go is an infrastructure provider in four functions, over gRPC: it makes networks and machines in a cloud with
// a JSON API, the one at CLOUD_URL. Everything that it makes has the external_id of its subject as its name there, so
// it keeps no state, may be killed at any moment, and several of it may run. CERT_DIR has tls.crt and tls.key.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	infrastructurev1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/infrastructure/v1alpha1"
)

// providerIDPrefix begins the provider IDs of the cloud.
const providerIDPrefix = "fake://"

const success = hooksv1alpha1.ResponseStatus_RESPONSE_STATUS_SUCCESS

func main() {
	if len(os.Args) != 3 || os.Getenv("CLOUD_URL") == "" {
		log.Fatal("usage: CLOUD_URL=http://HOST:PORT go ADDRESS CERT_DIR")
	}
	certificate, certErr := credentials.NewServerTLSFromFile(os.Args[2]+"/tls.crt", os.Args[2]+"/tls.key")
	listener, err := net.Listen("tcp", os.Args[1])
	if err := errors.Join(certErr, err); err != nil {
		log.Fatal(err)
	}
	p := &provider{cloud: os.Getenv("CLOUD_URL"), client: &http.Client{Timeout: 20 * time.Second}}
	server := grpc.NewServer(grpc.Creds(certificate), grpc.MaxRecvMsgSize(20<<20)) // the limit of the gateway
	infrastructurev1alpha1.RegisterDiscoveryServiceServer(server, p)
	infrastructurev1alpha1.RegisterClusterHooksServiceServer(server, p)
	infrastructurev1alpha1.RegisterMachineHooksServiceServer(server, p)
	fmt.Println("listening on", listener.Addr())
	log.Fatal(server.Serve(listener))
}

type provider struct {
	infrastructurev1alpha1.UnimplementedDiscoveryServiceServer
	infrastructurev1alpha1.UnimplementedClusterHooksServiceServer
	infrastructurev1alpha1.UnimplementedMachineHooksServiceServer

	cloud  string
	client *http.Client
}

// DiscoverInfrastructure announces the four functions, and the parameters of machines.
func (p *provider) DiscoverInfrastructure(
	context.Context, *infrastructurev1alpha1.DiscoverInfrastructureRequest,
) (*infrastructurev1alpha1.DiscoverInfrastructureResponse, error) {
	response := &infrastructurev1alpha1.DiscoverInfrastructureResponse{
		Status: success, ProviderIdPrefix: providerIDPrefix,
		MachineParameters: &hooksv1alpha1.JSON{Raw: []byte(`{"type": "object", "properties": {
			"size": {"type": "string", "enum": ["small", "large"], "default": "small", "description": "The size of the machine."}
		}}`)},
	}
	for name, hook := range map[string]string{
		"reconcile-cluster": "ReconcileCluster", "delete-cluster": "DeleteCluster",
		"reconcile-machine": "ReconcileMachine", "delete-machine": "DeleteMachine",
	} {
		response.Handlers = append(response.Handlers, &hooksv1alpha1.ExtensionHandler{
			Name: name,
			RequestHook: &hooksv1alpha1.GroupVersionHook{
				ApiVersion: "infrastructure.hookgate.dev/v1alpha1", Hook: hook,
			},
		})
	}
	return response, nil
}

// ReconcileCluster makes the network of a cluster, whose load balancer is the endpoint of its API server.
func (p *provider) ReconcileCluster(
	ctx context.Context, req *infrastructurev1alpha1.ReconcileClusterRequest,
) (*infrastructurev1alpha1.ReconcileClusterResponse, error) {
	spec := map[string]any{}
	if e := req.GetControlPlaneEndpoint(); e != nil {
		spec["endpoint"] = map[string]any{"host": e.GetHost(), "port": e.GetPort()}
	}
	var network struct {
		State          string
		Endpoint       *infrastructurev1alpha1.Endpoint // its JSON is the cloud's, too
		FailureDomains []string
	}
	err := p.ask(ctx, http.MethodPut, "/networks/", req.GetSubject(), spec, &network)
	response := &infrastructurev1alpha1.ReconcileClusterResponse{ControlPlaneEndpoint: network.Endpoint}
	response.Phase, response.Reason, response.Status, response.Message = outcome(
		network.State, "NetworkFailed", "the cloud could not make the network", err)
	for _, name := range network.FailureDomains {
		response.FailureDomains = append(response.FailureDomains,
			&infrastructurev1alpha1.FailureDomain{Name: name, ControlPlane: true})
	}
	return response, nil
}

// DeleteCluster deletes the network.
func (p *provider) DeleteCluster(
	ctx context.Context, req *infrastructurev1alpha1.DeleteClusterRequest,
) (*infrastructurev1alpha1.DeleteClusterResponse, error) {
	response := &infrastructurev1alpha1.DeleteClusterResponse{}
	response.State, response.Status, response.Message = p.remove(ctx, "/networks/", req.GetSubject())
	return response, nil
}

// ReconcileMachine makes a machine, or looks at one that was recorded: that one is never made again.
func (p *provider) ReconcileMachine(
	ctx context.Context, req *infrastructurev1alpha1.ReconcileMachineRequest,
) (*infrastructurev1alpha1.ReconcileMachineResponse, error) {
	method, spec := http.MethodGet, map[string]any(nil)
	if req.GetProviderId() == "" {
		method, spec = http.MethodPut, map[string]any{
			"network": req.GetSubject().GetClusterExternalId(), "name": req.GetSubject().GetName(),
			"controlPlane": req.GetControlPlane(), "version": req.GetVersion(), "failureDomain": req.GetFailureDomain(),
			"bootstrap": map[string]any{"data": req.GetBootstrap().GetData(), "format": req.GetBootstrap().GetFormat()},
			"tags":      map[string]any{"size": parameter(req.GetSubject(), "size")},
		}
	}
	var machine struct {
		ProviderID, State, Reason, Message, FailureDomain string
		Addresses                                         []struct{ Type, Address string }
	}
	err := p.ask(ctx, method, "/machines/", req.GetSubject(), spec, &machine)
	response := &infrastructurev1alpha1.ReconcileMachineResponse{
		ProviderId: machine.ProviderID, FailureDomain: machine.FailureDomain,
	}
	response.Phase, response.Reason, response.Status, response.Message = outcome(
		machine.State, machine.Reason, machine.Message, err)
	for _, a := range machine.Addresses {
		response.Addresses = append(response.Addresses,
			&infrastructurev1alpha1.MachineAddress{Type: a.Type, Address: a.Address})
	}
	return response, nil
}

// DeleteMachine deletes the machine.
func (p *provider) DeleteMachine(
	ctx context.Context, req *infrastructurev1alpha1.DeleteMachineRequest,
) (*infrastructurev1alpha1.DeleteMachineResponse, error) {
	response := &infrastructurev1alpha1.DeleteMachineResponse{}
	response.State, response.Status, response.Message = p.remove(ctx, "/machines/", req.GetSubject())
	return response, nil
}

// remove deletes what has the external_id of the subject. Only the cloud's own "not found" means that it is gone.
func (p *provider) remove(ctx context.Context, path string, subject *infrastructurev1alpha1.Subject) (
	infrastructurev1alpha1.DeletionState, hooksv1alpha1.ResponseStatus, string,
) {
	err := p.ask(ctx, http.MethodDelete, path, subject, nil, nil)
	var failure *cloudError
	switch {
	case err == nil:
		return infrastructurev1alpha1.DeletionState_DELETION_STATE_DELETING, success, ""
	case errors.As(err, &failure) && failure.Reason == "NotFound":
		return infrastructurev1alpha1.DeletionState_DELETION_STATE_GONE, success, ""
	}
	return 0, hooksv1alpha1.ResponseStatus_RESPONSE_STATUS_FAILURE, err.Error()
}

// outcome returns the members of an answer that all hooks which reconcile have in common. What the cloud refuses is
// Failed; an error that says nothing about the infrastructure, such as a cloud that does not answer, is a Failure. A
// cloud that is full answers as one that is broken, with a status of 5xx.
func outcome(state, reason, message string, err error) (
	infrastructurev1alpha1.Phase, string, hooksv1alpha1.ResponseStatus, string,
) {
	var failure *cloudError
	switch {
	case errors.As(err, &failure) && failure.Reason == "NotFound":
		return infrastructurev1alpha1.Phase_PHASE_FAILED, "InstanceGone", success, failure.Message
	case errors.As(err, &failure) &&
		(failure.Status < http.StatusInternalServerError || failure.Reason == "InsufficientCapacity"):
		return infrastructurev1alpha1.Phase_PHASE_FAILED, failure.Reason, success, failure.Message
	case err != nil:
		return 0, "", hooksv1alpha1.ResponseStatus_RESPONSE_STATUS_FAILURE, err.Error()
	case state == "running":
		return infrastructurev1alpha1.Phase_PHASE_READY, "", success, ""
	case state == "failed":
		return infrastructurev1alpha1.Phase_PHASE_FAILED, reason, success, message
	}
	return infrastructurev1alpha1.Phase_PHASE_PROVISIONING, "", success, ""
}

func parameter(subject *infrastructurev1alpha1.Subject, name string) string {
	var parameters map[string]string
	_ = json.Unmarshal(subject.GetParameters().GetRaw(), &parameters) // they match the schema
	return parameters[name]
}

// cloudError is the cloud's answer to a request that failed.
type cloudError struct {
	Status          int
	Reason, Message string
}

func (e *cloudError) Error() string { return e.Reason + ": " + e.Message }

// ask calls the cloud about the thing that has the external_id of the subject.
func (p *provider) ask(
	ctx context.Context, method, path string, subject *infrastructurev1alpha1.Subject, body, result any,
) error {
	encoded, err := json.Marshal(body)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, method, p.cloud+path+subject.GetExternalId(), bytes.NewReader(encoded))
	if err != nil {
		return err
	}
	if token := strings.TrimSpace(subject.GetCredentials()["token"]); token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := p.client.Do(req)
	if err != nil {
		return errors.New("the cloud does not answer") // without the address of the connection, which changes
	}
	defer func() { _ = resp.Body.Close() }()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		return errors.New("the cloud's answer ended early")
	}
	if resp.StatusCode >= http.StatusMultipleChoices {
		failure := &cloudError{Status: resp.StatusCode, Reason: "CloudError", Message: "the cloud refused"}
		_ = json.Unmarshal(answer, failure) // another body leaves it as it is
		return failure
	}
	if result == nil {
		return nil
	}
	if json.Unmarshal(answer, result) != nil {
		return errors.New("the cloud's answer is not JSON")
	}
	return nil
}
