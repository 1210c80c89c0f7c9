# Copyright The Hookgate Authors.
# SPDX-License-Identifier: Apache-2.0

"""What the layer knows about the contract: nothing but its descriptors, so that every version and group works alike."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any

from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

# The API groups of Hookgate's own packages, without their versions.
GROUPS = {
    "hookgate.hooks": "hooks.runtime.cluster.x-k8s.io",
    "hookgate.infrastructure": "infrastructure.hookgate.dev",
    "hookgate.machines": "hooks.machines.hookgate.dev",
}
DISCOVERY = "DiscoveryService"


@dataclass(frozen=True)
class Hook:
    """Describes one hook: an rpc of the contract, with the group and version that discovery states for it."""

    name: str
    api_version: str
    package: str
    service: str
    request: type[Message]
    response: type[Message]

    @property
    def is_discovery(self) -> bool:
        """Reports whether the rpc lists handlers, and so is none itself."""
        return self.service == f"{self.package}.{DISCOVERY}"

    def response_has(self, field: str) -> bool:
        """Reports whether the hook's response has a field."""
        return field in self.response.DESCRIPTOR.fields_by_name


def hook_of(request: type[Message], groups: Mapping[str, str] | None = None) -> Hook:
    """Returns the hook whose request is of this type. It raises a ValueError if there is none, or its group is unknown."""
    descriptor = request.DESCRIPTOR
    for service in descriptor.file.services_by_name.values():
        for method in service.methods:
            if method.input_type.full_name == descriptor.full_name:
                return _hook(method, request, groups or {})
    raise ValueError(
        f"{descriptor.full_name} is the request of no hook: {descriptor.file.name} has no rpc that takes it. "
        "Take the request of a hook, such as BeforeClusterCreateRequest"
    )


def discovery_of(hook: Hook) -> Hook:
    """Returns the rpc that lists the handlers of a hook's package. It raises a ValueError if there is none."""
    folder = (hook.request.__module__ or "").rpartition(".")[0]
    if folder:  # in Hookgate's packages, discovery has a module of its own, which may not be loaded yet
        with suppress(ModuleNotFoundError):
            import_module(f"{folder}.discovery_pb2")
    try:
        method: Any = hook.request.DESCRIPTOR.file.pool.FindServiceByName(f"{hook.package}.{DISCOVERY}").methods[0]
    except (KeyError, IndexError):
        raise ValueError(
            f"the package {hook.package} has no {DISCOVERY}, so no gateway finds the handlers of {hook.name}: "
            "add the service to its protos, and import its module"
        ) from None
    found = _hook(method, GetMessageClass(method.input_type), {hook.package: hook.api_version.split("/")[0]})
    if not found.response_has("handlers"):
        raise ValueError(f"{found.response.DESCRIPTOR.full_name} has no handlers, and is to list them: add them to its proto")
    return found


def _hook(method: Any, request: type[Message], groups: Mapping[str, str]) -> Hook:
    package = method.containing_service.file.package
    stem, _, version = package.rpartition(".")
    group = groups.get(package) or groups.get(stem) or GROUPS.get(stem)
    if group is None:
        raise ValueError(
            f"the API group of the package {package} is not known: state it, as in "
            f'Extension(groups={{"{package}": "hooks.acme.example"}})'
        )
    response = GetMessageClass(method.output_type)
    fields = response.DESCRIPTOR.fields_by_name
    if not all(name in fields for name in ("status", "message")) or fields["status"].enum_type is None:
        raise ValueError(
            f"{response.DESCRIPTOR.full_name} has no status and message, which every answer has: add them to its proto"
        )
    return Hook(
        name=method.name,
        api_version=f"{group}/{version}",
        package=package,
        service=method.containing_service.full_name,
        request=request,
        response=response,
    )


def is_raw(descriptor: Any) -> bool:
    """Reports whether a message is JSON as text: RawExtension, or JSON."""
    return descriptor is not None and descriptor.name in ("RawExtension", "JSON") and [f.name for f in descriptor.fields] == ["raw"]


def is_map(field: Any) -> bool:
    """Reports whether a field is a map."""
    return field.message_type is not None and bool(field.message_type.GetOptions().map_entry)


@cache  # a contract has a few hundred messages
def members(descriptor: Any) -> dict[str, Any]:
    """Returns the fields of a message by their names in the contract's JSON."""
    return {field.json_name: field for field in descriptor.fields if field.name != "unknown_members"}


@cache
def enum_texts(enum: Any) -> dict[str, int]:
    """Returns the values of an enum by their texts in the contract's JSON: FAILURE_POLICY_IGNORE is "Ignore"."""
    texts = {}
    for value in enum.values:
        words = value.name.split("_")
        for n in range(len(words), 0, -1):  # words of the enum's name
            if "".join(words[:n]).lower() == enum.name.lower():
                words = words[n:]
                break
        texts["".join(word if word == "JSON" else word.capitalize() for word in words)] = value.number
    return texts


def enum_value(message: Any, field: str, text: str) -> int:
    """Returns the number of an enum's value in a field of a message, by its text in JSON."""
    return enum_texts(message.DESCRIPTOR.fields_by_name[field].enum_type)[text]
