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
	"flag"
	"io"
	"log"
	"net/http"
	"os"
	"strings"
	"time"

	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	infrastructurev1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/infrastructure/v1alpha1"
	"github.com/hookgate/hookgate/sdk"
)

// providerIDPrefix begins the provider IDs of the cloud.
const providerIDPrefix = "fake://"

func main() {
	pools := flag.Bool("pools", false, "make pools of the cloud's groups, not of machines")
	flag.Parse()
	if flag.NArg() != 2 || os.Getenv("CLOUD_URL") == "" {
		log.Fatal("usage: CLOUD_URL=http://HOST:PORT go [-pools] ADDRESS CERT_DIR")
	}
	p := &provider{cloud: os.Getenv("CLOUD_URL"), client: &http.Client{Timeout: 20 * time.Second}}
	x := &sdk.Extension{}
	sdk.HandleResponse(x, "discover", p.discover)
	sdk.HandleResponse(x, "reconcile-cluster", p.reconcileCluster)
	sdk.HandleResponse(x, "delete-cluster", p.deleteCluster)
	sdk.HandleResponse(x, "reconcile-machine", p.reconcileMachine)
	sdk.HandleResponse(x, "delete-machine", p.deleteMachine)
	if *pools {
		p.addPools(x)
	}
	address, certs := flag.Arg(0), flag.Arg(1)
	config := sdk.Config{Address: address, CertFile: certs + "/tls.crt", KeyFile: certs + "/tls.key"}
	if err := x.Serve(context.Background(), config); err != nil {
		log.Fatal(err)
	}
}

type provider struct {
	cloud  string
	client *http.Client
}

// discover announces the parameters of machines and pools, and what machines have.
func (p *provider) discover(
	context.Context, *infrastructurev1alpha1.DiscoverInfrastructureRequest,
) (*infrastructurev1alpha1.DiscoverInfrastructureResponse, error) {
	schema := &hooksv1alpha1.JSON{Raw: []byte(`{"type": "object", "properties": {
		"size": {"type": "string", "enum": ["small", "large"], "default": "small", "description": "The size of the machine."}
	}}`)}
	return &infrastructurev1alpha1.DiscoverInfrastructureResponse{
		ProviderIdPrefix: providerIDPrefix, MachineParameters: schema, MachinePoolParameters: schema,
		MachineCapacities: []*infrastructurev1alpha1.MachineCapacity{
			{
				Parameters: &hooksv1alpha1.JSON{Raw: []byte(`{"size": "large"}`)},
				Capacity:   map[string]string{"cpu": "16", "memory": "64Gi"}, Architecture: "amd64", OperatingSystem: "linux",
			},
			{Capacity: map[string]string{"cpu": "2", "memory": "4Gi"}, Architecture: "amd64", OperatingSystem: "linux"},
		},
	}, nil
}

// reconcileCluster makes the network of a cluster, whose load balancer is the endpoint of its API server.
func (p *provider) reconcileCluster(
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
	response.Phase, response.Reason, response.Message, err = outcome(
		network.State, "NetworkFailed", "the cloud could not make the network", err)
	for _, name := range network.FailureDomains {
		response.FailureDomains = append(response.FailureDomains,
			&infrastructurev1alpha1.FailureDomain{Name: name, ControlPlane: true})
	}
	return response, err
}

// deleteCluster deletes the network.
func (p *provider) deleteCluster(
	ctx context.Context, req *infrastructurev1alpha1.DeleteClusterRequest,
) (*infrastructurev1alpha1.DeleteClusterResponse, error) {
	state, err := p.remove(ctx, "/networks/", req.GetSubject())
	return &infrastructurev1alpha1.DeleteClusterResponse{State: state}, err
}

// reconcileMachine makes a machine, or looks at one that was recorded: that one is never made again.
func (p *provider) reconcileMachine(
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
	response.Phase, response.Reason, response.Message, err = outcome(machine.State, machine.Reason, machine.Message, err)
	for _, a := range machine.Addresses {
		response.Addresses = append(response.Addresses,
			&infrastructurev1alpha1.MachineAddress{Type: a.Type, Address: a.Address})
	}
	return response, err
}

// deleteMachine deletes the machine.
func (p *provider) deleteMachine(
	ctx context.Context, req *infrastructurev1alpha1.DeleteMachineRequest,
) (*infrastructurev1alpha1.DeleteMachineResponse, error) {
	state, err := p.remove(ctx, "/machines/", req.GetSubject())
	return &infrastructurev1alpha1.DeleteMachineResponse{State: state}, err
}

// remove deletes what has the external_id of the subject. Only the cloud's own "not found" means that it is gone.
func (p *provider) remove(
	ctx context.Context, path string, subject *infrastructurev1alpha1.Subject,
) (infrastructurev1alpha1.DeletionState, error) {
	err := p.ask(ctx, http.MethodDelete, path, subject, nil, nil)
	var failure *cloudError
	switch {
	case err == nil:
		return infrastructurev1alpha1.DeletionState_DELETION_STATE_DELETING, nil
	case errors.As(err, &failure) && failure.Reason == "NotFound":
		return infrastructurev1alpha1.DeletionState_DELETION_STATE_GONE, nil
	}
	return 0, sdk.Failf("%v", err)
}

// outcome returns the phase of what is reconciled, with the reason and the message. What the cloud refuses is Failed;
// an error that says nothing about the infrastructure, such as a cloud that does not answer, is a Failure. A cloud that
// is full answers as one that is broken, with a status of 5xx.
func outcome(state, reason, message string, err error) (infrastructurev1alpha1.Phase, string, string, error) {
	var failure *cloudError
	switch {
	case errors.As(err, &failure) && failure.Reason == "NotFound":
		return infrastructurev1alpha1.Phase_PHASE_FAILED, "InstanceGone", failure.Message, nil
	case errors.As(err, &failure) &&
		(failure.Status < http.StatusInternalServerError || failure.Reason == "InsufficientCapacity"):
		return infrastructurev1alpha1.Phase_PHASE_FAILED, failure.Reason, failure.Message, nil
	case err != nil:
		return 0, "", "", sdk.Failf("%v", err)
	case state == "running":
		return infrastructurev1alpha1.Phase_PHASE_READY, "", "", nil
	case state == "failed":
		return infrastructurev1alpha1.Phase_PHASE_FAILED, reason, message, nil
	}
	return infrastructurev1alpha1.Phase_PHASE_PROVISIONING, "", "", nil
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
