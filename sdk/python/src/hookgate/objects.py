# Copyright The Hookgate Authors.
# SPDX-License-Identifier: Apache-2.0

"""Kubernetes objects and settings of a request."""

import json
import math
import re
from typing import Any, NoReturn, TypeVar, overload

import grpc
from google.protobuf.message import Message

from hookgate import contract
from hookgate.answers import Failure, StatusError

T = TypeVar("T", str, int, float, bool)


class _Required:
    """The default of what has none."""


REQUIRED = _Required()


def load(request: Message, path: str) -> dict[str, Any]:
    """Returns a Kubernetes object of a request, decoded.

    The path consists of the contract's names in JSON: "cluster", "current.machine", "items[0].object". An object that
    is no JSON object ends the call with INVALID_ARGUMENT. A path that the request's type does not have is a ValueError.
    """
    raw = _raw(request, path)
    if not raw:
        invalid(f"{path}: there is no object")
    value = decode(raw, path)
    if not isinstance(value, dict):
        invalid(f"{path}: not a JSON object")
    return value


def member(value: Any, *path: str | int, default: Any = None) -> Any:
    """Returns what is at a path of names and indices, or the default if something on the way is missing or null."""
    for step in path:
        if isinstance(step, int):
            value = value[step] if isinstance(value, list) and -len(value) <= step < len(value) else None
        else:
            value = value.get(step) if isinstance(value, dict) else None
    return default if value is None else value


@overload
def setting(request: Any, name: str, kind: type[T]) -> T: ...
@overload
def setting(request: Any, name: str, kind: type[T], default: T) -> T: ...
def setting(request: Any, name: str, kind: type[Any], default: Any = REQUIRED) -> Any:
    """Returns a setting of a request as a str, int, float or bool. A Failure says which is missing or of another type."""
    if kind not in _SETTINGS:
        raise ValueError(f"setting: {kind!r} is not str, int, float or bool")
    if name not in request.settings:
        if default is REQUIRED:
            raise Failure(f'setting "{name}" is not set')
        return default
    text, (pattern, want) = request.settings[name], _SETTINGS[kind]
    if not pattern.fullmatch(text):
        raise Failure(f'setting "{name}": want {want}')
    value = text == "true" if kind is bool else kind(text)
    if isinstance(value, float) and not math.isfinite(value):
        raise Failure(f'setting "{name}": want {want}')
    return value


_SETTINGS: dict[type, tuple[re.Pattern[str], str]] = {
    str: (re.compile(r"[\s\S]*"), "text"),
    int: (re.compile(r"[+-]?[0-9]{1,100}"), "an integer"),  # Python refuses to read a very long one
    float: (re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?"), "a number"),
    bool: (re.compile(r"true|false"), "true or false"),
}


def decode(raw: bytes, place: str) -> Any:
    """Decodes JSON. What is no JSON ends the call with INVALID_ARGUMENT, with a text that begins with the place."""
    try:
        return json.loads(raw.decode(), parse_constant=_refuse, parse_float=_finite)
    except ValueError as error:
        invalid(f"{place}: {error}")
    except RecursionError:
        invalid(f"{place}: too deeply nested")


def encode(value: Any) -> bytes:
    """Encodes JSON, without spaces."""
    return json.dumps(value, allow_nan=False, separators=(",", ":")).encode()


def invalid(text: str) -> NoReturn:
    """Ends the call with INVALID_ARGUMENT."""
    raise StatusError(grpc.StatusCode.INVALID_ARGUMENT, text)


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise ValueError("a number is too large")
    return number


_STEP = re.compile(r"([A-Za-z0-9]+)(?:\[([0-9]{1,9})\])?")


def _raw(request: Any, path: str) -> bytes:
    """Returns the JSON text at a path of a message."""
    value = request
    for name in path.split("."):
        step = _STEP.fullmatch(name)
        field = contract.members(value.DESCRIPTOR).get(step[1]) if step and isinstance(value, Message) else None
        if step is None or field is None or field.is_repeated != (step[2] is not None) or contract.is_map(field):
            known = ", ".join(contract.members(value.DESCRIPTOR)) if isinstance(value, Message) else "nothing"
            raise ValueError(f'{request.DESCRIPTOR.name} has no object at "{path}": "{name}" is not in the contract, but {known}')
        value = getattr(value, field.name)
        if step[2] is not None:
            if int(step[2]) >= len(value):
                invalid(f"{path}: there is no object")
            value = value[int(step[2])]
    if not isinstance(value, Message) or not contract.is_raw(value.DESCRIPTOR):
        raise ValueError(f'{request.DESCRIPTOR.name} has no object at "{path}": it is part of the message itself')
    return bytes(value.raw)  # type: ignore[attr-defined]
