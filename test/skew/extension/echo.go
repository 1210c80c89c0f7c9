// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	clusterv1beta1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
	"sigs.k8s.io/cluster-api/exp/runtime/server"
)

// echoes returns one handler for each hook, named like it.
func echoes() []server.ExtensionHandler {
	return []server.ExtensionHandler{
		{Name: "before-cluster-create", Hook: runtimehooksv1.BeforeClusterCreate, HandlerFunc: echo(
			func(*runtimehooksv1.BeforeClusterCreateRequest, *runtimehooksv1.BeforeClusterCreateResponse) {})},
		{Name: "after-control-plane-initialized", Hook: runtimehooksv1.AfterControlPlaneInitialized, HandlerFunc: echo(
			func(*runtimehooksv1.AfterControlPlaneInitializedRequest,
				*runtimehooksv1.AfterControlPlaneInitializedResponse) {
			})},
		{Name: "before-cluster-upgrade", Hook: runtimehooksv1.BeforeClusterUpgrade, HandlerFunc: echo(
			func(*runtimehooksv1.BeforeClusterUpgradeRequest, *runtimehooksv1.BeforeClusterUpgradeResponse) {})},
		{Name: "before-control-plane-upgrade", Hook: runtimehooksv1.BeforeControlPlaneUpgrade, HandlerFunc: echo(
			func(*runtimehooksv1.BeforeControlPlaneUpgradeRequest, *runtimehooksv1.BeforeControlPlaneUpgradeResponse) {
			})},
		{Name: "after-control-plane-upgrade", Hook: runtimehooksv1.AfterControlPlaneUpgrade, HandlerFunc: echo(
			func(*runtimehooksv1.AfterControlPlaneUpgradeRequest, *runtimehooksv1.AfterControlPlaneUpgradeResponse) {
			})},
		{Name: "before-workers-upgrade", Hook: runtimehooksv1.BeforeWorkersUpgrade, HandlerFunc: echo(
			func(*runtimehooksv1.BeforeWorkersUpgradeRequest, *runtimehooksv1.BeforeWorkersUpgradeResponse) {})},
		{Name: "after-workers-upgrade", Hook: runtimehooksv1.AfterWorkersUpgrade, HandlerFunc: echo(
			func(*runtimehooksv1.AfterWorkersUpgradeRequest, *runtimehooksv1.AfterWorkersUpgradeResponse) {})},
		{Name: "after-cluster-upgrade", Hook: runtimehooksv1.AfterClusterUpgrade, HandlerFunc: echo(
			func(*runtimehooksv1.AfterClusterUpgradeRequest, *runtimehooksv1.AfterClusterUpgradeResponse) {})},
		{Name: "before-cluster-delete", Hook: runtimehooksv1.BeforeClusterDelete, HandlerFunc: echo(
			func(*runtimehooksv1.BeforeClusterDeleteRequest, *runtimehooksv1.BeforeClusterDeleteResponse) {})},
		{Name: "generate-patches", Hook: runtimehooksv1.GeneratePatches, HandlerFunc: echo(generatePatches)},
		{Name: "validate-topology", Hook: runtimehooksv1.ValidateTopology, HandlerFunc: echo(
			func(*runtimehooksv1.ValidateTopologyRequest, *runtimehooksv1.ValidateTopologyResponse) {})},
		{Name: "discover-variables", Hook: runtimehooksv1.DiscoverVariables, HandlerFunc: echo(discoverVariables)},
		{Name: "generate-upgrade-plan", Hook: runtimehooksv1.GenerateUpgradePlan, HandlerFunc: echo(generateUpgradePlan)},
		{Name: "can-update-machine", Hook: runtimehooksv1.CanUpdateMachine, HandlerFunc: echo(canUpdateMachine)},
		{Name: "can-update-machineset", Hook: runtimehooksv1.CanUpdateMachineSet, HandlerFunc: echo(canUpdateMachineSet)},
		{Name: "update-machine", Hook: runtimehooksv1.UpdateMachine, HandlerFunc: echo(
			func(*runtimehooksv1.UpdateMachineRequest, *runtimehooksv1.UpdateMachineResponse) {})},
	}
}

// request and response bind a message type to the interface of the pointer to it.
type request[Q any] interface {
	*Q
	runtimehooksv1.RequestObject
}

type response[R any] interface {
	*R
	runtimehooksv1.ResponseObject
}

// echo returns a handler whose message is the request as v1.12's types hold it, compressed, because gateways cut long
// messages; fill adds what the hook is about.
func echo[Q, R any, PQ request[Q], PR response[R]](fill func(*Q, *R)) func(context.Context, *Q, *R) {
	return func(_ context.Context, q *Q, r *R) {
		decoded, err := json.Marshal(PQ(q))
		if err != nil {
			refuse(PR(r), fmt.Errorf("marshal request: %w", err))
			return
		}
		PR(r).SetStatus(runtimehooksv1.ResponseStatusSuccess)
		PR(r).SetMessage(compressed(decoded))
		fill(q, r)
	}
}

// compressed returns data in gzip and base64.
func compressed(data []byte) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write(data) // a Buffer takes everything
	_ = w.Close()
	return base64.StdEncoding.EncodeToString(b.Bytes())
}

func refuse(r runtimehooksv1.ResponseObject, err error) {
	r.SetStatus(runtimehooksv1.ResponseStatusFailure)
	r.SetMessage(err.Error())
}

// generatePatches gives each template the label that it was here.
func generatePatches(q *runtimehooksv1.GeneratePatchesRequest, r *runtimehooksv1.GeneratePatchesResponse) {
	for _, item := range q.Items {
		r.Items = append(r.Items, runtimehooksv1.GeneratePatchesResponseItem{
			UID: item.UID, PatchType: runtimehooksv1.JSONMergePatchType,
			Patch: []byte(`{"spec":{"template":{"metadata":{"labels":{"built-with":"v1.12"}}}}}`),
		})
	}
}

// discoverVariables answers with metadata where v1.12 has it, which v1.14 looks for elsewhere.
func discoverVariables(_ *runtimehooksv1.DiscoverVariablesRequest, r *runtimehooksv1.DiscoverVariablesResponse) {
	r.Variables = []clusterv1beta1.ClusterClassVariable{
		{
			Name: "instanceType", Required: true,
			Metadata: clusterv1beta1.ClusterClassVariableMetadata{ //nolint:staticcheck // deprecated then, gone now: that is the point
				Labels:      map[string]string{"topic": "compute"},
				Annotations: map[string]string{"note": "größer <ist> besser"},
			},
			Schema: clusterv1beta1.VariableSchema{OpenAPIV3Schema: clusterv1beta1.JSONSchemaProps{
				Type: "string", Default: &apiextensionsv1.JSON{Raw: []byte(`"m6i.large"`)},
				XMetadata: &clusterv1beta1.VariableSchemaMetadata{Labels: map[string]string{"in": "the schema"}},
			}},
		},
		{
			Name: "sizes", Required: false,
			Schema: clusterv1beta1.VariableSchema{OpenAPIV3Schema: clusterv1beta1.JSONSchemaProps{
				Type: "array", UniqueItems: true, Items: &clusterv1beta1.JSONSchemaProps{XIntOrString: true},
			}},
		},
	}
}

func generateUpgradePlan(q *runtimehooksv1.GenerateUpgradePlanRequest, r *runtimehooksv1.GenerateUpgradePlanResponse) {
	r.ControlPlaneUpgrades = []runtimehooksv1.UpgradeStep{{Version: q.ToKubernetesVersion}}
	r.WorkersUpgrades = r.ControlPlaneUpgrades
}

// canUpdateMachine can make the Machine what is desired.
func canUpdateMachine(q *runtimehooksv1.CanUpdateMachineRequest, r *runtimehooksv1.CanUpdateMachineResponse) {
	r.MachinePatch = patch(map[string]any{"spec": q.Desired.Machine.Spec})
}

func canUpdateMachineSet(q *runtimehooksv1.CanUpdateMachineSetRequest, r *runtimehooksv1.CanUpdateMachineSetResponse) {
	r.MachineSetPatch = patch(map[string]any{"spec": map[string]any{"template": map[string]any{"spec": q.Desired.MachineSet.Spec.Template.Spec}}})
}

// patch returns a merge patch. What is in it was just decoded, so that it can be written again.
func patch(content any) runtimehooksv1.Patch {
	raw, err := json.Marshal(content)
	if err != nil {
		panic(err)
	}
	return runtimehooksv1.Patch{PatchType: runtimehooksv1.JSONMergePatchType, Patch: raw}
}
