# Copyright The Hookgate Authors.
# SPDX-License-Identifier: Apache-2.0

"""The log, whose lines the packages of all languages write alike."""

import contextlib
import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import grpc
import pytest

from hookgate import Answer, Extension, StatusError, done, fail
from hookgate.hooks.v1alpha1 import BeforeClusterCreateRequest, BeforeClusterDeleteRequest
from hookgate.hooks.v1alpha1.lifecycle_hooks_pb2_grpc import LifecycleHooksServiceStub
from hookgate.infrastructure.v1alpha1 import DiscoverInfrastructureRequest
from hookgate.infrastructure.v1alpha1.discovery_pb2_grpc import DiscoveryServiceStub
from hookgate.logs import JSONFormatter


def raising(error: Exception) -> Callable[[], Answer]:
    """Returns what a handler does that raises an exception."""

    def body() -> Answer:
        raise error

    return body


def logged() -> Extension:
    """Returns an extension with the handlers that logs.json calls."""
    extension = Extension()

    def add(name: str, body: Callable[[], Answer]) -> None:
        @extension.handler(name=name)
        def handler(request: BeforeClusterCreateRequest) -> Answer:
            return body()

    add("done", done)
    add("refusing", lambda: fail("no quota"))
    add("unreadable", raising(StatusError(grpc.StatusCode.INVALID_ARGUMENT, "cluster: there is none")))
    add("unavailable", raising(StatusError(grpc.StatusCode.UNAVAILABLE, "come back")))
    add("broken", raising(KeyError("secret")))
    return extension


def test_lines(start: Callable[..., tuple[Any, grpc.Channel]], repository: Path, caplog: pytest.LogCaptureFixture) -> None:
    cases = json.loads((repository / "sdk/testdata/logs.json").read_text())
    caplog.set_level(logging.DEBUG, "hookgate")
    _, channel = start(logged())
    stub, discovery = LifecycleHooksServiceStub(channel), DiscoveryServiceStub(channel)
    metadata = (("hookgate-call-id", "c1"),)
    for name, case in cases.items():
        if name != "listening":
            caplog.clear()
            with contextlib.suppress(grpc.RpcError):
                if name == "BeforeClusterDelete":
                    stub.BeforeClusterDelete(BeforeClusterDeleteRequest(), metadata=metadata, timeout=60)
                elif name == "DiscoverInfrastructure":
                    discovery.DiscoverInfrastructure(DiscoverInfrastructureRequest(), metadata=metadata, timeout=60)
                else:
                    stub.BeforeClusterCreate(BeforeClusterCreateRequest(handler=name), metadata=metadata, timeout=60)
        (record,) = (record for record in caplog.records if record.name == "hookgate")
        line = json.loads(JSONFormatter().format(record))
        assert {key: line.pop(key) is not None for key in [*case["others"], "time"]}, name
        assert line == case["line"], name


def test_other_records_are_lines_too() -> None:
    record = logging.LogRecord("hookgate.acme", logging.WARNING, "", 0, "%d left", (3,), None)
    line = json.loads(JSONFormatter().format(record))
    assert (line["level"], line["msg"]) == ("WARN", "3 left")
