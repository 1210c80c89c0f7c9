# Copyright The Hookgate Authors.
# SPDX-License-Identifier: Apache-2.0

"""The hooks. A service of the contract is a class; a hook that it does not implement stays unimplemented."""

import json
import re
from typing import Any

import grpc

from hookgate.hooks.v1alpha1 import common_pb2 as common
from hookgate.hooks.v1alpha1 import discovery_pb2 as discovery
from hookgate.hooks.v1alpha1 import discovery_pb2_grpc
from hookgate.hooks.v1alpha1 import in_place_update_pb2 as in_place
from hookgate.hooks.v1alpha1 import in_place_update_pb2_grpc
from hookgate.hooks.v1alpha1 import lifecycle_hooks_pb2 as lifecycle
from hookgate.hooks.v1alpha1 import lifecycle_hooks_pb2_grpc
from hookgate.hooks.v1alpha1 import topology_mutation_pb2 as topology
from hookgate.hooks.v1alpha1 import topology_mutation_pb2_grpc

SUCCESS, FAILURE = common.RESPONSE_STATUS_SUCCESS, common.RESPONSE_STATUS_FAILURE
ANNOTATION = "example.hookgate.dev/approved-minor"
VARIABLE = "imageRepository"
VERSION = re.compile(r"(v[0-9]+\.[0-9]+)\.[0-9]+([-+][0-9A-Za-z.+-]+)?")


class Discovery(discovery_pb2_grpc.DiscoveryServiceServicer):
    """Lists the handlers. A hook may have several; the request's handler field then selects one."""

    def Discovery(self, request: discovery.DiscoveryRequest, context: grpc.ServicerContext) -> discovery.DiscoveryResponse:
        handlers = {
            "approve-upgrade": "BeforeClusterUpgrade",
            "image-repository": "GeneratePatches",
            "image-repository-variables": "DiscoverVariables",
            "patch-in-place": "CanUpdateMachine",
        }
        return discovery.DiscoveryResponse(
            status=SUCCESS,
            handlers=[
                discovery.ExtensionHandler(
                    name=name,
                    request_hook=discovery.GroupVersionHook(api_version="hooks.runtime.cluster.x-k8s.io/v1alpha1", hook=hook),
                    timeout_seconds=10,
                    failure_policy=common.FAILURE_POLICY_FAIL,
                    cluster_api_version="v1beta2",  # the version of objects that is read here: the gateway converts others
                )
                for name, hook in handlers.items()
            ],
        )


class Lifecycle(lifecycle_hooks_pb2_grpc.LifecycleHooksServiceServicer):
    """Holds an upgrade to another minor version until the Cluster's annotation names it."""

    def BeforeClusterUpgrade(
        self, request: lifecycle.BeforeClusterUpgradeRequest, context: grpc.ServicerContext
    ) -> lifecycle.BeforeClusterUpgradeResponse:
        cluster = decode("cluster", request.cluster.raw, context)
        minors = []
        for member, version in (
            ("fromKubernetesVersion", request.from_kubernetes_version),
            ("toKubernetesVersion", request.to_kubernetes_version),
        ):
            minors.append(minor(version))
            if minors[-1] is None:
                return lifecycle.BeforeClusterUpgradeResponse(
                    status=FAILURE, message=f'{member} "{version}" is not a version like v1.36.1'
                )
        from_minor, to_minor = minors
        if to_minor in (from_minor, member_of(cluster, "metadata", "annotations", ANNOTATION)):
            return lifecycle.BeforeClusterUpgradeResponse(status=SUCCESS)
        # Blocking is not a failure: the caller asks again after this many seconds.
        return lifecycle.BeforeClusterUpgradeResponse(
            status=SUCCESS,
            retry_after_seconds=30,
            message=f"upgrade to {to_minor} waits for the annotation {ANNOTATION}: {to_minor}",
        )


class Topology(topology_mutation_pb2_grpc.TopologyMutationHooksServiceServicer):
    """Sets the image repository of control planes from a variable, and provides the variable's schema."""

    def GeneratePatches(
        self, request: topology.GeneratePatchesRequest, context: grpc.ServicerContext
    ) -> topology.GeneratePatchesResponse:
        response = topology.GeneratePatchesResponse(status=SUCCESS)
        for i, item in enumerate(request.items):
            template = decode(f"items[{i}].object", item.object.raw, context)
            if template.get("kind") != "KubeadmControlPlaneTemplate":
                continue
            # The variables of an item come last, because they win.
            values = {v.name: v.value.raw for v in [*request.variables, *item.variables]}
            repository = parse(f"variable {VARIABLE}", values[VARIABLE], context) if VARIABLE in values else ""
            if not isinstance(repository, str):
                return topology.GeneratePatchesResponse(status=FAILURE, message=f'variable "{VARIABLE}" is not a string')
            if repository:
                path = ["spec", "template", "spec", "kubeadmConfigSpec", "clusterConfiguration", "imageRepository"]
                patch = json.dumps([add(template, path, repository)]).encode()
                response.items.add(uid=item.uid, patch_type=common.PATCH_TYPE_JSON_PATCH, patch=patch)
        return response

    def DiscoverVariables(
        self, request: topology.DiscoverVariablesRequest, context: grpc.ServicerContext
    ) -> topology.DiscoverVariablesResponse:
        schema = {
            "type": "string",
            "description": "Registry and path that the images of Kubernetes are pulled from.",
            "minLength": 1,
            "example": "registry.example.com/kubernetes",
        }
        variable = topology.ClusterClassVariable(
            name=VARIABLE,
            required=False,  # a field with presence: to set it is not the same as to leave it out
            schema=topology.VariableSchema(open_api_v3_schema=common.JSON(raw=json.dumps(schema).encode())),
        )
        return topology.DiscoverVariablesResponse(status=SUCCESS, variables=[variable])


class InPlace(in_place_update_pb2_grpc.InPlaceUpdateHooksServiceServicer):
    """Offers to change the patch version of a Machine without replacing it."""

    def CanUpdateMachine(
        self, request: in_place.CanUpdateMachineRequest, context: grpc.ServicerContext
    ) -> in_place.CanUpdateMachineResponse:
        current = member_of(decode("current.machine", request.current.machine.raw, context), "spec", "version")
        desired = member_of(decode("desired.machine", request.desired.machine.raw, context), "spec", "version")
        response = in_place.CanUpdateMachineResponse(status=SUCCESS)
        if current != desired and minor(current) is not None and minor(current) == minor(desired):
            response.machine_patch.patch_type = common.PATCH_TYPE_JSON_MERGE_PATCH
            response.machine_patch.patch = json.dumps({"spec": {"version": desired}}).encode()
        return response


def parse(member: str, raw: bytes, context: grpc.ServicerContext) -> Any:
    """Reads raw JSON. Anything else is a mistake of the caller, which in gRPC is a status code, not an answer."""
    try:
        return json.loads(raw)
    except ValueError as error:
        context.abort(grpc.StatusCode.INVALID_ARGUMENT, f"{member}: {error}")


def decode(member: str, raw: bytes, context: grpc.ServicerContext) -> dict[str, Any]:
    """Reads a raw Kubernetes object."""
    value = parse(member, raw, context)
    if not isinstance(value, dict):
        context.abort(grpc.StatusCode.INVALID_ARGUMENT, f"{member}: not a JSON object")
    return value


def member_of(value: Any, *path: str) -> Any:
    """Returns the member at a path, or None if there is none."""
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def add(template: dict[str, Any], path: list[str], value: Any) -> dict[str, Any]:
    """Returns the one operation that puts value at path. JSON Patch adds no parents, so it begins at the first one missing."""
    depth = 1
    while depth < len(path) and isinstance(member_of(template, *path[:depth]), dict):
        depth += 1
    for name in reversed(path[depth:]):
        value = {name: value}
    return {"op": "add", "path": "/" + "/".join(path[:depth]), "value": value}  # no name here needs to be escaped


def minor(version: Any) -> str | None:
    """Returns the minor version, v1.36 of v1.36.1."""
    match = VERSION.fullmatch(version) if isinstance(version, str) else None
    return match[1] if match else None
