# Copyright The Hookgate Authors.
# SPDX-License-Identifier: Apache-2.0

"""Objects and settings of requests."""

import json
from typing import Any

import pytest

from hookgate import Failure, StatusError, load, member, setting
from hookgate.hooks.v1alpha1 import (
    JSON,
    BeforeClusterCreateRequest,
    CanUpdateMachineRequest,
    CanUpdateMachineRequestObjects,
    GeneratePatchesRequest,
    GeneratePatchesRequestItem,
    RawExtension,
    Variable,
)


def cluster(raw: bytes) -> BeforeClusterCreateRequest:
    """Returns a request about a Cluster that is this text."""
    return BeforeClusterCreateRequest(cluster=RawExtension(raw=raw))


def test_load_finds_objects_by_the_contracts_names() -> None:
    machine = CanUpdateMachineRequest(
        desired=CanUpdateMachineRequestObjects(infrastructure_machine=RawExtension(raw=b'{"kind": "DevMachine"}'))
    )
    assert load(machine, "desired.infrastructureMachine") == {"kind": "DevMachine"}
    item = GeneratePatchesRequestItem(object=RawExtension(raw=b'{"kind": "A"}'))
    request = GeneratePatchesRequest(items=[item], variables=[Variable(name="v", value=JSON(raw=b'{"a": 1}'))])
    assert load(request, "items[0].object") == {"kind": "A"}
    assert load(request, "variables[0].value") == {"a": 1}


def test_large_integers_are_kept() -> None:
    assert load(cluster(b'{"n": 9007199254740993, "m": 123456789012345678901234567890}'), "cluster") == {
        "n": 9007199254740993,
        "m": 123456789012345678901234567890,
    }


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (b"", "cluster: there is no object"),
        (b"[]", "cluster: not a JSON object"),
        (b"null", "cluster: not a JSON object"),
        (b'{"metadata":', "cluster: Expecting value: line 1 column 13 (char 12)"),
        (b'{"a": NaN}', "cluster: NaN is not JSON"),
        (b'{"a": -Infinity}', "cluster: -Infinity is not JSON"),
        (b'{"a": 1e999}', "cluster: a number is too large"),
        (b'{"a": "\xff"}', "cluster: 'utf-8' codec can't decode byte 0xff in position 7: invalid start byte"),
        ('{"a": 1}'.encode("utf-16"), "cluster: 'utf-8' codec can't decode"),
        (b'{"a":' * 100_000, "cluster: too deeply nested"),
        (b'{"a": ' + b"1" * 5000 + b"}", "cluster: Exceeds the limit"),
    ],
)
def test_what_is_no_object_is_the_callers_mistake(raw: bytes, text: str) -> None:
    with pytest.raises(StatusError) as error:
        load(cluster(raw), "cluster")
    assert error.value.code.name == "INVALID_ARGUMENT"
    assert str(error.value).startswith(text)


def test_a_missing_element_is_the_callers_mistake() -> None:
    with pytest.raises(StatusError, match=r"items\[0\]\.object: there is no object"):
        load(GeneratePatchesRequest(), "items[0].object")


@pytest.mark.parametrize(
    "path", ["", "Cluster", "cluster.metadata", "settings", "handler", "cluster[0]", "cluster.raw", "unknownMembers"]
)
def test_a_path_that_the_contract_does_not_have(path: str) -> None:
    with pytest.raises(ValueError, match="BeforeClusterCreateRequest has no"):
        load(cluster(b"{}"), path)


def test_member_finds_what_is_there() -> None:
    value = {"a": {"b": [{"c": 1}], "null": None, "zero": 0}}
    assert member(value, "a", "b", 0, "c") == 1
    assert member(value, "a", "b", -1, "c") == 1
    assert member(value, "a", "zero", default=7) == 0
    for path in (("x", "y"), ("a", "b", 1), ("a", "b", "c"), ("a", 0), ("a", "null"), ("a", "null", "x")):
        assert member(value, *path) is None
        assert member(value, *path, default="d") == "d"


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (str, "", ""),
        (str, "two\nlines", "two\nlines"),
        (int, "-12", -12),
        (int, "9007199254740993", 9007199254740993),
        (float, "1.5e3", 1500.0),
        (float, "2", 2.0),
        (bool, "true", True),
        (bool, "false", False),
    ],
)
def test_settings_have_types(kind: Any, text: str, value: object) -> None:
    got = setting(BeforeClusterCreateRequest(settings={"s": text}), "s", kind)
    assert (got, type(got)) == (value, kind)


@pytest.mark.parametrize(
    ("kind", "text", "want"),
    [
        (int, "s3cr3t", "an integer"),
        (int, "1.0", "an integer"),
        (int, " 1", "an integer"),
        (int, "1_000", "an integer"),
        (int, "\u0661", "an integer"),
        (int, "1" * 5000, "an integer"),
        (float, "nan", "a number"),
        (float, "1e999", "a number"),
        (bool, "True", "true or false"),
        (bool, "1", "true or false"),
    ],
)
def test_a_setting_of_another_type_is_a_failure_without_its_value(kind: Any, text: str, want: str) -> None:
    with pytest.raises(Failure) as error:
        setting(BeforeClusterCreateRequest(settings={"retries": text}), "retries", kind, kind())
    assert str(error.value) == f'setting "retries": want {want}'


def test_a_missing_setting() -> None:
    request = BeforeClusterCreateRequest()
    assert setting(request, "retries", int, 3) == 3
    with pytest.raises(Failure, match='setting "retries" is not set'):
        setting(request, "retries", int)
    with pytest.raises(ValueError, match="is not str, int, float or bool"):
        setting(request, "retries", json)  # type: ignore[call-overload]
