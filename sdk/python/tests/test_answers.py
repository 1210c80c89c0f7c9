# Copyright The Hookgate Authors.
# SPDX-License-Identifier: Apache-2.0

"""What handlers answer, and what becomes of their mistakes."""

import logging
from collections.abc import Callable
from typing import Any

import pytest

from hookgate import Answer, Extension, Failure, Patches, StatusError, done, fail, wait
from hookgate.hooks.v1alpha1 import (
    RESPONSE_STATUS_FAILURE,
    RESPONSE_STATUS_SUCCESS,
    BeforeClusterCreateRequest,
    BeforeClusterCreateResponse,
    BeforeClusterUpgradeResponse,
    GeneratePatchesRequest,
)


def answer(body: Callable[[], Any]) -> Any:
    """Returns the response of a handler with this body."""
    extension = Extension()

    @extension.handler
    def create(request: BeforeClusterCreateRequest) -> Answer:
        return body()  # type: ignore[no-any-return]

    return extension.call(BeforeClusterCreateRequest())


def raising(error: BaseException) -> Callable[[], Any]:
    """Returns a body that raises an exception."""

    def body() -> None:
        raise error

    return body


def test_done_wait_and_fail() -> None:
    assert answer(done) == BeforeClusterCreateResponse(status=RESPONSE_STATUS_SUCCESS)
    waiting = BeforeClusterCreateResponse(status=RESPONSE_STATUS_SUCCESS, message="a quota", retry_after_seconds=30)
    assert answer(lambda: wait(30, "a quota")) == waiting
    assert answer(lambda: fail("no quota")) == BeforeClusterCreateResponse(status=RESPONSE_STATUS_FAILURE, message="no quota")


def test_a_response_message_is_answered_as_it_is() -> None:
    assert answer(lambda: BeforeClusterCreateResponse(message="m")) == BeforeClusterCreateResponse(
        status=RESPONSE_STATUS_SUCCESS, message="m"
    )
    assert answer(lambda: BeforeClusterCreateResponse(status=RESPONSE_STATUS_FAILURE)).status == RESPONSE_STATUS_FAILURE


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (lambda: None, 'handler "create" returned nothing: return done(), wait(), fail() or a BeforeClusterCreateResponse'),
        (lambda: True, 'handler "create" returned a bool: return'),
        (BeforeClusterUpgradeResponse, 'handler "create" returned a BeforeClusterUpgradeResponse: return'),
        (lambda: done, 'handler "create" returned a function: return'),
        (raising(Failure("quota exceeded")), "quota exceeded"),
        (raising(Failure()), 'handler "create" failed, and did not say why'),
        (
            raising(KeyError("s3cr3t")),
            'handler "create": internal error (KeyError); search the log of the extension for the call\'s id',
        ),
        (raising(SystemExit(3)), 'handler "create": internal error (SystemExit)'),
        (raising(RecursionError()), 'handler "create": internal error (RecursionError)'),
        (lambda: wait(0, "m"), 'handler "create": internal error (ValueError)'),
        (lambda: Patches(GeneratePatchesRequest()), "BeforeClusterCreate has no patches: answer done(), wait() or fail()"),
    ],
)
def test_mistakes_are_failures(body: Callable[[], Any], text: str) -> None:
    response = answer(body)
    assert response.status == RESPONSE_STATUS_FAILURE
    assert response.message.startswith(text)
    assert "s3cr3t" not in str(response)


def test_an_exception_is_logged_with_its_stack(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, "hookgate"):
        answer(raising(KeyError("s3cr3t")))
        answer(lambda: fail("no quota"))
        answer(done)
    error, failed, succeeded = caplog.records
    assert error.levelname == "ERROR"
    assert "KeyError: 's3cr3t'" in caplog.text
    assert (failed.levelname, failed.getMessage()) == ("INFO", "BeforeClusterCreate create: no quota")
    fields = succeeded.fields  # type: ignore[attr-defined]
    assert fields.pop("took") >= 0
    assert fields == {"msg": "call answered", "hook": "BeforeClusterCreate", "handler": "create"}
    assert succeeded.levelname == "DEBUG"


def test_a_status_is_none_of_a_failure() -> None:
    import grpc

    with pytest.raises(StatusError, match="come back") as error:
        answer(raising(StatusError(grpc.StatusCode.UNAVAILABLE, "come back")))
    assert error.value.code is grpc.StatusCode.UNAVAILABLE


def test_a_text_that_is_no_unicode_is_answered_all_the_same() -> None:
    assert answer(lambda: fail("half of \ud83d")).message == "half of ?"
    assert answer(raising(Failure("half of \ud83d"))).message == "half of ?"


def test_only_some_hooks_can_wait() -> None:
    extension = Extension()

    @extension.handler
    def patch(request: GeneratePatchesRequest) -> Answer:
        return wait(30, "m")

    response = extension.call(GeneratePatchesRequest())
    assert response.message == "GeneratePatches has no retryAfterSeconds: answer done() or fail(), not wait()"


@pytest.mark.parametrize("seconds", [0, -1, True, 1.5, "30", 2**31])
def test_wait_wants_seconds(seconds: Any) -> None:
    with pytest.raises(ValueError, match="is not a number of seconds: want an integer of at least 1"):
        wait(seconds, "m")


def test_messages_are_not_empty() -> None:
    with pytest.raises(ValueError, match="say what the caller waits for"):
        wait(1, "")
    with pytest.raises(ValueError, match="say what is wrong"):
        fail("")
