# Copyright The Hookgate Authors.
# SPDX-License-Identifier: Apache-2.0

"""Runs handlers that are coroutines."""

import asyncio
import contextlib
import contextvars
import threading
from collections.abc import Callable, Coroutine
from concurrent import futures
from typing import Any

Call = Callable[[], Any]

# How long the coroutines of a server may take to end when it has stopped, in seconds.
END = 1


def run(asynchronous: bool, call: Call) -> Any:
    """Calls a handler. A coroutine gets an event loop of its own, in a thread: the caller's thread may have one."""
    if not asynchronous:
        return call()
    with futures.ThreadPoolExecutor(1, thread_name_prefix="hookgate-loop") as thread:
        return thread.submit(contextvars.copy_context().run, lambda: asyncio.run(call())).result()


class Loop:
    """An event loop in a thread of its own. It is safe for concurrent use."""

    def __init__(self) -> None:
        started: futures.Future[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = futures.Future()
        self._thread = threading.Thread(target=lambda: asyncio.run(_until_stopped(started)), name="hookgate-loop", daemon=True)
        self._thread.start()
        self._loop, self._stopped = started.result()

    def run(self, call: Call, when_ended: Callable[[Callable[[], None]], bool]) -> Any:
        """Runs a coroutine in the context of this thread, and returns what it returns.

        when_ended registers what cancels it once the call has ended, or returns False if it has ended already.
        """
        task = _Task(self._loop, call())
        if not when_ended(task.cancel):
            task.cancel()
        return task.result.result()

    def stop(self) -> None:
        """Cancels the coroutines that are left, and stops the loop. A coroutine that holds it is left behind."""
        with contextlib.suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self._stopped.set)
        self._thread.join(END)


async def _until_stopped(started: "futures.Future[tuple[asyncio.AbstractEventLoop, asyncio.Event]]") -> None:
    stopped = asyncio.Event()
    started.set_result((asyncio.get_running_loop(), stopped))
    await stopped.wait()  # then asyncio.run cancels what is left


class _Task:
    """A coroutine that runs in a loop. Unlike that of asyncio.run_coroutine_threadsafe, its result is there only when the
    coroutine has ended, also if it was cancelled: until then, the call is in flight."""

    def __init__(self, loop: asyncio.AbstractEventLoop, coroutine: Coroutine[Any, Any, Any]) -> None:
        self.result: futures.Future[Any] = futures.Future()
        self._loop = loop
        loop.call_soon_threadsafe(self._begin, coroutine)

    def cancel(self) -> None:
        if not self.result.done():
            with contextlib.suppress(RuntimeError):  # the loop is closed
                self._loop.call_soon_threadsafe(lambda: self._task.cancel())  # after _begin

    def _begin(self, coroutine: Coroutine[Any, Any, Any]) -> None:
        self._task = self._loop.create_task(coroutine)
        self._task.add_done_callback(self._end)

    def _end(self, task: "asyncio.Task[Any]") -> None:
        if task.cancelled():
            self.result.set_exception(asyncio.CancelledError())
        elif (error := task.exception()) is not None:
            self.result.set_exception(error)
        else:
            self.result.set_result(task.result())
