# Copyright The Hookgate Authors.
# SPDX-License-Identifier: Apache-2.0

"""The variables of a template, found by paths like those of Cluster API's inline patches."""

import re
from collections.abc import Sequence
from typing import Any

from hookgate.answers import Failure
from hookgate.objects import REQUIRED, decode

# The variable that Cluster API sets itself. Only its members are merged; see MergeVariableMaps of Cluster API's
# exp/runtime/topologymutation.
BUILTIN = "builtin"

_SEGMENT = re.compile(r"([^.\[\]]+)(?:\[([0-9]{1,9})\])?")
_KINDS: dict[type, tuple[tuple[type, ...], str]] = {
    str: ((str,), "a string"),
    int: ((int,), "an integer"),
    float: ((int, float), "a number"),
    bool: ((bool,), "a boolean"),
    list: ((list,), "a list"),
    dict: ((dict,), "an object"),
}


def value(levels: Sequence[Any], path: str, kind: type[Any], default: Any) -> Any:
    """Returns what is at a path. levels are lists of variables, of which the last that has one wins."""
    if kind not in _KINDS:
        raise ValueError(f"variable: {kind!r} is not str, int, float, bool, list or dict")
    segments = [_SEGMENT.fullmatch(segment) for segment in path.split(".")]
    found: Any = None
    known, walked = False, ""
    for segment in segments:
        if segment is None:
            raise ValueError(f'variable "{path}": want a path like "proxy.noProxy[0]"')
        name, index = segment[1], segment[2]
        if not walked:
            found, known = _variable(levels, name)
        else:
            known = known and isinstance(found, dict) and name in found
            found = found[name] if known else None
        walked = f"{walked}.{name}" if walked else name
        if known and index is not None:
            if not isinstance(found, list):
                raise Failure(f'variable "{walked}" is not a list')
            known = int(index) < len(found)
            found = found[int(index)] if known else None
            walked = f"{walked}[{index}]"
    if not known:
        if default is REQUIRED:
            raise Failure(f'variable "{path}" is not set')
        return default
    types, want = _KINDS[kind]
    if not isinstance(found, types) or isinstance(found, bool) != (kind is bool):
        raise Failure(f'variable "{path}" is not {want}')
    return float(found) if isinstance(found, int) and kind is float else found


def _variable(levels: Sequence[Any], name: str) -> tuple[Any, bool]:
    found, known = None, False
    for variables in levels:
        for variable in reversed(variables):  # the last of one name wins, as in a map
            if variable.name == name:
                value = decode(variable.value.raw, f'variable "{name}"')
                found, known = _merged(found, value) if name == BUILTIN else value, True
                break
    return found, known


def _merged(a: Any, b: Any) -> Any:
    """Returns b, with the members of a that it lacks."""
    if not isinstance(a, dict) or not isinstance(b, dict):
        return b
    return a | {name: _merged(a.get(name), value) for name, value in b.items()}
