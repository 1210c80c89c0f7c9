// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
)

const (
	success = hooksv1alpha1.ResponseStatus_RESPONSE_STATUS_SUCCESS
	failure = hooksv1alpha1.ResponseStatus_RESPONSE_STATUS_FAILURE

	annotation = "example.hookgate.dev/approved-minor"
	variable   = "imageRepository"
)

// discovery lists the handlers. A hook may have several; the request's handler field then selects one.
type discovery struct {
	hooksv1alpha1.UnimplementedDiscoveryServiceServer
}

func (discovery) Discovery(context.Context, *hooksv1alpha1.DiscoveryRequest) (*hooksv1alpha1.DiscoveryResponse, error) {
	handler := func(name, hook string) *hooksv1alpha1.ExtensionHandler {
		return &hooksv1alpha1.ExtensionHandler{
			Name: name,
			RequestHook: &hooksv1alpha1.GroupVersionHook{
				ApiVersion: "hooks.runtime.cluster.x-k8s.io/v1alpha1", Hook: hook,
			},
			TimeoutSeconds:    proto.Int32(10),
			FailurePolicy:     hooksv1alpha1.FailurePolicy_FAILURE_POLICY_FAIL,
			ClusterApiVersion: "v1beta2", // of the objects that are read here: the gateway converts others
		}
	}
	return &hooksv1alpha1.DiscoveryResponse{Status: success, Handlers: []*hooksv1alpha1.ExtensionHandler{
		handler("approve-upgrade", "BeforeClusterUpgrade"),
		handler("image-repository", "GeneratePatches"),
		handler("image-repository-variables", "DiscoverVariables"),
		handler("patch-in-place", "CanUpdateMachine"),
	}}, nil
}

// lifecycle holds an upgrade to another minor version until the Cluster's annotation names it. Hooks that it does not
// implement stay unimplemented.
type lifecycle struct {
	hooksv1alpha1.UnimplementedLifecycleHooksServiceServer
}

func (lifecycle) BeforeClusterUpgrade(
	_ context.Context, in *hooksv1alpha1.BeforeClusterUpgradeRequest,
) (*hooksv1alpha1.BeforeClusterUpgradeResponse, error) {
	var cluster struct {
		Metadata struct{ Annotations map[string]string }
	}
	if err := decode("cluster", in.GetCluster().GetRaw(), &cluster); err != nil {
		return nil, err
	}
	from, ok := minor(in.GetFromKubernetesVersion())
	if !ok {
		return notAVersion("fromKubernetesVersion", in.GetFromKubernetesVersion()), nil
	}
	to, ok := minor(in.GetToKubernetesVersion())
	if !ok {
		return notAVersion("toKubernetesVersion", in.GetToKubernetesVersion()), nil
	}
	if from == to || cluster.Metadata.Annotations[annotation] == to {
		return &hooksv1alpha1.BeforeClusterUpgradeResponse{Status: success}, nil
	}
	// Blocking is not a failure: the caller asks again after this many seconds.
	return &hooksv1alpha1.BeforeClusterUpgradeResponse{
		Status: success, RetryAfterSeconds: 30,
		Message: fmt.Sprintf("upgrade to %s waits for the annotation %s: %s", to, annotation, to),
	}, nil
}

func notAVersion(member, value string) *hooksv1alpha1.BeforeClusterUpgradeResponse {
	return &hooksv1alpha1.BeforeClusterUpgradeResponse{
		Status: failure, Message: fmt.Sprintf(`%s "%s" is not a version like v1.36.1`, member, value),
	}
}

// topology sets the image repository of control planes from a variable, and provides the variable's schema.
type topology struct {
	hooksv1alpha1.UnimplementedTopologyMutationHooksServiceServer
}

func (topology) GeneratePatches(
	_ context.Context, in *hooksv1alpha1.GeneratePatchesRequest,
) (*hooksv1alpha1.GeneratePatchesResponse, error) {
	out := &hooksv1alpha1.GeneratePatchesResponse{Status: success}
	for i, item := range in.GetItems() {
		var template map[string]any
		if err := decode(fmt.Sprintf("items[%d].object", i), item.GetObject().GetRaw(), &template); err != nil {
			return nil, err
		}
		if template["kind"] != "KubeadmControlPlaneTemplate" {
			continue
		}
		// The variables of an item come last, because they win.
		var value any = ""
		for _, v := range slices.Concat(in.GetVariables(), item.GetVariables()) {
			if v.GetName() == variable {
				value = nil
				if err := decode("variable "+variable, v.GetValue().GetRaw(), &value); err != nil {
					return nil, err
				}
			}
		}
		repository, ok := value.(string)
		if !ok {
			return &hooksv1alpha1.GeneratePatchesResponse{
				Status: failure, Message: fmt.Sprintf(`variable "%s" is not a string`, variable),
			}, nil
		}
		if repository == "" {
			continue
		}
		patch, err := json.Marshal([]any{add(template, repository,
			"spec", "template", "spec", "kubeadmConfigSpec", "clusterConfiguration", "imageRepository")})
		if err != nil {
			return nil, err
		}
		out.Items = append(out.Items, &hooksv1alpha1.GeneratePatchesResponseItem{
			Uid: item.GetUid(), PatchType: hooksv1alpha1.PatchType_PATCH_TYPE_JSON_PATCH, Patch: patch,
		})
	}
	return out, nil
}

// add returns the one operation that puts value at path. JSON Patch adds no parents, so it begins at the first one
// missing.
func add(object map[string]any, value any, path ...string) map[string]any {
	there := 0
	for ; there < len(path)-1; there++ {
		child, ok := object[path[there]].(map[string]any)
		if !ok {
			break
		}
		object = child
	}
	for i := len(path) - 1; i > there; i-- {
		value = map[string]any{path[i]: value}
	}
	// No name here has a character that a JSON pointer escapes.
	return map[string]any{"op": "add", "path": "/" + strings.Join(path[:there+1], "/"), "value": value}
}

func (topology) DiscoverVariables(
	context.Context, *hooksv1alpha1.DiscoverVariablesRequest,
) (*hooksv1alpha1.DiscoverVariablesResponse, error) {
	schema := `{"type":"string","description":"Registry and path that the images of Kubernetes are pulled from.",` +
		`"minLength":1,"example":"registry.example.com/kubernetes"}`
	return &hooksv1alpha1.DiscoverVariablesResponse{Status: success, Variables: []*hooksv1alpha1.ClusterClassVariable{{
		Name: variable, Required: new(false),
		Schema: &hooksv1alpha1.VariableSchema{OpenApiV3Schema: &hooksv1alpha1.JSON{Raw: []byte(schema)}},
	}}}, nil
}

// inPlace offers to change the patch version of a Machine without replacing it.
type inPlace struct {
	hooksv1alpha1.UnimplementedInPlaceUpdateHooksServiceServer
}

func (inPlace) CanUpdateMachine(
	_ context.Context, in *hooksv1alpha1.CanUpdateMachineRequest,
) (*hooksv1alpha1.CanUpdateMachineResponse, error) {
	var current, desired struct {
		Spec struct{ Version string }
	}
	if err := decode("current.machine", in.GetCurrent().GetMachine().GetRaw(), &current); err != nil {
		return nil, err
	}
	if err := decode("desired.machine", in.GetDesired().GetMachine().GetRaw(), &desired); err != nil {
		return nil, err
	}
	out := &hooksv1alpha1.CanUpdateMachineResponse{Status: success}
	before, okBefore := minor(current.Spec.Version)
	after, okAfter := minor(desired.Spec.Version)
	if okBefore && okAfter && before == after && current.Spec.Version != desired.Spec.Version {
		patch, err := json.Marshal(map[string]any{"spec": map[string]any{"version": desired.Spec.Version}})
		if err != nil {
			return nil, err
		}
		out.MachinePatch = &hooksv1alpha1.Patch{PatchType: hooksv1alpha1.PatchType_PATCH_TYPE_JSON_MERGE_PATCH, Patch: patch}
	}
	return out, nil
}

// decode reads the needed members of a raw Kubernetes object. Anything else is a mistake of the caller, which in gRPC
// is a status code, not an answer.
func decode(member string, raw []byte, out any) error {
	if err := json.Unmarshal(raw, out); err != nil {
		return status.Errorf(codes.InvalidArgument, "%s: %v", member, err)
	}
	return nil
}

var version = regexp.MustCompile(`^(v[0-9]+\.[0-9]+)\.[0-9]+([-+][0-9A-Za-z.+-]+)?$`)

// minor returns the minor version, v1.36 of v1.36.1.
func minor(v string) (string, bool) {
	m := version.FindStringSubmatch(v)
	if m == nil {
		return "", false
	}
	return m[1], true
}
