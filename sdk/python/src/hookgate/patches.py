# Copyright The Hookgate Authors.
# SPDX-License-Identifier: Apache-2.0

"""The templates of a topology: what is in them, their variables, and the patches that a handler makes of its changes."""

from collections.abc import Iterator
from typing import Any, TypeVar, overload

from google.protobuf.message import Message

from hookgate import pointers, variables
from hookgate.answers import Answer, Failure, new_response
from hookgate.contract import Hook, enum_value
from hookgate.objects import REQUIRED, encode, load

T = TypeVar("T", str, int, float, bool, list[Any], dict[str, Any])


class Item:
    """One template of a request. It is decoded when it is first looked into."""

    def __init__(self, request: Any, index: int) -> None:
        self._request, self._index = request, index
        self._message = request.items[index]
        self._object: Any = None

    @property
    def uid(self) -> str:
        """The identifier of the template in the answer."""
        return str(getattr(self._message, "uid", ""))

    @property
    def holder(self) -> Any:
        """The HolderReference: which object uses the template, and in which field."""
        return self._message.holder_reference

    @property
    def object(self) -> dict[str, Any]:
        """The template: a copy to edit. What is changed in it becomes the patch."""
        if self._object is None:
            self._object = load(self._request, self._place)
        return self._object  # type: ignore[no-any-return]

    @object.setter
    def object(self, value: dict[str, Any]) -> None:
        self._object = value

    def set(self, pointer: str, value: Any) -> None:
        """Sets what is at a JSON pointer. Missing parents, and null ones, become objects; "-" appends to a list."""
        pointers.put(self.object, pointer, value)

    def remove(self, pointer: str) -> None:
        """Removes what is at a JSON pointer, if there is something."""
        pointers.drop(self.object, pointer)

    @overload
    def variable(self, path: str, kind: type[T]) -> T: ...
    @overload
    def variable(self, path: str, kind: type[T], default: T) -> T: ...
    def variable(self, path: str, kind: type[Any], default: Any = REQUIRED) -> Any:
        """Returns a variable of the template, or a part of it: "imageRepository", "proxy.noProxy[0]", "builtin.cluster.name".

        The template's own variables come before those of the request; of builtin, the members of both are merged. kind is
        str, int, float, bool, list or dict. A Failure says which variable is not set, or is of another type.
        """
        return variables.value([self._request.variables, self._message.variables], path, kind, default)

    def operations(self) -> list[dict[str, Any]]:
        """Returns the JSON Patch that makes the edited template of the original one."""
        if self._object is None:
            return []
        if not isinstance(self._object, dict):
            raise Failure(f"{self._place}: a template cannot become something that is not an object")
        try:
            return pointers.difference(load(self._request, self._place), self._object)
        except RecursionError:
            raise Failure(f"{self._place}: too deeply nested") from None

    def matches(self, kind: str = "", group: str = "", holder: str = "") -> bool:
        """Reports whether the template is of a kind, of an API group, and used by an object of the kind holder."""
        if holder and self.holder.kind != holder:
            return False
        if kind and self.object.get("kind") != kind:
            return False
        return not group or str(self.object.get("apiVersion")).rpartition("/")[0] == group

    @property
    def _place(self) -> str:
        return f"items[{self._index}].object"


def items(request: Message, *, kind: str = "", group: str = "", holder: str = "") -> Iterator[Item]:
    """Yields the templates of a request to read, as ValidateTopology does: those of a kind, of an API group, and those
    that an object of the kind holder uses. What is not stated is not asked."""
    return Patches(request).items(kind=kind, group=group, holder=holder)


class Patches(Answer):
    """The answer of a GeneratePatches handler: a JSON Patch for each template that it has changed."""

    def __init__(self, request: Message) -> None:
        self._items = [Item(request, index) for index in range(len(request.items))]  # type: ignore[attr-defined]
        self._given: set[int] = set()

    def items(self, *, kind: str = "", group: str = "", holder: str = "") -> Iterator[Item]:
        """Yields the templates to edit, chosen as in hookgate.items. Asked again, it yields them as they were left."""
        for index, item in enumerate(self._items):
            if item.matches(kind, group, holder):
                self._given.add(index)
                yield item

    def response(self, hook: Hook) -> Message:
        """Returns the response: the patches of the changed templates, in the order of the request."""
        response = new_response(hook, "Success")
        if not hook.response_has("items"):
            raise Failure(f"{hook.name} has no patches: answer done(), wait() or fail()")
        for index in sorted(self._given):  # others cannot have changed
            item = self._items[index]
            operations = item.operations()
            if operations:
                patch = response.items.add(uid=item.uid, patch=encode(operations))
                patch.patch_type = enum_value(patch, "patch_type", "JSONPatch")
        return response  # type: ignore[no-any-return]
