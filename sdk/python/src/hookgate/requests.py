# Copyright The Hookgate Authors.
# SPDX-License-Identifier: Apache-2.0

"""Requests in the contract's JSON, as in examples/requests and in recordings, read into messages."""

import base64
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from hookgate import contract
from hookgate.objects import encode

_INTEGERS = {FieldDescriptor.CPPTYPE_INT32: 32, FieldDescriptor.CPPTYPE_INT64: 64}


def read(path: "str | os.PathLike[str]") -> dict[str, Any]:
    """Returns what is in a file in JSON, or in YAML if its name does not end with .json."""
    text = Path(path).read_text(encoding="utf-8")
    try:
        value = json.loads(text) if str(path).endswith(".json") else _yaml(text)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    if not isinstance(value, dict):
        raise ValueError(f"{path}: not an object")
    return value


def _yaml(text: str) -> Any:
    try:
        import yaml
    except ImportError:
        raise ImportError("to read YAML, install PyYAML: pip install 'hookgate[testing]'") from None

    class Loader(yaml.SafeLoader):
        """Reads what JSON can have: times stay texts."""

    Loader.yaml_implicit_resolvers = {
        first: [(tag, pattern) for tag, pattern in resolvers if not tag.endswith(":timestamp")]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }
    try:
        return yaml.load(text, Loader)
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from None


def message(cls: type[Message], value: Mapping[str, Any]) -> Any:
    """Returns a message of a type with the members of a value. Unknown members go into unknown_members."""
    new: Any = cls()
    _fill(new, {name: v for name, v in value.items() if name not in ("kind", "apiVersion")}, cls.DESCRIPTOR.name)
    return new


def _fill(target: Any, value: Any, place: str) -> None:
    if not isinstance(value, Mapping):
        raise ValueError(f"{place}: want an object")
    fields = contract.members(target.DESCRIPTOR)
    for name, v in value.items():
        at = f"{place}.{name}"
        field = fields.get(name)
        if field is None:
            target.unknown_members[name].raw = encode(v)
        elif v is None and not contract.is_raw(field.message_type):
            continue  # null is as good as absent
        elif contract.is_map(field):
            _fill_map(getattr(target, field.name), v, at)
        elif field.is_repeated:
            if not isinstance(v, list):
                raise ValueError(f"{at}: want a list")
            for i, element in enumerate(v):
                _append(getattr(target, field.name), field, element, f"{at}[{i}]")
        elif field.message_type is not None:
            _fill_message(getattr(target, field.name), v, at)
        else:
            setattr(target, field.name, _scalar(field, v, at))


def _fill_message(target: Any, value: Any, place: str) -> None:
    target.SetInParent()
    if contract.is_raw(target.DESCRIPTOR):
        target.raw = encode(value)
    else:
        _fill(target, value, place)


def _fill_map(target: Any, value: Any, place: str) -> None:
    if not isinstance(value, Mapping) or not all(isinstance(v, str) for v in value.values()):
        raise ValueError(f"{place}: want an object of texts")
    target.update(value)


def _append(target: Any, field: FieldDescriptor, value: Any, place: str) -> None:
    if field.message_type is not None:
        _fill_message(target.add(), value, place)
    else:
        target.append(_scalar(field, value, place))


def _scalar(field: FieldDescriptor, value: Any, place: str) -> Any:
    if field.enum_type is not None:
        texts = contract.enum_texts(field.enum_type)
        if not isinstance(value, str) or value not in texts or not texts[value]:
            raise ValueError(f"{place}: want one of {', '.join(text for text, number in texts.items() if number)}")
        return texts[value]
    if field.cpp_type in _INTEGERS:
        half = 1 << (_INTEGERS[field.cpp_type] - 1)
        if isinstance(value, bool) or not isinstance(value, int) or not -half <= value < half:
            raise ValueError(f"{place}: want an integer of {_INTEGERS[field.cpp_type]} bits")
        return value
    if field.type == FieldDescriptor.TYPE_BYTES:
        try:
            return base64.b64decode(value, validate=True)
        except (TypeError, ValueError):
            raise ValueError(f"{place}: want base64") from None
    want = bool if field.cpp_type == FieldDescriptor.CPPTYPE_BOOL else str
    if not isinstance(value, want):
        raise ValueError(f"{place}: want {'true or false' if want is bool else 'a text'}")
    return value
