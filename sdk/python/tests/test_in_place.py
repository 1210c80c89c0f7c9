# Copyright The Hookgate Authors.
# SPDX-License-Identifier: Apache-2.0

"""The patches of in-place updates, from current and desired objects."""

import json
from typing import Any

import pytest

from hookgate import Answer, Extension, Failure, covers, done
from hookgate.hooks.v1alpha1 import (
    BeforeClusterCreateRequest,
    CanUpdateMachineRequest,
    CanUpdateMachineRequestObjects,
    CanUpdateMachineResponse,
    CanUpdateMachineSetRequest,
    CanUpdateMachineSetRequestObjects,
    RawExtension,
)
from hookgate.testing import patched, patches


def raw(value: Any) -> RawExtension:
    """Returns an object."""
    return RawExtension(raw=json.dumps(value).encode())


def machines(current: Any, desired: Any) -> CanUpdateMachineRequest:
    """Returns a request to update one Machine into another."""
    return CanUpdateMachineRequest(
        current=CanUpdateMachineRequestObjects(machine=raw(current)), desired=CanUpdateMachineRequestObjects(machine=raw(desired))
    )


@pytest.mark.parametrize(
    ("current", "desired", "paths", "want"),
    [
        ({"spec": {"v": 1, "w": 1}}, {"spec": {"v": 2, "w": 2}}, ["/spec/v"], {"spec": {"v": 2}}),
        ({"spec": {"v": 1, "w": 1}}, {"spec": {"v": 2, "w": 2}}, ["/spec/v", "/spec/w"], {"spec": {"v": 2, "w": 2}}),
        ({"spec": {"v": 1}}, {"spec": {"v": 1.0}}, ["/spec/v"], None),
        ({"spec": {"v": 1}}, {"spec": {"v": True}}, ["/spec/v"], {"spec": {"v": True}}),
        ({"spec": {"v": 1}}, {"spec": {"w": 2}}, ["/spec/v"], {"spec": {"v": None}}),
        ({"spec": {}}, {"spec": {"a": {"b": 1}}}, ["/spec/a/b"], {"spec": {"a": {"b": 1}}}),
        ({"spec": {"a": {"x": 1, "y": 2}}}, {"spec": {"a": {"x": 1, "z": 3}}}, ["/spec/a"], {"spec": {"a": {"y": None, "z": 3}}}),
        ({"spec": {"l": [1, 2]}}, {"spec": {"l": [1]}}, ["/spec/l"], {"spec": {"l": [1]}}),
        ({"spec": {"v": 9007199254740993}}, {"spec": {"v": 9007199254740995}}, ["/spec/v"], {"spec": {"v": 9007199254740995}}),
        ({"spec": {"v": 1}}, {"spec": {"v": 2}}, ["/spec", "/spec/v"], {"spec": {"v": 2}}),
        ({"spec": {"v": 1}}, {"spec": {"v": 2}}, ["/spec/v", "/spec"], {"spec": {"v": 2}}),
        ({"spec": {"v": {"w": 1}}}, {"spec": {}}, ["/spec/v", "/spec/v/w"], {"spec": {"v": None}}),
        ({"spec": {"v": None}}, {"spec": {}}, ["/spec/v"], None),
        ({"spec": {"a/b": 1}}, {"spec": {"a/b": 2}}, ["/spec/a~1b"], {"spec": {"a/b": 2}}),
        ({"spec": {"v": 1}}, {"spec": {"v": 2}}, [], None),
    ],
)
def test_covers_what_differs(current: Any, desired: Any, paths: list[str], want: Any) -> None:
    request = machines(current, desired)
    response = covers(request, machine=paths)
    assert response.status == 1
    assert patches(response) == ({} if want is None else {"machine": want})


def test_the_patch_makes_desired_of_current() -> None:
    request = machines({"spec": {"a": {"x": 1, "y": [1]}, "b": 1}}, {"spec": {"a": {"y": [2], "z": {"n": 1}}, "b": 2}})
    assert patched(request, covers(request, machine=["/spec"])) == {"machine": {"spec": {"a": {"y": [2], "z": {"n": 1}}, "b": 2}}}


def test_each_object_has_its_patch() -> None:
    def objects(version: str) -> CanUpdateMachineSetRequestObjects:
        template = raw({"spec": {"template": {"spec": {"version": version}}}})
        return CanUpdateMachineSetRequestObjects(machine_set=template, infrastructure_machine_template=template)

    response = covers(
        CanUpdateMachineSetRequest(current=objects("1"), desired=objects("2")),
        machine_set=["/spec/template/spec/version"],
        infrastructure_machine_template=["/spec/template/spec/other"],
        bootstrap_config_template=["/spec"],  # of which there is none
    )
    response.affects_availability = False
    assert patches(response) == {"machine_set": {"spec": {"template": {"spec": {"version": "2"}}}}}


@pytest.mark.parametrize("pointer", ["/spec/l/0", "/spec/l/-", "/spec/l/0/name"])
def test_an_element_of_a_list_is_not_covered(pointer: str) -> None:
    request = machines({"spec": {"l": [1]}}, {"spec": {"l": [1]}})
    with pytest.raises(Failure) as error:
        covers(request, machine=[pointer])
    want = f'covers: machine: "/spec/l" is a list: cover the whole list, not "{pointer}"'
    assert str(error.value) == want


def test_mistakes_say_what_to_do() -> None:
    request: Any = machines({}, {})
    with pytest.raises(
        ValueError, match="CanUpdateMachine has no machine_set, but machine, infrastructure_machine, bootstrap_config"
    ):
        covers(request, machine_set=["/spec"])
    with pytest.raises(ValueError, match=r'machine takes a list of pointers: \["/spec"\]'):
        covers(request, machine="/spec")
    with pytest.raises(ValueError, match="a pointer for machine is empty"):
        covers(request, machine=[""])
    with pytest.raises(ValueError, match="BeforeClusterCreate is not an in-place hook: it has no current objects"):
        covers(BeforeClusterCreateRequest())


def test_a_handler_answers_it_as_it_is() -> None:
    extension = Extension()

    @extension.handler
    def can_update(request: CanUpdateMachineRequest) -> CanUpdateMachineResponse | Answer:
        return covers(request, machine=["/spec/v"]) if request.handler else done()

    response = extension.call(machines({"spec": {"v": 1}}, {"spec": {"v": 2}}), handler="can-update")
    assert response.machine_patch.patch == b'{"spec":{"v":2}}'
