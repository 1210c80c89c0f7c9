// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package samples

import (
	"fmt"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
)

// Response returns a full answer of the hook, Discovery too, apiVersion and kind included. It panics if there is no
// such hook.
func Response(hook string) runtimehooksv1.ResponseObject {
	var response runtimehooksv1.ResponseObject
	switch hook {
	case "Discovery":
		response = discovery()
	case "DiscoverVariables":
		response = discoverVariables()
	case "GeneratePatches":
		response = &runtimehooksv1.GeneratePatchesResponse{Items: []runtimehooksv1.GeneratePatchesResponseItem{
			{UID: "5f2c6a0e-0001", PatchType: runtimehooksv1.JSONPatchType, Patch: []byte(`[{"op":"add","path":"/spec/template/spec/instanceType","value":"m6i.large"}]`)},
			{UID: "5f2c6a0e-0002", PatchType: runtimehooksv1.JSONMergePatchType, Patch: []byte(`{"spec":{"template":{"spec":{"ami":{"id":"grün"}}}}}`)},
		}}
	case "ValidateTopology":
		response = &runtimehooksv1.ValidateTopologyResponse{}
	case "GenerateUpgradePlan":
		response = &runtimehooksv1.GenerateUpgradePlanResponse{
			ControlPlaneUpgrades: []runtimehooksv1.UpgradeStep{{Version: "v1.31.12"}, {Version: "v1.32.7"},
				{Version: "v1.33.4"}},
			WorkersUpgrades: []runtimehooksv1.UpgradeStep{{Version: "v1.33.4"}},
		}
	case "CanUpdateMachine":
		response = &canUpdateMachineResponse{runtimehooksv1.CanUpdateMachineResponse{
			MachinePatch:               patch(`[{"op":"replace","path":"/spec/version","value":"v1.33.4"}]`),
			InfrastructureMachinePatch: patch(`[{"op":"replace","path":"/spec/instanceType","value":"m6i.2xlarge"}]`),
			BootstrapConfigPatch:       patch(`[]`),
		}, new(false)}
	case "CanUpdateMachineSet":
		response = &canUpdateMachineSetResponse{runtimehooksv1.CanUpdateMachineSetResponse{
			MachineSetPatch:                    patch(`[{"op":"replace","path":"/spec/template/spec/version","value":"v1.33.4"}]`),
			InfrastructureMachineTemplatePatch: patch(`[{"op":"replace","path":"/spec/template/spec/instanceType","value":"m6i.xlarge"}]`),
			BootstrapConfigTemplatePatch:       patch(`[]`),
		}, new(true)}
	case "UpdateMachine":
		response = &runtimehooksv1.UpdateMachineResponse{CommonRetryResponse: runtimehooksv1.CommonRetryResponse{RetryAfterSeconds: 30}}
	default:
		response = lifecycleResponse(hook)
	}
	response.SetStatus(runtimehooksv1.ResponseStatusSuccess)
	response.SetMessage("grüß dich, \"world\" <&>")
	response.GetObjectKind().SetGroupVersionKind(runtimehooksv1.GroupVersion.WithKind(hook + "Response"))
	return response
}

func lifecycleResponse(hook string) runtimehooksv1.ResponseObject {
	retry := runtimehooksv1.CommonRetryResponse{RetryAfterSeconds: 10}
	switch hook {
	case "BeforeClusterCreate":
		return &runtimehooksv1.BeforeClusterCreateResponse{CommonRetryResponse: retry}
	case "AfterControlPlaneInitialized":
		return &runtimehooksv1.AfterControlPlaneInitializedResponse{}
	case "BeforeClusterUpgrade":
		return &runtimehooksv1.BeforeClusterUpgradeResponse{CommonRetryResponse: retry}
	case "BeforeControlPlaneUpgrade":
		return &runtimehooksv1.BeforeControlPlaneUpgradeResponse{CommonRetryResponse: retry}
	case "AfterControlPlaneUpgrade":
		return &runtimehooksv1.AfterControlPlaneUpgradeResponse{CommonRetryResponse: retry}
	case "BeforeWorkersUpgrade":
		return &runtimehooksv1.BeforeWorkersUpgradeResponse{CommonRetryResponse: retry}
	case "AfterWorkersUpgrade":
		return &runtimehooksv1.AfterWorkersUpgradeResponse{CommonRetryResponse: retry}
	case "AfterClusterUpgrade":
		return &runtimehooksv1.AfterClusterUpgradeResponse{CommonRetryResponse: retry}
	case "BeforeClusterDelete":
		return &runtimehooksv1.BeforeClusterDeleteResponse{CommonRetryResponse: retry}
	}
	panic(fmt.Sprintf("samples: no hook %q", hook))
}

func patch(text string) runtimehooksv1.Patch {
	return runtimehooksv1.Patch{PatchType: runtimehooksv1.JSONPatchType, Patch: []byte(text)}
}

func discovery() *runtimehooksv1.DiscoveryResponse {
	handler := func(name, hook string) runtimehooksv1.ExtensionHandler {
		return runtimehooksv1.ExtensionHandler{
			Name: name, RequestHook: runtimehooksv1.GroupVersionHook{APIVersion: runtimehooksv1.GroupVersion.String(),
				Hook: hook},
		}
	}
	all := handler("before-cluster-upgrade", "BeforeClusterUpgrade")
	all.TimeoutSeconds, all.FailurePolicy = new(int32(5)), new(runtimehooksv1.FailurePolicyIgnore)
	return &runtimehooksv1.DiscoveryResponse{Handlers: []runtimehooksv1.ExtensionHandler{all,
		handler("generate-patches", "GeneratePatches")}}
}

func discoverVariables() *runtimehooksv1.DiscoverVariablesResponse {
	return &runtimehooksv1.DiscoverVariablesResponse{Variables: []clusterv1.ClusterClassVariable{{
		Name: "replicas", Required: new(true),
		Schema: clusterv1.VariableSchema{OpenAPIV3Schema: clusterv1.JSONSchemaProps{
			Type: "integer", Minimum: new(int64(1)), Maximum: new(int64(9007199254740993)),
		}},
	}}}
}

// canUpdateMachineResponse and canUpdateMachineSetResponse have what Cluster API v1.15 adds to these answers.
type canUpdateMachineResponse struct {
	runtimehooksv1.CanUpdateMachineResponse `json:",inline"`

	AffectsAvailability *bool `json:"affectsAvailability,omitempty"`
}

type canUpdateMachineSetResponse struct {
	runtimehooksv1.CanUpdateMachineSetResponse `json:",inline"`

	AffectsAvailability *bool `json:"affectsAvailability,omitempty"`
}
