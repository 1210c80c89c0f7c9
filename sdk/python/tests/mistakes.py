# Copyright The Hookgate Authors.
# SPDX-License-Identifier: Apache-2.0

"""Mistakes that mypy finds: `mypy --strict` fails if one of these is none."""

from hookgate import Answer, Extension, Patches, covers, done, setting, wait
from hookgate.hooks.v1alpha1 import (
    BeforeClusterCreateRequest,
    CanUpdateMachineRequest,
    CanUpdateMachineSetResponse,
    GeneratePatchesRequest,
)

extension = Extension()


@extension.handler  # type: ignore[type-var]
def returns_nothing(request: BeforeClusterCreateRequest) -> None:
    """A handler that answers nothing."""


@extension.handler  # type: ignore[type-var]
async def awaits_nothing(request: BeforeClusterCreateRequest) -> None:
    """A coroutine that answers nothing."""


@extension.handler(timout=3)  # type: ignore[call-overload, untyped-decorator]
def misspelt(request: BeforeClusterCreateRequest) -> Answer:
    """A handler with an option that is not there."""
    return wait("30", "m")  # type: ignore[arg-type]


@extension.handler
def unknown_members(request: BeforeClusterCreateRequest) -> Answer:
    """A handler that reads what the contract does not have."""
    request.clutser  # type: ignore[attr-defined]  # noqa: B018
    retries: str = setting(request, "retries", int, 3)  # type: ignore[assignment]
    return wait(30, retries)


@extension.handler
def patches(request: GeneratePatchesRequest) -> Answer:
    """A handler that takes a variable for another type."""
    for item in Patches(request).items():
        number: int = item.variable("v", str)  # type: ignore[assignment]
        item.set(number, 1)  # type: ignore[arg-type]
    return done()


@extension.handler
def in_place(request: CanUpdateMachineRequest) -> CanUpdateMachineSetResponse:
    """A handler that answers for another hook."""
    return covers(request, machine=["/spec"])  # type: ignore[return-value]


extension.serve("127.0.0.1:9090", tls_crt="x")  # type: ignore[call-arg]
