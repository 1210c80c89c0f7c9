# Copyright The Hookgate Authors.
# SPDX-License-Identifier: Apache-2.0

"""Patches that are made from changes, and the variables that decide them."""

import copy
import json
from pathlib import Path
from typing import Any

import jsonpatch
import pytest

from hookgate import Answer, Extension, Failure, Patches, StatusError, items
from hookgate.hooks.v1alpha1 import (
    JSON,
    PATCH_TYPE_JSON_PATCH,
    GeneratePatchesRequest,
    GeneratePatchesRequestItem,
    HolderReference,
    RawExtension,
    ValidateTopologyRequest,
    ValidateTopologyRequestItem,
    Variable,
)
from hookgate.testing import patched, patches


def variables(values: dict[str, Any]) -> list[Variable]:
    """Returns variables with these values."""
    return [Variable(name=name, value=JSON(raw=json.dumps(value).encode())) for name, value in values.items()]


def template(value: Any, own: dict[str, Any] | None = None, holder: str = "Cluster", uid: str = "1") -> GeneratePatchesRequestItem:
    """Returns a template with this text or value."""
    raw = value if isinstance(value, bytes) else json.dumps(value).encode()
    reference = HolderReference(kind=holder)
    return GeneratePatchesRequestItem(
        uid=uid, holder_reference=reference, object=RawExtension(raw=raw), variables=variables(own or {})
    )


def respond(request: GeneratePatchesRequest, edit: Any) -> Any:
    """Returns the response of a handler that edits all templates."""
    extension = Extension()

    @extension.handler
    def patch(request: GeneratePatchesRequest) -> Answer:
        answer = Patches(request)
        edit(answer)
        return answer

    return extension.call(request)


def test_vectors(repository: Path) -> None:
    vectors = json.loads((repository / "sdk/testdata/patches.json").read_text())
    assert len(vectors) > 40
    for vector in vectors:
        request = GeneratePatchesRequest(items=[template(vector["object"])])
        answer = Patches(request)
        (item,) = answer.items()
        for step in vector.get("edit", []):
            item.set(step["set"], step["value"]) if "set" in step else item.remove(step["remove"])
        if "edited" in vector:
            item.object = copy.deepcopy(vector["edited"])
        got: Any = item.operations()
        assert json.dumps(got) == json.dumps(vector["want"]), vector["name"]
        assert jsonpatch.apply_patch(vector["object"], got) == item.object, vector["name"]


def test_the_answer_has_the_changed_templates_in_their_order() -> None:
    request = GeneratePatchesRequest(items=[template({"n": i}, uid=str(i)) for i in range(4)])

    def edit(answer: Patches) -> None:
        found = list(answer.items())
        found[3].set("/n", 30)
        found[1].object["n"] = 10
        found[0].set("/n", 0)
        next(iter(answer.items())).object["again"] = True  # as it was left

    response = respond(request, edit)
    assert response.status == 1
    assert [item.patch_type for item in response.items] == [PATCH_TYPE_JSON_PATCH] * 3
    assert patches(response) == {
        "0": [{"op": "add", "path": "/again", "value": True}],
        "1": [{"op": "add", "path": "/n", "value": 10}],
        "3": [{"op": "add", "path": "/n", "value": 30}],
    }
    assert patched(request, response) == {"0": {"n": 0, "again": True}, "1": {"n": 10}, "2": {"n": 2}, "3": {"n": 30}}


def test_what_is_not_touched_keeps_its_text() -> None:
    request = GeneratePatchesRequest(items=[template(b'{"n": 9007199254740993, "r": 1.50, "s": "\\ud800", "list": [1e2]}')])
    response = respond(request, lambda answer: [item.set("/x", "\ud800ü") for item in answer.items()])
    assert response.items[0].patch == b'[{"op":"add","path":"/x","value":"\\ud800\\u00fc"}]'


def test_items_are_chosen() -> None:
    request = GeneratePatchesRequest(
        items=[
            template({"kind": "A", "apiVersion": "infra.example/v1"}, uid="a", holder="Cluster"),
            template({"kind": "A", "apiVersion": "other.example/v1"}, uid="b", holder="MachineDeployment"),
            template({"kind": "B", "apiVersion": "infra.example/v1"}, uid="c", holder="MachineDeployment"),
            template({"kind": "C", "apiVersion": "v1"}, uid="d"),
        ]
    )

    def chosen(**by: str) -> str:
        return "".join(item.uid for item in Patches(request).items(**by))

    assert chosen() == "abcd"
    assert chosen(kind="A") == "ab"
    assert chosen(group="infra.example") == "ac"
    assert chosen(holder="MachineDeployment") == "bc"
    assert chosen(kind="A", group="infra.example", holder="Cluster") == "a"
    assert chosen(kind="A", holder="Machine") == ""


def test_templates_that_are_not_looked_into_are_not_parsed() -> None:
    request = GeneratePatchesRequest(
        items=[template(b"broken", holder="Cluster"), template({"kind": "A"}, holder="MachineDeployment")]
    )
    assert len(respond(request, lambda answer: [item.set("/a", 1) for item in answer.items(holder="MachineDeployment")]).items) == 1
    with pytest.raises(StatusError, match=r"items\[0\]\.object: Expecting value"):
        respond(request, lambda answer: list(answer.items(kind="A")))


def test_validation_reads_templates_in_the_same_way() -> None:
    item = ValidateTopologyRequestItem(object=RawExtension(raw=b'{"kind": "A"}'), variables=variables({"v": 1}))
    request = ValidateTopologyRequest(items=[item], variables=variables({"v": 2, "w": 3}))
    (found,) = items(request, kind="A")
    assert (found.object, found.variable("v", int), found.variable("w", int)) == ({"kind": "A"}, 1, 3)


@pytest.mark.parametrize(
    ("pointer", "text"),
    [
        ("/text/x", 'set "/text/x": "/text" is neither an object nor a list'),
        ("/list/3", 'set "/list/3": the list "/list" has no element "3"'),
        ("/list/01", 'the list "/list" has no element "01"'),
        ("/list/-1", 'the list "/list" has no element "-1"'),
        ("/list/x/y", 'set "/list/x/y": the list "/list" has no element "x"'),
    ],
)
def test_a_place_that_the_template_cannot_have_is_a_failure(pointer: str, text: str) -> None:
    request = GeneratePatchesRequest(items=[template({"text": "x", "list": [1]})])
    response = respond(request, lambda answer: [item.set(pointer, 1) for item in answer.items()])
    assert (response.status, len(response.items)) == (2, 0)
    assert text in response.message


@pytest.mark.parametrize(("pointer", "text"), [("spec", "does not begin with /"), ("", "the pointer is empty")])
def test_what_is_no_pointer(pointer: str, text: str) -> None:
    (item,) = Patches(GeneratePatchesRequest(items=[template({})])).items()
    with pytest.raises(ValueError, match=text):
        item.set(pointer, 1)
    with pytest.raises(ValueError, match=text):
        item.remove(pointer)


def test_a_template_stays_an_object() -> None:
    def edit(answer: Patches) -> None:
        for item in answer.items():
            item.object = []  # type: ignore[assignment]

    response = respond(GeneratePatchesRequest(items=[template({})]), edit)
    assert response.message == "items[0].object: a template cannot become something that is not an object"


def test_a_deep_template_is_a_failure_and_no_crash() -> None:
    deep = b'{"a":' * 900 + b"1" + b"}" * 900

    def edit(answer: Patches) -> None:
        for item in answer.items():
            item.set("/b", 1)

    response = respond(GeneratePatchesRequest(items=[template(deep)]), edit)
    assert response.status in (1, 2)
    assert response.message in ("", "items[0].object: too deeply nested")


SHARED = {
    "imageRepository": "registry.example.com",
    "proxy": {"https": "http://p:3128", "noProxy": ["a", "b"]},
    "count": 9007199254740993,
    "on": True,
    "list": [[1, 2], {"x": None}],
    "builtin": {"cluster": {"name": "c", "topology": {"version": "v1.33.0"}}, "controlPlane": {"version": "old", "replicas": 3}},
}
OWN = {"imageRepository": "own.example.com", "builtin": {"controlPlane": {"version": "v1.34.0"}}}


@pytest.mark.parametrize(
    ("path", "kind", "value"),
    [
        ("imageRepository", str, "own.example.com"),
        ("proxy.https", str, "http://p:3128"),
        ("proxy.noProxy[1]", str, "b"),
        ("proxy.noProxy", list, ["a", "b"]),
        ("count", int, 9007199254740993),
        ("on", bool, True),
        ("list[0][1]", int, None),
        ("list[1]", dict, {"x": None}),
        ("count", float, 9007199254740992.0),
        ("builtin.controlPlane.version", str, "v1.34.0"),
        ("builtin.controlPlane.replicas", int, 3),
        ("builtin.cluster.topology.version", str, "v1.33.0"),
    ],
)
def test_variables_are_found_by_paths(path: str, kind: Any, value: Any) -> None:
    (item,) = items(GeneratePatchesRequest(items=[template({}, OWN)], variables=variables(SHARED)))
    if value is None:
        with pytest.raises(ValueError, match="want a path like"):
            item.variable(path, kind)
    else:
        assert item.variable(path, kind) == value


@pytest.mark.parametrize(
    "path", ["missing", "proxy.missing", "proxy.https.missing", "proxy.noProxy[2]", "proxy.missing[0]", "missing.x[0].y"]
)
def test_what_is_not_set_is_the_default_or_a_failure(path: str) -> None:
    (item,) = items(GeneratePatchesRequest(items=[template({})], variables=variables(SHARED)))
    assert item.variable(path, str, default="d") == "d"
    with pytest.raises(Failure) as error:
        item.variable(path, str)
    assert str(error.value) == f'variable "{path}" is not set'


@pytest.mark.parametrize(
    ("path", "kind", "text"),
    [
        ("count", str, 'variable "count" is not a string'),
        ("imageRepository", int, 'variable "imageRepository" is not an integer'),
        ("on", int, 'variable "on" is not an integer'),
        ("on", float, 'variable "on" is not a number'),
        ("count", bool, 'variable "count" is not a boolean'),
        ("proxy", list, 'variable "proxy" is not a list'),
        ("list", dict, 'variable "list" is not an object'),
        ("list[1].x", str, 'variable "list[1].x" is not a string'),
        ("proxy[0]", str, 'variable "proxy" is not a list'),
        ("builtin.cluster[0].x", str, 'variable "builtin.cluster" is not a list'),
    ],
)
def test_a_variable_of_another_type_is_a_failure(path: str, kind: Any, text: str) -> None:
    (item,) = items(GeneratePatchesRequest(items=[template({})], variables=variables(SHARED)))
    with pytest.raises(Failure) as error:
        item.variable(path, kind, kind())
    assert str(error.value) == text


def test_the_last_variable_of_a_name_wins() -> None:
    (item,) = items(GeneratePatchesRequest(items=[template({})], variables=variables({"v": 1}) + variables({"v": 2})))
    assert item.variable("v", int) == 2


def test_a_variable_that_is_no_json_is_the_callers_mistake() -> None:
    (item,) = items(GeneratePatchesRequest(items=[template({})], variables=[Variable(name="v", value=JSON(raw=b"x"))]))
    with pytest.raises(StatusError, match='variable "v": Expecting value'):
        item.variable("v", int)
