# Copyright The Hookgate Authors.
# SPDX-License-Identifier: Apache-2.0

"""The answer of CanUpdateMachine and CanUpdateMachineSet: which changes an extension makes in place."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, overload

from google.protobuf.message import Message

from hookgate import pointers
from hookgate.answers import Failure, new_response
from hookgate.contract import enum_value, hook_of, members
from hookgate.objects import encode, load

if TYPE_CHECKING:
    from hookgate.hooks.v1alpha1 import (
        CanUpdateMachineRequest,
        CanUpdateMachineResponse,
        CanUpdateMachineSetRequest,
        CanUpdateMachineSetResponse,
    )


@overload
def covers(
    request: "CanUpdateMachineRequest",
    *,
    machine: Iterable[str] = (),
    infrastructure_machine: Iterable[str] = (),
    bootstrap_config: Iterable[str] = (),
) -> "CanUpdateMachineResponse": ...
@overload
def covers(
    request: "CanUpdateMachineSetRequest",
    *,
    machine_set: Iterable[str] = (),
    infrastructure_machine_template: Iterable[str] = (),
    bootstrap_config_template: Iterable[str] = (),
) -> "CanUpdateMachineSetResponse": ...
@overload
def covers(request: Message, **paths: Iterable[str]) -> Any: ...
def covers(request: Any, **paths: Iterable[str]) -> Any:
    """Returns a response that covers the changes at JSON pointers: covers(request, machine=["/spec/version"]).

    For each object it has a merge patch with those of the places in which desired differs from current, and none if
    there are none. A list is covered as a whole. The result is the hook's response message, to be answered as it is or
    with more set in it, such as affects_availability.
    """
    hook = hook_of(type(request))
    if "current" not in request.DESCRIPTOR.fields_by_name:
        raise ValueError(f"covers: {hook.name} is not an in-place hook: it has no current objects")
    response = new_response(hook, "Success")
    objects = members(request.current.DESCRIPTOR)
    names = {field.name: name for name, field in objects.items()}
    for field, covered in paths.items():
        if field not in names:
            raise ValueError(f"covers: {hook.name} has no {field}, but {', '.join(names)}")
        if isinstance(covered, str):
            raise ValueError(f'covers: {field} takes a list of pointers: ["{covered}"]')
        if not request.current.HasField(field) and not request.desired.HasField(field):
            continue
        current, desired = load(request, f"current.{names[field]}"), load(request, f"desired.{names[field]}")
        document: dict[str, Any] = {}
        for pointer in covered:
            _cover(document, current, desired, pointer, field)
        if document:
            patch = getattr(response, f"{field}_patch")
            patch.patch_type = enum_value(patch, "patch_type", "JSONMergePatch")
            patch.patch = encode(document)
    return response


def _cover(document: dict[str, Any], current: Any, desired: Any, pointer: str, field: str) -> None:
    """Adds the difference at a pointer to a merge patch."""
    names = pointers.parse(pointer)
    if not names:
        raise ValueError(f"covers: a pointer for {field} is empty: name what is covered, such as /spec")
    for i, name in enumerate(names):
        if isinstance(current, list) or isinstance(desired, list):
            place = "".join("/" + pointers.escape(n) for n in names[:i])
            raise Failure(f'covers: {field}: "{place}" is a list: cover the whole list, not "{pointer}"')
        current = current.get(name) if isinstance(current, dict) else None
        desired = desired.get(name) if isinstance(desired, dict) else None
    if pointers.equal(current, desired):
        return
    for name in names[:-1]:
        document = document.setdefault(name, {})
        if not isinstance(document, dict):
            return  # another pointer covers all of this
    document[names[-1]] = _merge_patch(current, desired)


def _merge_patch(current: Any, desired: Any) -> Any:
    """Returns the merge patch (RFC 7386) that makes desired of current. It cannot tell null from what is missing."""
    if not isinstance(current, dict) or not isinstance(desired, dict):
        return desired
    changed = {n: _merge_patch(current.get(n), v) for n, v in desired.items() if not pointers.equal(current.get(n), v)}
    return {n: None for n, v in current.items() if n not in desired and v is not None} | changed
