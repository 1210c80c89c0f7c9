// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
)

// The types here have the members that this extension needs. Requests have many more, and encoding/json skips them: an
// extension does not have to know all of Cluster API.

// The two statuses that an answer can have.
const (
	success = "Success"
	failure = "Failure"
)

// response holds the members that all answers share, and those that each hook adds.
type response struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Status     string `json:"status"`
	Message    string `json:"message,omitempty"`

	RetryAfterSeconds int                  `json:"retryAfterSeconds,omitempty"` // of blocking hooks
	Handlers          []extensionHandler   `json:"handlers,omitempty"`          // of Discovery
	Items             []patchItem          `json:"items,omitempty"`             // of GeneratePatches
	Variables         []variableDefinition `json:"variables,omitempty"`         // of DiscoverVariables
}

// Discovery: "which handlers do you have?" It is the first call to every extension.

type discoveryRequest struct{}

type extensionHandler struct {
	Name           string      `json:"name"`
	RequestHook    requestHook `json:"requestHook"`
	TimeoutSeconds int         `json:"timeoutSeconds,omitempty"`
	FailurePolicy  string      `json:"failurePolicy,omitempty"`
}

type requestHook struct {
	APIVersion string `json:"apiVersion"`
	Hook       string `json:"hook"`
}

func discovery(discoveryRequest) response {
	return response{Status: success, Handlers: []extensionHandler{
		{
			Name: "approval", RequestHook: requestHook{apiVersion, "BeforeClusterCreate"},
			TimeoutSeconds: 5, FailurePolicy: "Fail",
		},
		{
			Name: "node-image", RequestHook: requestHook{apiVersion, "GeneratePatches"},
			TimeoutSeconds: 5, FailurePolicy: "Fail",
		},
		{
			Name: "node-image-variables", RequestHook: requestHook{apiVersion, "DiscoverVariables"},
			TimeoutSeconds: 5, FailurePolicy: "Fail",
		},
	}}
}

// BeforeClusterCreate: "may this Cluster be created?" This extension makes Cluster API wait until the Cluster is
// approved.

const approvalAnnotation = "example.com/approved-by"

type beforeClusterCreateRequest struct {
	Settings map[string]string `json:"settings"` // from the ExtensionConfig
	Cluster  struct {
		Metadata struct {
			Name        string            `json:"name"`
			Namespace   string            `json:"namespace"`
			Annotations map[string]string `json:"annotations"`
		} `json:"metadata"`
	} `json:"cluster"`
}

func beforeClusterCreate(request beforeClusterCreateRequest) response {
	cluster := request.Cluster.Metadata
	if by := cluster.Annotations[approvalAnnotation]; by != "" {
		return response{
			Status:  success,
			Message: fmt.Sprintf("Cluster %s/%s is approved by %s", cluster.Namespace, cluster.Name, by),
		}
	}
	// With retryAfterSeconds the answer means "not yet": Cluster API calls the hook again after that time. A Failure
	// would mean that something is wrong.
	message := fmt.Sprintf("Cluster %s/%s waits for the annotation %s",
		cluster.Namespace, cluster.Name, approvalAnnotation)
	if contact := request.Settings["contact"]; contact != "" {
		message += "; ask " + contact
	}
	return response{Status: success, Message: message, RetryAfterSeconds: 30}
}

// GeneratePatches: "how shall these templates be changed?" This extension sets the image of nodes that run in Docker.

const imageVariable = "nodeImage"

type generatePatchesRequest struct {
	Variables []variable `json:"variables"`
	Items     []struct {
		UID    string `json:"uid"`
		Object struct {
			Kind string `json:"kind"`
		} `json:"object"`
	} `json:"items"`
}

type variable struct {
	Name  string          `json:"name"`
	Value json.RawMessage `json:"value"`
}

type patchItem struct {
	UID       string `json:"uid"` // of the request's item
	PatchType string `json:"patchType"`
	Patch     []byte `json:"patch"` // encoding/json makes it base64, as the hook wants it
}

type patchOperation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value string `json:"value"`
}

// generatePatches must give the same answer to the same request: Cluster API calls it again and again.
func generatePatches(request generatePatchesRequest) response {
	var image string
	for _, v := range request.Variables {
		if v.Name != imageVariable {
			continue
		}
		if err := json.Unmarshal(v.Value, &image); err != nil {
			return response{Status: failure, Message: fmt.Sprintf("variable %s: %v", imageVariable, err)}
		}
	}
	answer := response{Status: success}
	if image == "" {
		return answer // nothing to change
	}
	for _, item := range request.Items {
		if item.Object.Kind != "DockerMachineTemplate" {
			continue
		}
		patch, err := json.Marshal([]patchOperation{{Op: "add", Path: "/spec/template/spec/customImage", Value: image}})
		if err != nil {
			return response{Status: failure, Message: err.Error()}
		}
		answer.Items = append(answer.Items, patchItem{UID: item.UID, PatchType: "JSONPatch", Patch: patch})
	}
	return answer
}

// DiscoverVariables: "which variables do your patches need?" Clusters can then set them, and Cluster API checks the
// values.

type discoverVariablesRequest struct{}

type variableDefinition struct {
	Name     string         `json:"name"`
	Required bool           `json:"required"`
	Schema   variableSchema `json:"schema"`
}

type variableSchema struct {
	OpenAPIV3Schema map[string]any `json:"openAPIV3Schema"`
}

func discoverVariables(discoverVariablesRequest) response {
	return response{Status: success, Variables: []variableDefinition{{
		Name:     imageVariable,
		Required: false,
		Schema: variableSchema{OpenAPIV3Schema: map[string]any{
			"type":        "string",
			"description": "The container image of nodes that run in Docker.",
			"example":     "kindest/node:v1.34.0",
			"minLength":   1,
		}},
	}}}
}
