# Copyright The Hookgate Authors.
# SPDX-License-Identifier: Apache-2.0

"""The helpers for tests: requests from files, calls in the process, and the conformance checks."""

import json
from pathlib import Path
from typing import Any

import pytest

import hookgate.hooks.v1alpha1
import hookgate.infrastructure.v1alpha1
from hookgate import Answer, Extension, Patches, StatusError, done, load, wait
from hookgate.hooks.v1alpha1 import (
    PATCH_TYPE_JSON_PATCH,
    BeforeClusterCreateRequest,
    BeforeClusterUpgradeRequest,
    BeforeClusterUpgradeResponse,
    DiscoveryRequest,
    GeneratePatchesRequest,
    GeneratePatchesResponse,
    GeneratePatchesResponseItem,
    RawExtension,
)
from hookgate.testing import check, patched


def plain(message: Any) -> Any:
    """Returns a message as values that can be compared, with its JSON texts decoded."""
    values: dict[str, Any] = {}
    for field, value in message.ListFields():
        if field.name == "raw":
            return json.loads(value)
        if field.message_type and field.message_type.GetOptions().map_entry:
            values[field.name] = {k: v if isinstance(v, str) else plain(v) for k, v in value.items()}
        elif field.is_repeated:
            values[field.name] = [plain(v) if field.message_type else v for v in value]
        else:
            values[field.name] = plain(value) if field.message_type else value
    return values


@pytest.mark.parametrize(
    ("package", "folder"), [(hookgate.hooks.v1alpha1, "v1alpha1"), (hookgate.infrastructure.v1alpha1, "infrastructure/v1alpha1")]
)
def test_golden_vectors(repository: Path, package: Any, folder: str) -> None:
    from hookgate import requests

    types = {name.lower(): getattr(package, name) for name in dir(package)}
    files = sorted((repository / "proto/testdata" / folder).glob("*.json"))
    assert len(files) > 10
    for file in files:
        hook, kind, _ = file.name.split(".")
        message = types[hook + kind]
        want = message.FromString(file.with_suffix(".binpb").read_bytes())
        assert plain(requests.message(message, requests.read(file))) == plain(want), file.name


def upgrades() -> Extension:
    """Returns an extension that answers with what it was asked."""
    extension = Extension()

    @extension.handler
    def approve(request: BeforeClusterUpgradeRequest) -> Answer:
        name = load(request, "cluster")["metadata"]["name"]
        return wait(30, f"{name} to {request.to_kubernetes_version}, {', '.join(sorted(request.unknown_members))}")

    @extension.handler
    def create(request: BeforeClusterCreateRequest) -> Answer:
        return done()

    return extension


def test_a_request_comes_from_a_file(repository: Path, tmp_path: Path) -> None:
    file = repository / "examples/requests/before-cluster-upgrade.yaml"
    assert upgrades().call(file).message == "payments-eu-west-1 to v1.34.0, "
    assert upgrades().call(str(file), handler="approve").retry_after_seconds == 30
    as_json = tmp_path / "request.json"
    as_json.write_text('{"toKubernetesVersion": "v2", "cluster": {"metadata": {"name": "c"}}, "dryRun": null, "steps": [1]}')
    assert upgrades().call(as_json, hook="BeforeClusterUpgrade").message == "c to v2, dryRun, steps"
    assert upgrades().call(as_json, handler="approve").message == "c to v2, dryRun, steps"
    with pytest.raises(
        ValueError, match='the request is for the hook "", handler "": name one hook of the extension: BeforeClusterUpgrade,'
    ):
        upgrades().call(as_json)


def test_a_message_is_not_changed_by_a_call() -> None:
    request = BeforeClusterUpgradeRequest(cluster=RawExtension(raw=b'{"metadata": {"name": "c"}}'))
    assert upgrades().call(request, handler="approve").message == "c to , "
    assert request.handler == ""
    with pytest.raises(StatusError, match='BeforeClusterUpgrade has no handler "create", but "approve"'):
        upgrades().call(request, handler="create")
    with pytest.raises(ValueError, match='the request is for the hook "GeneratePatches"'):
        upgrades().call(GeneratePatchesRequest())


def test_a_file_that_is_no_request(tmp_path: Path) -> None:
    for name, text, want in (("a.json", "{", "Expecting"), ("b.yaml", "a: [", "expected"), ("c.yaml", "- a", "not an object")):
        (tmp_path / name).write_text(text)
        with pytest.raises(ValueError, match=f"{name}: .*{want}" if want != "expected" else name):
            upgrades().call(tmp_path / name)


def test_times_in_yaml_are_texts(tmp_path: Path) -> None:
    (tmp_path / "r.yaml").write_text("cluster: {metadata: {name: 2026-03-02T08:14:55Z}}")
    assert upgrades().call(tmp_path / "r.yaml", handler="approve").message == "2026-03-02T08:14:55Z to , "


@pytest.mark.parametrize(
    ("request_json", "text"),
    [
        ({"toKubernetesVersion": 1}, "BeforeClusterUpgradeRequest.toKubernetesVersion: want a text"),
        ({"settings": {"a": 1}}, "BeforeClusterUpgradeRequest.settings: want an object of texts"),
        ({"controlPlaneUpgrades": {}}, "BeforeClusterUpgradeRequest.controlPlaneUpgrades: want a list"),
        ({"controlPlaneUpgrades": [{"version": True}]}, "controlPlaneUpgrades[0].version: want a text"),
        ({"controlPlaneUpgrades": ["v1"]}, "controlPlaneUpgrades[0]: want an object"),
        ({"kind": "GeneratePatchesRequest"}, 'the request is for the hook "GeneratePatches"'),
        ({"apiVersion": "other/v1", "kind": "BeforeClusterUpgradeRequest"}, "name one hook of the extension"),
    ],
)
def test_a_request_that_is_none(request_json: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError) as error:  # noqa: PT011
        upgrades().call(request_json, hook="" if "kind" in request_json else "BeforeClusterUpgrade")
    assert text in str(error.value)


@pytest.mark.parametrize(
    ("response_json", "text"),
    [
        ({"status": "Banana"}, "status: want one of Success, Failure"),
        ({"status": "Unspecified"}, "status: want one of Success, Failure"),
        ({"status": {}}, "status: want one of Success, Failure"),
        ({"retryAfterSeconds": 2**31}, "retryAfterSeconds: want an integer of 32 bits"),
        ({"retryAfterSeconds": True}, "retryAfterSeconds: want an integer of 32 bits"),
    ],
)
def test_values_that_a_message_cannot_have(response_json: dict[str, Any], text: str) -> None:
    from hookgate import requests

    with pytest.raises(ValueError) as error:  # noqa: PT011
        requests.message(BeforeClusterUpgradeResponse, response_json)
    assert text in str(error.value)


def test_patches_of_an_example_are_applied(repository: Path) -> None:
    extension = Extension()

    @extension.handler
    def patch(request: GeneratePatchesRequest) -> Answer:
        answer = Patches(request)
        for item in answer.items(kind="DockerMachineTemplate"):
            item.set("/spec/template/spec/customImage", item.variable("nodeImage", str))
        return answer

    from hookgate import requests

    request = requests.message(GeneratePatchesRequest, requests.read(repository / "examples/requests/generate-patches.yaml"))
    objects = patched(request, extension.call(request))
    images = [o["spec"]["template"]["spec"].get("customImage") for o in objects.values()]
    assert images == [None, None, "registry.example.com/node:v1.34.0", "registry.example.com/node:v1.34.0"]


def test_conformance() -> None:
    check(upgrades_well(), "--strict", "--skip", "answers.quick")


def upgrades_well() -> Extension:
    """Returns an extension that keeps all rules."""
    extension = Extension()

    @extension.handler
    def approve(request: BeforeClusterUpgradeRequest) -> Answer:
        load(request, "cluster")
        return done()

    return extension


def test_conformance_says_which_rule_is_broken() -> None:
    extension = Extension()

    @extension.handler
    def patch(request: GeneratePatchesRequest) -> GeneratePatchesResponse:
        return GeneratePatchesResponse(items=[GeneratePatchesResponseItem(uid="x", patch_type=PATCH_TYPE_JSON_PATCH, patch=b"[]")])

    with pytest.raises(AssertionError) as error:
        check(extension, "--only", "patches")
    assert "FAIL  patches." in str(error.value)
    assert "ends with 1" in str(error.value)


def test_conformance_without_its_program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HOOKGATE_BIN")
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(AssertionError, match="put it into PATH, or its path into HOOKGATE_BIN"):
        check(upgrades())


def test_discovery_is_called_as_well() -> None:
    assert len(upgrades().call(DiscoveryRequest()).handlers) == 2
    assert len(upgrades().call({"kind": "DiscoveryRequest"}).handlers) == 2
