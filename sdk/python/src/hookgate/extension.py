# Copyright The Hookgate Authors.
# SPDX-License-Identifier: Apache-2.0

"""An extension: its handlers, its discovery, and how a call becomes an answer."""

import asyncio
import functools
import inspect
import re
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal, TypeVar, overload

import grpc
from google.protobuf.message import Message

from hookgate import logs, loops
from hookgate.answers import Answer, Failure, StatusError, new_response, printable
from hookgate.contract import Hook, discovery_of, enum_value, hook_of

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from hookgate.server import Options, Server

F = TypeVar("F", bound=Callable[..., Answer | Message | Coroutine[Any, Any, Answer | Message]])
# How a handler is run: whether it is a coroutine function, and the call of it.
Run = Callable[[bool, Callable[[], Any]], Any]
FailurePolicy = Literal["Fail", "Ignore"]

_NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")  # a DNS-1123 label
_VERSIONS = ("v1beta1", "v1beta2", None)
_INHERITED = "that of the extension"


@dataclass(frozen=True)
class Handler:
    """One handler, as it was registered."""

    name: str
    hook: Hook
    function: Callable[..., Any]
    takes_context: bool
    asynchronous: bool
    timeout: int
    failure_policy: FailurePolicy
    cluster_api_version: str | None


class Extension:
    """A Runtime Extension. Register its handlers, then serve it.

    Handlers that are plain functions are called from several threads at a time, and those that are coroutines run in one
    event loop. The end of a call's time, and a caller that leaves, cancel a coroutine.

    cluster_api_version is the version of Cluster API's objects that handlers read; the gateway converts others. With None,
    they come as they were sent. groups maps packages of protos to API groups, for hooks other than Hookgate's own.
    """

    def __init__(self, *, cluster_api_version: str | None = "v1beta2", groups: Mapping[str, str] | None = None) -> None:
        self._cluster_api_version = _version(cluster_api_version)
        self._groups = dict(groups or {})
        self._handlers: list[Handler] = []

    @overload
    def handler(self, function: F, /) -> F: ...
    @overload
    def handler(
        self,
        /,
        *,
        name: str | None = None,
        timeout: int = 10,
        failure_policy: FailurePolicy = "Fail",
        cluster_api_version: str | None = _INHERITED,
    ) -> Callable[[F], F]: ...
    def handler(
        self,
        function: Any = None,
        /,
        *,
        name: str | None = None,
        timeout: int = 10,
        failure_policy: FailurePolicy = "Fail",
        cluster_api_version: str | None = _INHERITED,
    ) -> Any:
        """Registers a function as a handler, and returns it. The annotation of its parameter says which hook it is for.

        The function, which may be async, answers done(), wait(), fail(), Patches, or the hook's response message, or raises
        Failure. With a second parameter it gets the call's grpc.ServicerContext. Its name is the handler's, with hyphens,
        unless name is stated. timeout, in seconds, and failure_policy are what discovery states.
        """

        def register(function: Any) -> Any:
            version = self._cluster_api_version if cluster_api_version == _INHERITED else _version(cluster_api_version)
            self._register(function, name, timeout, failure_policy, version)
            return function

        return register if function is None else register(function)

    @property
    def handlers(self) -> tuple[Handler, ...]:
        """The handlers, in the order of their registration."""
        return tuple(self._handlers)

    def serve(self, address: str | None = None, **options: "Unpack[Options]") -> None:
        """Serves until SIGTERM or SIGINT, and then finishes the calls in flight, for 30 seconds at most.

        address is HOST:PORT or unix:///PATH; by default, it is that of the environment's EXTENSION_ADDRESS, or
        127.0.0.1:9090. The options are hookgate.server.Options. The log is one JSON object a line on standard error,
        unless the program has configured logging. If it cannot listen, the program ends with a line that says why.
        """
        from hookgate import server

        server.serve(self, address, options)

    def start(self, address: str | None = None, **options: "Unpack[Options]") -> "Server":
        """Starts a server with the options of serve, and returns it, for programs that stop it themselves.

        It raises an OSError if it cannot listen, and a ValueError for options that make no sense.
        """
        from hookgate import server

        return server.start(self, address, options)

    def call(
        self,
        request: "Message | Mapping[str, Any] | str | PathLike[str]",
        *,
        hook: str = "",
        handler: str = "",
        context: Any = None,
    ) -> Any:
        """Calls a handler in this process, for tests. See hookgate.testing.call."""
        from hookgate import testing

        return testing.call(self, request, hook=hook, handler=handler, context=context)

    def methods(self) -> dict[str, Hook]:
        """Returns the hooks to serve, by the paths of their rpcs: those with handlers, and the discovery of each group."""
        hooks = [h.hook for h in self._handlers]
        hooks += [discovery_of(hook) for hook in hooks]
        return {f"/{hook.service}/{hook.name}": hook for hook in hooks}

    def answer(self, hook: Hook, request: Any, context: Any = None, call_id: str = "", run: Run = loops.run) -> Any:
        """Answers one call. It raises a StatusError for a call that has no answer."""
        if hook.is_discovery:
            return self._discover(hook, request, context, call_id, run)
        handler = self._select(hook, request.handler, call_id)
        return _invoke(handler, request, context, call_id, run)

    def _register(self, function: Any, name: str | None, timeout: int, failure_policy: FailurePolicy, version: str | None) -> None:
        label = name or getattr(function, "__name__", "").replace("_", "-")
        if not _NAME.fullmatch(label):
            raise ValueError(
                f'handler "{label}": the name is not a DNS-1123 label '
                "(a-z, 0-9 and hyphens within, at most 63): state one with name="
            )
        if isinstance(timeout, bool) or not isinstance(timeout, int) or not 0 <= timeout <= 30:
            raise ValueError(f'handler "{label}": the timeout is {timeout!r}: want 0 to 30 seconds')
        if failure_policy not in ("Fail", "Ignore"):
            raise ValueError(f'handler "{label}": the failure policy is {failure_policy!r}: want "Fail" or "Ignore"')
        try:
            hook, takes_context = self._signature(function)
            if not hook.is_discovery:
                discovery_of(hook)
        except ValueError as error:
            raise ValueError(f'handler "{label}": {error}') from None
        for other in self._handlers:
            if other.name == label or (hook.is_discovery and other.hook == hook):
                raise ValueError(f'handler "{label}": there is one for {other.hook.name} already: "{other.name}"')
        coroutine = inspect.iscoroutinefunction(function)
        self._handlers.append(Handler(label, hook, function, takes_context, coroutine, timeout, failure_policy, version))

    def _signature(self, function: Any) -> tuple[Hook, bool]:
        """Returns the hook of a function, and whether it takes the context of a call, too."""
        try:
            parameters = list(inspect.signature(function, eval_str=True).parameters.values())
        except NameError as error:
            raise ValueError(f"the annotation of its parameter cannot be read: {error}") from None
        if len(parameters) not in (1, 2):
            raise ValueError("want a function of the request, and of the call's grpc.ServicerContext if it needs it")
        request = parameters[0].annotation
        if not (isinstance(request, type) and issubclass(request, Message)):
            raise ValueError("annotate its parameter with the request of a hook, as in request: BeforeClusterCreateRequest")
        return hook_of(request, self._groups), len(parameters) == 2

    def _select(self, hook: Hook, name: str, call_id: str) -> Handler:
        """Returns the handler that a call is for."""

        def refused(kind: str, code: grpc.StatusCode, text: str) -> StatusError:
            logs.Call(hook.name, "", call_id).failed(kind, text, code=code.name)
            return StatusError(code, text)

        handlers = {h.name: h for h in self._handlers if h.hook.request is hook.request}
        known = ", ".join(f'"{n}"' for n in handlers)
        if not handlers:
            raise refused("UnknownHook", grpc.StatusCode.UNIMPLEMENTED, f"the extension has no handler of {hook.name}")
        if name:
            if name not in handlers:
                raise refused("UnknownHandler", grpc.StatusCode.NOT_FOUND, f'{hook.name} has no handler "{name}", but {known}')
            return handlers[name]
        if len(handlers) > 1:
            several = f"{hook.name} has several handlers: name one of {known}"
            raise refused("Ambiguous", grpc.StatusCode.INVALID_ARGUMENT, several)
        return next(iter(handlers.values()))

    def _discover(self, hook: Hook, request: Any, context: Any, call_id: str, run: Run) -> Any:
        """Lists the handlers of a package: in the answer of the extension's own handler of its discovery, if there is one."""
        own = next((h for h in self._handlers if h.hook.request is hook.request), None)
        response: Any = _invoke(own, request, context, call_id, run) if own else new_response(hook, "Success")
        if response.handlers or response.status != enum_value(response, "status", "Success"):
            return response
        for handler in self._handlers:
            if handler.hook.package != hook.package or handler.hook.is_discovery:
                continue
            entry = response.handlers.add(name=handler.name, timeout_seconds=handler.timeout)
            entry.request_hook.api_version, entry.request_hook.hook = handler.hook.api_version, handler.hook.name
            entry.failure_policy = enum_value(entry, "failure_policy", handler.failure_policy)
            entry.cluster_api_version = handler.cluster_api_version or ""
        return response


def _version(version: str | None) -> str | None:
    version = version or None
    if version not in _VERSIONS:
        raise ValueError(f'the version of objects is {version!r}: want "v1beta2", "v1beta1", or None for objects as they were sent')
    return version


def _invoke(handler: Handler, request: Message, context: Any, call_id: str, run: Run) -> Any:
    """Calls a handler, and writes the line of the log for it. Whatever the handler raises becomes an answer or a status."""
    log = logs.Call(handler.hook.name, handler.name, call_id)
    try:
        response = _response(handler, request, context, run)
    except Failure as error:
        response = new_response(handler.hook, "Failure", str(error) or f'handler "{handler.name}" failed, and did not say why')
    except StatusError as error:
        log.failed(_kind(error.code), str(error), code=error.code.name)
        raise
    except BaseException as error:  # also SystemExit, which would end the thread, and leave the caller without an answer
        if _aborted(error, context):
            log.failed(_kind(context.code()), printable(_text(context.details())), code=context.code().name)
            raise
        if isinstance(error, asyncio.CancelledError) and context is not None and not context.is_active():
            late = context.time_remaining() < 0.1  # the time of the caller is up a little earlier
            code = grpc.StatusCode.DEADLINE_EXCEEDED if late else grpc.StatusCode.CANCELLED
            text = "the call has ended before its handler"
            log.failed("Timeout" if late else "Canceled", text, code=code.name)
            raise StatusError(code, text) from None
        kind = type(error).__name__
        log.failed("Internal", f"{kind}: {error}")
        text = f'handler "{handler.name}": internal error ({kind}); search the log of the extension for the call\'s id'
        return new_response(handler.hook, "Failure", text)
    if response.status == enum_value(response, "status", "Failure"):
        log.failed("Failure", response.message)
    else:
        log.answered()
    return response


def _kind(code: grpc.StatusCode) -> str:
    """Returns the kind of a status with which a handler has ended a call."""
    return "InvalidRequest" if code == grpc.StatusCode.INVALID_ARGUMENT else "Status"


def _text(details: str | bytes | None) -> str:
    return details.decode(errors="replace") if isinstance(details, bytes) else details or ""


def _response(handler: Handler, request: Message, context: Any, run: Run) -> Any:
    """Returns the response message for what a handler returns."""
    arguments = (request, context) if handler.takes_context else (request,)
    returned = run(handler.asynchronous, functools.partial(handler.function, *arguments))
    if isinstance(returned, Answer):
        return returned.response(handler.hook)
    if isinstance(returned, handler.hook.response):
        response: Any = returned
        if not response.status:
            response.status = enum_value(response, "status", "Success")
        return response
    what = "nothing" if returned is None else f"a {type(returned).__name__}"
    raise Failure(f'handler "{handler.name}" returned {what}: return done(), wait(), fail() or a {handler.hook.response.__name__}')


def _aborted(error: BaseException, context: Any) -> bool:
    """Reports whether the handler has ended the call itself, with context.abort, which raises an Exception without text."""
    return type(error) is Exception and not error.args and getattr(context, "code", lambda: None)() is not None
