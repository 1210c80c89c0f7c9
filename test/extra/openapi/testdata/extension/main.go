// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Command extension is a Runtime Extension that was written by the OpenAPI document alone: what it knows of the hooks is the
// package that oapi-codegen made of it.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"example.com/extension/hooks"
)

// extension answers the hooks below. The embedded interface has the others, which are never called.
type extension struct{ hooks.StrictServerInterface }

const apiVersion = "hooks.runtime.cluster.x-k8s.io/v1alpha1"

func (extension) V1alpha1Discovery(context.Context, hooks.V1alpha1DiscoveryRequestObject) (hooks.V1alpha1DiscoveryResponseObject, error) {
	handler := func(name, hook string) hooks.HooksV1alpha1ExtensionHandler {
		return hooks.HooksV1alpha1ExtensionHandler{
			Name: name, RequestHook: hooks.HooksV1alpha1GroupVersionHook{ApiVersion: apiVersion, Hook: hook}, TimeoutSeconds: new(int32(5)),
		}
	}
	return hooks.V1alpha1Discovery200JSONResponse{Body: hooks.HooksV1alpha1DiscoveryResponse{
		Status: hooks.HooksV1alpha1ResponseStatusSuccess,
		Handlers: &[]hooks.HooksV1alpha1ExtensionHandler{
			handler("approve-upgrade", "BeforeClusterUpgrade"),
			handler("image-repository", "GeneratePatches"),
			handler("image-repository-variables", "DiscoverVariables"),
			handler("patch-in-place", "CanUpdateMachine"),
		},
	}}, nil
}

// V1alpha1BeforeClusterUpgradeHandler holds an upgrade until its version has been approved.
func (extension) V1alpha1BeforeClusterUpgradeHandler(_ context.Context, r hooks.V1alpha1BeforeClusterUpgradeHandlerRequestObject) (hooks.V1alpha1BeforeClusterUpgradeHandlerResponseObject, error) {
	var approved string
	if m := r.Body.Cluster.Metadata; m != nil && m.Annotations != nil {
		approved = (*m.Annotations)["example.com/approved-version"]
	}
	answer := hooks.HooksV1alpha1BeforeClusterUpgradeResponse{Status: hooks.HooksV1alpha1ResponseStatusSuccess}
	if approved != r.Body.ToKubernetesVersion {
		answer.RetryAfterSeconds = 30
		answer.Message = new(r.Name + " waits for the approval of " + r.Body.ToKubernetesVersion)
	}
	return hooks.V1alpha1BeforeClusterUpgradeHandler200JSONResponse{Body: answer}, nil
}

// V1alpha1GeneratePatchesHandler labels every template with the class of the Cluster's first variable.
func (extension) V1alpha1GeneratePatchesHandler(_ context.Context, r hooks.V1alpha1GeneratePatchesHandlerRequestObject) (hooks.V1alpha1GeneratePatchesHandlerResponseObject, error) {
	var patches []hooks.HooksV1alpha1GeneratePatchesResponseItem
	if r.Body.Items != nil {
		for _, item := range *r.Body.Items {
			patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": map[string]any{
				"kind": item.Object["kind"], "holder": item.HolderReference.Name,
			}}})
			if err != nil {
				return nil, err
			}
			patches = append(patches, hooks.HooksV1alpha1GeneratePatchesResponseItem{Uid: item.Uid, PatchType: hooks.JSONMergePatch, Patch: &patch})
		}
	}
	return hooks.V1alpha1GeneratePatchesHandler200JSONResponse{Body: hooks.HooksV1alpha1GeneratePatchesResponse{
		Status: hooks.HooksV1alpha1ResponseStatusSuccess, Items: &patches,
	}}, nil
}

func (extension) V1alpha1DiscoverVariablesHandler(context.Context, hooks.V1alpha1DiscoverVariablesHandlerRequestObject) (hooks.V1alpha1DiscoverVariablesHandlerResponseObject, error) {
	return hooks.V1alpha1DiscoverVariablesHandler200JSONResponse{Body: hooks.HooksV1alpha1DiscoverVariablesResponse{
		Status: hooks.HooksV1alpha1ResponseStatusSuccess,
		Variables: &[]hooks.ClusterV1beta2ClusterClassVariable{{
			Name: "imageRepository",
			Schema: hooks.ClusterV1beta2VariableSchema{OpenAPIV3Schema: hooks.ClusterV1beta2JSONSchemaProps{
				Type: new(hooks.String), MinLength: new(int64(1)),
			}},
		}},
	}}, nil
}

// V1alpha1CanUpdateMachineHandler offers to change the patch version of a Machine in place.
func (extension) V1alpha1CanUpdateMachineHandler(_ context.Context, r hooks.V1alpha1CanUpdateMachineHandlerRequestObject) (hooks.V1alpha1CanUpdateMachineHandlerResponseObject, error) {
	answer := hooks.HooksV1alpha1CanUpdateMachineResponse{Status: hooks.HooksV1alpha1ResponseStatusSuccess}
	current, desired := r.Body.Current.Machine.Spec.Version, r.Body.Desired.Machine.Spec.Version
	if current != nil && desired != nil && minor(*current) == minor(*desired) {
		answer.MachinePatch = &hooks.HooksV1alpha1Patch{
			PatchType: hooks.JSONMergePatch, Patch: fmt.Appendf(nil, `{"spec":{"version":%q}}`, *desired),
		}
	}
	return hooks.V1alpha1CanUpdateMachineHandler200JSONResponse{Body: answer}, nil
}

func minor(version string) string { return version[:max(strings.LastIndex(version, "."), 0)] }

func main() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	server := &http.Server{
		Handler:           hooks.Handler(hooks.NewStrictHandler(extension{}, nil)),
		ReadHeaderTimeout: 10 * time.Second,
	}
	fmt.Println("listening on", listener.Addr())
	log.Fatal(server.ServeTLS(listener, os.Args[1], os.Args[2]))
}
