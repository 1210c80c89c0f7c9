# Copyright The Hookgate Authors.
# SPDX-License-Identifier: Apache-2.0

"""The examples of the README, which is the page of the package in a registry."""

import re
from importlib.metadata import metadata
from typing import Any


def test_the_examples_work() -> None:
    text = metadata("hookgate")["Description"]
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert len(blocks) == 3
    names: dict[str, Any] = {"__name__": "readme"}
    for block in blocks:
        exec(block, names)
    names["test_waits"]()
    names["test_conformance"]()
    template = {"kind": "KubeadmControlPlaneTemplate"}
    request = {
        "kind": "GeneratePatchesRequest",
        "variables": [{"name": "repository", "value": "r"}],
        "items": [{"uid": "1", "object": template}],
    }
    response = names["extension"].call(request)
    assert [len(p) for p in names["patches"](response).values()] == [1]


def test_the_package_can_be_published() -> None:
    about = metadata("hookgate")
    assert (about["Name"], about["License-Expression"], about["License-File"]) == ("hookgate", "Apache-2.0", "LICENSE")
    assert about["Requires-Python"] == ">=3.10"
