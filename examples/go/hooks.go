// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"time"

	hooks "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/sdk"
)

const (
	annotation = "example.hookgate.dev/approved-minor"
	variable   = "imageRepository"
	repository = "/spec/template/spec/kubeadmConfigSpec/clusterConfiguration/imageRepository"
)

// approveUpgrade holds an upgrade to another minor version until the Cluster's annotation names it.
func approveUpgrade(_ context.Context, in *hooks.BeforeClusterUpgradeRequest) (sdk.Answer, error) {
	var cluster struct {
		Metadata struct{ Annotations map[string]string }
	}
	from, errFrom := minor("fromKubernetesVersion", in.GetFromKubernetesVersion())
	to, errTo := minor("toKubernetesVersion", in.GetToKubernetesVersion())
	if err := cmp.Or(sdk.Load(in, "cluster", &cluster), errFrom, errTo); err != nil {
		return nil, err
	}
	if from == to || cluster.Metadata.Annotations[annotation] == to {
		return sdk.Done(), nil
	}
	return sdk.Wait(30*time.Second, fmt.Sprintf("upgrade to %s waits for the annotation %s: %s", to, annotation, to)), nil
}

// imageRepository sets the image repository of control planes from a variable.
func imageRepository(_ context.Context, in *hooks.GeneratePatchesRequest) (sdk.Answer, error) {
	patches := sdk.NewPatches(in)
	for item := range patches.Items(sdk.Match{Kind: "KubeadmControlPlaneTemplate"}) {
		value, err := sdk.Variable(item, variable, "")
		if err != nil {
			return nil, err
		}
		if value != "" {
			item.Set(repository, value)
		}
	}
	return patches, nil
}

// imageRepositoryVariables provides the schema of the variable.
func imageRepositoryVariables(
	context.Context, *hooks.DiscoverVariablesRequest,
) (*hooks.DiscoverVariablesResponse, error) {
	schema := `{"type":"string","description":"Registry and path that the images of Kubernetes are pulled from.",` +
		`"minLength":1,"example":"registry.example.com/kubernetes"}`
	return &hooks.DiscoverVariablesResponse{Variables: []*hooks.ClusterClassVariable{{
		Name: variable, Required: new(false),
		Schema: &hooks.VariableSchema{OpenApiV3Schema: &hooks.JSON{Raw: []byte(schema)}},
	}}}, nil
}

// patchInPlace offers to change the patch version of a Machine without replacing it.
func patchInPlace(_ context.Context, in *hooks.CanUpdateMachineRequest) (*hooks.CanUpdateMachineResponse, error) {
	var current, desired struct{ Spec struct{ Version string } }
	err := cmp.Or(sdk.Load(in, "current.machine", &current), sdk.Load(in, "desired.machine", &desired))
	if err != nil {
		return nil, err
	}
	before, errBefore := minor("current", current.Spec.Version)
	after, errAfter := minor("desired", desired.Spec.Version)
	paths := sdk.Paths{}
	if cmp.Or(errBefore, errAfter) == nil && before == after {
		paths["machine"] = []string{"/spec/version"}
	}
	return sdk.Covers[*hooks.CanUpdateMachineResponse](in, paths)
}

var version = regexp.MustCompile(`^(v[0-9]+\.[0-9]+)\.[0-9]+([-+][0-9A-Za-z.+-]+)?$`)

// minor returns the minor version of a member with a version, v1.36 of v1.36.1.
func minor(member, value string) (string, error) {
	m := version.FindStringSubmatch(value)
	if m == nil {
		return "", sdk.Failf(`%s "%s" is not a version like v1.36.1`, member, value)
	}
	return m[1], nil
}
