# Copyright The Hookgate Authors.
# SPDX-License-Identifier: Apache-2.0

"""Handlers that are coroutines."""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
import pytest

from hookgate import Answer, Extension, Failure, StatusError, done, wait
from hookgate.hooks.v1alpha1 import (
    RESPONSE_STATUS_FAILURE,
    BeforeClusterCreateRequest,
    BeforeClusterCreateResponse,
    BeforeClusterDeleteRequest,
)
from hookgate.hooks.v1alpha1.lifecycle_hooks_pb2_grpc import LifecycleHooksServiceStub

Start = Callable[..., tuple[Any, grpc.Channel]]
# How long a test waits for what must happen, in seconds.
PATIENCE = 60


class Held:
    """A handler that waits until it is cancelled."""

    def __init__(self) -> None:
        self.running, self.cancelled = threading.Event(), threading.Event()
        self.extension = Extension()
        self.extension.handler(name="create")(self.create)

    async def create(self, request: BeforeClusterCreateRequest) -> Answer:
        """Waits."""
        self.running.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.cancelled.set()
            raise
        return done()


def kinds(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Returns the kinds of the failed calls that are logged."""
    fields: list[dict[str, Any]] = [getattr(record, "fields", {}) for record in caplog.records]
    return [f["kind"] for f in fields if "kind" in f]


def test_more_coroutines_run_at_once_than_there_are_workers(start: Start) -> None:
    extension, calls, arrived, together, threads = Extension(), 5, [], asyncio.Event(), set()

    @extension.handler
    async def create(request: BeforeClusterCreateRequest, context: grpc.ServicerContext) -> Answer:
        arrived.append(request)
        threads.add(threading.current_thread())
        if len(arrived) == calls:
            together.set()
        await together.wait()
        return wait(1, str(context.peer()[:5]))

    @extension.handler
    def delete(request: BeforeClusterDeleteRequest) -> Answer:
        return done()

    _, channel = start(extension, workers=1)
    stub = LifecycleHooksServiceStub(channel)
    with ThreadPoolExecutor(calls) as pool:
        futures = [pool.submit(stub.BeforeClusterCreate, BeforeClusterCreateRequest(), timeout=PATIENCE) for _ in range(calls)]
        assert {future.result().message for future in futures} == {"ipv4:"}
    assert len(threads) == 1
    assert stub.BeforeClusterDelete(BeforeClusterDeleteRequest(), timeout=PATIENCE).status == 1


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (Failure("no quota"), "no quota"),
        (KeyError("s3cr3t"), "internal error (KeyError)"),
        (asyncio.CancelledError(), "internal error (CancelledError)"),
    ],
)
def test_what_a_coroutine_raises(start: Start, error: BaseException, text: str) -> None:
    extension = Extension()

    @extension.handler
    async def create(request: BeforeClusterCreateRequest) -> Answer:
        await asyncio.sleep(0)
        raise error

    _, channel = start(extension)
    responses = [
        LifecycleHooksServiceStub(channel).BeforeClusterCreate(BeforeClusterCreateRequest(), timeout=PATIENCE),
        extension.call(BeforeClusterCreateRequest()),
    ]
    for response in responses:
        assert response.status == RESPONSE_STATUS_FAILURE
        assert text in response.message


def test_a_status_of_a_coroutine(start: Start) -> None:
    extension = Extension()

    @extension.handler
    async def create(request: BeforeClusterCreateRequest, context: grpc.ServicerContext) -> Answer:
        if request.settings.get("abort"):
            context.abort(grpc.StatusCode.UNAVAILABLE, "come back")
        raise StatusError(grpc.StatusCode.INVALID_ARGUMENT, "cluster: there is none")

    _, channel = start(extension)
    call = LifecycleHooksServiceStub(channel).BeforeClusterCreate
    for settings, want in (({"abort": "1"}, "UNAVAILABLE"), ({}, "INVALID_ARGUMENT")):
        with pytest.raises(grpc.RpcError) as error:
            call(BeforeClusterCreateRequest(settings=settings), timeout=PATIENCE)
        status: Any = error.value
        assert status.code().name == want


def test_a_coroutine_is_called_in_the_process_also_from_a_loop() -> None:
    extension = Extension()

    @extension.handler
    async def create(request: BeforeClusterCreateRequest) -> BeforeClusterCreateResponse:
        await asyncio.sleep(0)
        return BeforeClusterCreateResponse(message="here")

    async def inside() -> Any:
        return extension.call(BeforeClusterCreateRequest())

    assert extension.call(BeforeClusterCreateRequest()).message == "here"
    assert asyncio.run(inside()).message == "here"


def test_the_end_of_its_time_cancels_a_coroutine(start: Start, caplog: pytest.LogCaptureFixture) -> None:
    held = Held()
    server, channel = start(held.extension)
    with caplog.at_level("INFO", "hookgate"):
        with pytest.raises(grpc.RpcError) as error:
            LifecycleHooksServiceStub(channel).BeforeClusterCreate(BeforeClusterCreateRequest(), timeout=0.5)
        status: Any = error.value
        assert status.code().name == "DEADLINE_EXCEEDED"
        assert held.cancelled.wait(PATIENCE)
        assert server.stop(PATIENCE)
    assert kinds(caplog) in (["Timeout"], ["Canceled"])  # whether the caller or the server was the first to see it


def test_a_caller_that_leaves_cancels_a_coroutine(start: Start, caplog: pytest.LogCaptureFixture) -> None:
    held = Held()
    server, channel = start(held.extension)
    with caplog.at_level("INFO", "hookgate"):
        call = LifecycleHooksServiceStub(channel).BeforeClusterCreate.future(BeforeClusterCreateRequest(), timeout=PATIENCE)
        assert held.running.wait(PATIENCE)
        call.cancel()
        assert held.cancelled.wait(PATIENCE)
        assert server.stop(PATIENCE)
    assert kinds(caplog) == ["Canceled"]


def test_stopping_cancels_coroutines_that_do_not_end(start: Start) -> None:
    held = Held()
    server, channel = start(held.extension)
    call = LifecycleHooksServiceStub(channel).BeforeClusterCreate.future(BeforeClusterCreateRequest(), timeout=PATIENCE)
    assert held.running.wait(PATIENCE)
    assert server.stop(0.1) is False
    assert held.cancelled.wait(PATIENCE)
    assert isinstance(call.exception(), grpc.RpcError)
    assert server.stop()


def test_a_coroutine_that_holds_the_loop_is_left_behind(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hookgate.loops.END", 0.1)
    extension, running, release = Extension(), threading.Event(), threading.Event()

    @extension.handler
    async def create(request: BeforeClusterCreateRequest) -> Answer:
        running.set()
        release.wait(PATIENCE)
        return done()

    server, channel = start(extension)
    call = LifecycleHooksServiceStub(channel).BeforeClusterCreate.future(BeforeClusterCreateRequest(), timeout=PATIENCE)
    assert running.wait(PATIENCE)
    assert server.stop(0.1) is False
    release.set()
    assert isinstance(call.exception(), grpc.RpcError)


def test_the_callers_trace_goes_on_in_a_coroutine(start: Start) -> None:
    from opentelemetry import trace

    extension, seen = Extension(), []

    @extension.handler
    async def create(request: BeforeClusterCreateRequest) -> Answer:
        await asyncio.sleep(0)
        seen.append(trace.get_current_span().get_span_context())
        return done()

    _, channel = start(extension)
    parent = "00-0123456789abcdef0123456789abcdef-0123456789abcdef-01"
    call = LifecycleHooksServiceStub(channel).BeforeClusterCreate
    call(BeforeClusterCreateRequest(), metadata=(("traceparent", parent),), timeout=PATIENCE)
    call(BeforeClusterCreateRequest(), timeout=PATIENCE)
    assert f"{seen[0].trace_id:032x}-{seen[0].span_id:016x}" == parent[3:-3]
    assert not seen[1].is_valid
