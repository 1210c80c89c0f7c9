// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"google.golang.org/protobuf/reflect/protoreflect"

	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
)

// always reports whether Cluster API writes a member even when it is empty, because its json tag has no omitempty. All
// others are left out when they are empty. A test compares with Cluster API's types, in both directions.
func always(message protoreflect.Name, member string) bool {
	switch member {
	case "status", "retryAfterSeconds": // of every answer that has them
		return true
	}
	switch message {
	case "BeforeClusterCreateRequest", "AfterControlPlaneInitializedRequest", "BeforeClusterUpgradeRequest",
		"BeforeControlPlaneUpgradeRequest", "AfterControlPlaneUpgradeRequest", "BeforeWorkersUpgradeRequest",
		"AfterWorkersUpgradeRequest", "AfterClusterUpgradeRequest", "BeforeClusterDeleteRequest":
		switch member {
		case "cluster", "fromKubernetesVersion", "toKubernetesVersion", "kubernetesVersion":
			return true
		}
	case "GeneratePatchesRequest", "ValidateTopologyRequest":
		return member == "items"
	case "GeneratePatchesRequestItem", "ValidateTopologyRequestItem":
		return member == "uid" || member == "holderReference" || member == "object"
	case "GeneratePatchesResponseItem":
		return member == "uid" || member == "patchType" || member == "patch"
	case "HolderReference", "GroupVersionHook":
		return true
	case "Variable":
		return member == "name" || member == "value"
	case "ExtensionHandler":
		return member == "name" || member == "requestHook"
	}
	return false
}

// enumText returns Cluster API's strings for the values of an enum, by number; 0 is always the absent value. Every
// version of the contract has types of its own for its enums, with the same names.
func enumText(enum protoreflect.Name) []string {
	switch enum {
	case hooksv1alpha1.ResponseStatus(0).Descriptor().Name():
		return []string{
			hooksv1alpha1.ResponseStatus_RESPONSE_STATUS_SUCCESS: "Success",
			hooksv1alpha1.ResponseStatus_RESPONSE_STATUS_FAILURE: "Failure",
		}
	case hooksv1alpha1.FailurePolicy(0).Descriptor().Name():
		return []string{
			hooksv1alpha1.FailurePolicy_FAILURE_POLICY_IGNORE: "Ignore",
			hooksv1alpha1.FailurePolicy_FAILURE_POLICY_FAIL:   "Fail",
		}
	case hooksv1alpha1.PatchType(0).Descriptor().Name():
		return []string{
			hooksv1alpha1.PatchType_PATCH_TYPE_JSON_PATCH:       "JSONPatch",
			hooksv1alpha1.PatchType_PATCH_TYPE_JSON_MERGE_PATCH: "JSONMergePatch",
		}
	}
	return nil
}
