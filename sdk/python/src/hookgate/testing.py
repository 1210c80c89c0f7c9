# Copyright The Hookgate Authors.
# SPDX-License-Identifier: Apache-2.0

"""Tests of extensions: calls in the process, the patches of an answer, and the conformance checks."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from google.protobuf.message import Message

from hookgate import requests
from hookgate.contract import Hook, enum_value
from hookgate.objects import decode, load

if TYPE_CHECKING:
    from hookgate.extension import Extension

# How long the conformance checks may take, in seconds.
CHECK_LIMIT = 600


def call(
    extension: "Extension",
    request: "Message | Mapping[str, Any] | str | os.PathLike[str]",
    *,
    hook: str = "",
    handler: str = "",
    context: Any = None,
) -> Any:
    """Calls a handler in this process, as a gateway would, and returns the response message.

    request is a message, or the contract's JSON as a dict or in a file, like those of examples/requests. Its kind says
    which hook is meant, unless hook or handler does. context is passed to handlers that take one. What serve would
    answer with a gRPC status is raised as a StatusError.
    """
    if isinstance(request, Message):
        meant = _hook(extension, type(request).__name__.removesuffix("Request"), "", handler, type(request))
        new: Any = type(request).FromString(request.SerializeToString())
    else:
        value = request if isinstance(request, Mapping) else requests.read(request)
        kind = str(value.get("kind") or "")
        meant = _hook(extension, hook or kind.removesuffix("Request"), str(value.get("apiVersion") or ""), handler, None)
        new = requests.message(meant.request, value)
    if handler:
        new.handler = handler
    return extension.answer(meant, new, context)


def _hook(extension: "Extension", name: str, api_version: str, handler: str, request: type[Message] | None) -> Hook:
    """Returns the hook that a call is for."""
    hooks = list(extension.methods().values())
    if handler and not name:
        hooks = [h.hook for h in extension.handlers if h.name == handler]
    found = {
        hook.request: hook
        for hook in hooks
        if (not name or hook.name == name)
        and (not api_version or hook.api_version == api_version)
        and (request is None or hook.request is request)
    }
    if not name and not handler:
        found = {hook.request: hook for hook in found.values() if not hook.is_discovery}
    if len(found) != 1:
        known = ", ".join(hook.name for hook in extension.methods().values())
        raise ValueError(f'the request is for the hook "{name}", handler "{handler}": name one hook of the extension: {known}')
    return next(iter(found.values()))


def patches(response: Any) -> dict[str, Any]:
    """Returns the patches of an answer, decoded: of GeneratePatches by uid, of an in-place hook by the name of the object."""
    if "items" in response.DESCRIPTOR.fields_by_name:
        return {item.uid: decode(item.patch, f"the patch of {item.uid}") for item in response.items}
    fields = [f.name for f in response.DESCRIPTOR.fields if f.name.endswith("_patch") and response.HasField(f.name)]
    return {name.removesuffix("_patch"): decode(getattr(response, name).patch, name) for name in fields}


def patched(request: Any, response: Any) -> dict[str, Any]:
    """Returns the objects of a request with the patches of an answer applied: of GeneratePatches all templates by uid, of
    an in-place hook the current objects that are patched, by name."""
    if "items" in response.DESCRIPTOR.fields_by_name:
        objects = {item.uid: load(request, f"items[{i}].object") for i, item in enumerate(request.items)}
        for item in response.items:
            objects[item.uid] = _apply(objects[item.uid], item)
        return objects
    objects = {}
    for name in patches(response):
        member = request.current.DESCRIPTOR.fields_by_name[name].json_name
        objects[name] = _apply(load(request, f"current.{member}"), getattr(response, f"{name}_patch"))
    return objects


def _apply(target: Any, patch: Any) -> Any:
    document = decode(patch.patch, "patch")
    if patch.patch_type == enum_value(patch, "patch_type", "JSONMergePatch"):
        return _merge(target, document)
    try:
        import jsonpatch
    except ImportError:
        raise ImportError("to apply JSON patches, install jsonpatch: pip install 'hookgate[testing]'") from None
    return jsonpatch.apply_patch(target, document)


def _merge(target: Any, patch: Any) -> Any:
    """Applies a merge patch (RFC 7386)."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = _merge(result.get(name), value)
    return result


def check(extension: "Extension", *arguments: str) -> None:
    """Serves the extension on a socket, runs `hookgate check` on it, and raises an AssertionError with what it finds.

    arguments are flags of the command, such as "--strict". The program is that of HOOKGATE_BIN, or hookgate of PATH.
    """
    program = os.environ.get("HOOKGATE_BIN") or shutil.which("hookgate")
    if not program:
        raise AssertionError(
            "hookgate, which checks extensions, is not there: put it into PATH, or its path into HOOKGATE_BIN. It is in "
            "Hookgate's releases, and `make build` makes bin/hookgate"
        )
    with tempfile.TemporaryDirectory() as folder, extension.start(f"unix://{folder}/check.sock") as server:
        command = [program, "check", server.url, *arguments]
        result = subprocess.run(command, capture_output=True, text=True, timeout=CHECK_LIMIT, check=False)
    if result.returncode != 0:
        raise AssertionError(f"{' '.join(command)} ends with {result.returncode}:\n{result.stdout}{result.stderr}")
