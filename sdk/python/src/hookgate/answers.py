# Copyright The Hookgate Authors.
# SPDX-License-Identifier: Apache-2.0

"""What a handler answers, besides the response message of its hook."""

from typing import Any

import grpc
from google.protobuf.message import Message

from hookgate.contract import Hook, enum_value

LARGEST_WAIT = 2**31 - 1


class Failure(Exception):
    """Ends a handler with the status Failure. Its text is for people, and is the same for the same request."""


class StatusError(Exception):
    """Ends a call with a gRPC status in place of an answer, such as INVALID_ARGUMENT for a request that cannot be read."""

    def __init__(self, code: grpc.StatusCode, text: str) -> None:
        super().__init__(text)
        self.code = code


class Answer:
    """An answer that becomes the response of whichever hook the handler is for."""

    def response(self, hook: Hook) -> Message:
        """Returns the response message of a hook."""
        raise NotImplementedError


class _Plain(Answer):
    def __init__(self, status: str, message: str = "", seconds: int = 0) -> None:
        self._status, self._message, self._seconds = status, message, seconds

    def __repr__(self) -> str:
        return f"{self._status}({self._message!r}, retry_after_seconds={self._seconds})"

    def response(self, hook: Hook) -> Message:
        response: Message = new_response(hook, self._status, self._message)
        if self._seconds:
            if not hook.response_has("retry_after_seconds"):
                raise Failure(f"{hook.name} has no retryAfterSeconds: answer done() or fail(), not wait()")
            response.retry_after_seconds = self._seconds  # type: ignore[attr-defined]
        return response


def done() -> Answer:
    """Answers Success: the caller goes on."""
    return _Plain("Success")


def wait(seconds: int, message: str) -> Answer:
    """Answers Success with retryAfterSeconds: the caller waits, and calls again. The message says what it waits for."""
    if isinstance(seconds, bool) or not isinstance(seconds, int) or not 1 <= seconds <= LARGEST_WAIT:
        raise ValueError(f"wait: {seconds!r} is not a number of seconds: want an integer of at least 1")
    if not message:
        raise ValueError("wait: the message is empty: say what the caller waits for")
    return _Plain("Success", message, seconds)


def fail(message: str) -> Answer:
    """Answers Failure: a problem that a person must solve. The message says which, and is the same for the same request."""
    if not message:
        raise ValueError("fail: the message is empty: say what is wrong")
    return _Plain("Failure", message)


def new_response(hook: Hook, status: str, message: str = "") -> Any:
    """Returns a new response of a hook with a status."""
    response: Any = hook.response()
    response.status = enum_value(response, "status", status)
    response.message = printable(message)
    return response


def printable(text: str) -> str:
    """Returns a text that UTF-8 can have. JSON can have half of a character, as in \\ud800."""
    return text.encode(errors="replace").decode()
