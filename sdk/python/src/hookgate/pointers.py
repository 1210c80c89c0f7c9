# Copyright The Hookgate Authors.
# SPDX-License-Identifier: Apache-2.0

"""JSON pointers (RFC 6901), and the difference between two JSON values as a JSON Patch (RFC 6902)."""

from typing import Any

from hookgate.answers import Failure

_MISSING = object()


def parse(pointer: str) -> list[str]:
    """Returns the names in a pointer. It raises a ValueError if it is none."""
    if pointer and not pointer.startswith("/"):
        raise ValueError(f'"{pointer}" is not a JSON pointer: it does not begin with /')
    return [name.replace("~1", "/").replace("~0", "~") for name in pointer.split("/")[1:]]


def escape(name: str) -> str:
    """Returns a name as it is written in a pointer."""
    return name.replace("~", "~0").replace("/", "~1")


def put(root: dict[str, Any], pointer: str, value: Any) -> None:
    """Sets what is at a pointer, and makes missing parents, or null ones, on the way. "-" appends to a list."""
    names = parse(pointer)
    if not names:
        raise ValueError("the pointer is empty: an object is not replaced as a whole")
    node: Any = root
    for i, name in enumerate(names[:-1]):
        below = _child(node, name)
        if below is _MISSING or below is None:
            below = {}
            _assign(node, name, below, pointer, names[:i])
        node = below
    _assign(node, names[-1], value, pointer, names[:-1])


def drop(root: dict[str, Any], pointer: str) -> None:
    """Removes what is at a pointer, if there is something."""
    names = parse(pointer)
    if not names:
        raise ValueError("the pointer is empty: an object is not removed as a whole")
    node: Any = root
    for name in names[:-1]:
        node = _child(node, name)
    if _child(node, names[-1]) is not _MISSING:
        del node[int(names[-1]) if isinstance(node, list) else names[-1]]


def _index(name: str) -> int | None:
    return int(name) if name.isascii() and name.isdigit() and len(name) < 10 and str(int(name)) == name else None


def _child(node: Any, name: str) -> Any:
    if isinstance(node, dict):
        return node.get(name, _MISSING)
    if isinstance(node, list):
        index = _index(name)
        if index is not None and index < len(node):
            return node[index]
    return _MISSING


def _assign(node: Any, name: str, value: Any, pointer: str, parent: list[str]) -> None:
    if isinstance(node, dict):
        node[name] = value
        return
    place = "".join("/" + escape(n) for n in parent)
    if not isinstance(node, list):
        raise Failure(f'set "{pointer}": "{place}" is neither an object nor a list')
    index = len(node) if name == "-" else _index(name)
    if index is None or index > len(node):
        raise Failure(f'set "{pointer}": the list "{place}" has no element "{name}"')
    node[index : index + 1] = [value]


def equal(a: Any, b: Any) -> bool:
    """Reports whether two values are the same JSON: unlike in Python, true is not 1."""
    if isinstance(a, dict):
        return isinstance(b, dict) and len(a) == len(b) and all(name in b and equal(v, b[name]) for name, v in a.items())
    if isinstance(a, list):
        return isinstance(b, list) and len(a) == len(b) and all(map(equal, a, b))
    return isinstance(a, bool) == isinstance(b, bool) and bool(a == b)


def difference(a: dict[str, Any], b: dict[str, Any]) -> list[dict[str, Any]]:
    """Returns the operations that make b of a, at the deepest places where they differ, in the order of a's members."""
    operations: list[dict[str, Any]] = []
    _objects(a, b, "", operations)
    return operations


def _objects(a: dict[str, Any], b: dict[str, Any], path: str, out: list[dict[str, Any]]) -> None:
    for name, value in a.items():
        at = f"{path}/{escape(name)}"
        if name not in b:
            out.append({"op": "remove", "path": at})
        else:
            _values(value, b[name], at, "add", out)  # which replaces a member that there is
    for name, value in b.items():
        if name not in a:
            out.append({"op": "add", "path": f"{path}/{escape(name)}", "value": value})


def _values(a: Any, b: Any, at: str, op: str, out: list[dict[str, Any]]) -> None:
    if isinstance(a, dict) and isinstance(b, dict):
        _objects(a, b, at, out)
    elif isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        for i, element in enumerate(a):
            _values(element, b[i], f"{at}/{i}", "replace", out)
    elif isinstance(a, list) and isinstance(b, list) and len(a) < len(b) and all(map(equal, a, b)):
        out.extend({"op": "add", "path": f"{at}/-", "value": element} for element in b[len(a) :])
    elif not equal(a, b):
        out.append({"op": op, "path": at, "value": b})
