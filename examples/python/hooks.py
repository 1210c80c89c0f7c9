# Copyright The Hookgate Authors.
# SPDX-License-Identifier: Apache-2.0

"""The handlers. The type of a handler's parameter says which hook the handler is for. The name of the function is the
name of the handler."""

import json
import re

from hookgate import Answer, Extension, Patches, covers, done, fail, load, member, wait
from hookgate.hooks.v1alpha1 import (
    JSON,
    BeforeClusterUpgradeRequest,
    CanUpdateMachineRequest,
    CanUpdateMachineResponse,
    ClusterClassVariable,
    DiscoverVariablesRequest,
    DiscoverVariablesResponse,
    GeneratePatchesRequest,
    VariableSchema,
)

ANNOTATION = "example.hookgate.dev/approved-minor"
REPOSITORY = "/spec/template/spec/kubeadmConfigSpec/clusterConfiguration/imageRepository"
VERSION = re.compile(r"(v[0-9]+\.[0-9]+)\.[0-9]+([-+][0-9A-Za-z.+-]+)?")

extension = Extension()


@extension.handler
def approve_upgrade(request: BeforeClusterUpgradeRequest) -> Answer:
    """Holds an upgrade to another minor version until the Cluster's annotation names it."""
    cluster = load(request, "cluster")
    from_minor, to_minor = minor(request.from_kubernetes_version), minor(request.to_kubernetes_version)
    if not from_minor:
        return fail(f'fromKubernetesVersion "{request.from_kubernetes_version}" is not a version like v1.36.1')
    if not to_minor:
        return fail(f'toKubernetesVersion "{request.to_kubernetes_version}" is not a version like v1.36.1')
    if to_minor in (from_minor, member(cluster, "metadata", "annotations", ANNOTATION)):
        return done()
    # Blocking is not a failure: the caller asks again after this many seconds.
    return wait(30, f"upgrade to {to_minor} waits for the annotation {ANNOTATION}: {to_minor}")


@extension.handler
def image_repository(request: GeneratePatchesRequest) -> Answer:
    """Sets the image repository of control planes from a variable. The patches are made from what is changed here."""
    patches = Patches(request)
    for item in patches.items(kind="KubeadmControlPlaneTemplate"):
        repository = item.variable("imageRepository", str, default="")
        if repository:
            item.set(REPOSITORY, repository)
    return patches


@extension.handler
def image_repository_variables(_: DiscoverVariablesRequest) -> DiscoverVariablesResponse:
    """Provides the schema of the variable. The messages of the contract may be answered as they are."""
    schema = {
        "type": "string",
        "description": "Registry and path that the images of Kubernetes are pulled from.",
        "minLength": 1,
        "example": "registry.example.com/kubernetes",
    }
    variable = ClusterClassVariable(
        name="imageRepository",
        required=False,  # a field with presence: to set it is not the same as to leave it out
        schema=VariableSchema(open_api_v3_schema=JSON(raw=json.dumps(schema).encode())),
    )
    return DiscoverVariablesResponse(variables=[variable])


@extension.handler
def patch_in_place(request: CanUpdateMachineRequest) -> CanUpdateMachineResponse:
    """Offers to change the patch version of a Machine without replacing it."""
    current = minor(member(load(request, "current.machine"), "spec", "version"))
    desired = minor(member(load(request, "desired.machine"), "spec", "version"))
    return covers(request, machine=["/spec/version"] if current and current == desired else [])


def minor(version: object) -> str | None:
    """Returns the minor version, v1.36 of v1.36.1."""
    match = VERSION.fullmatch(version) if isinstance(version, str) else None
    return match[1] if match else None
