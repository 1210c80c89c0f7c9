# Copyright The Hookgate Authors.
# SPDX-License-Identifier: Apache-2.0

"""Serves an extension over gRPC."""

import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from concurrent import futures
from typing import TYPE_CHECKING, Any, NoReturn, TypedDict

import grpc
from google.protobuf.message import DecodeError, Message
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from hookgate import addresses, certificates, logs, loops
from hookgate.answers import StatusError, printable
from hookgate.contract import Hook
from hookgate.objects import invalid

if TYPE_CHECKING:
    from hookgate.extension import Extension

log = logging.getLogger("hookgate")

# Where an extension listens, unless an argument or the environment says otherwise.
ADDRESS, ADDRESS_VARIABLE = "127.0.0.1:9090", "EXTENSION_ADDRESS"
# Cluster API's limit, in both directions. gRPC's is 4 MiB, which the templates of one cluster can exceed.
MESSAGE_LIMIT = 20 << 20
# How long calls may take to finish once the server stops, in seconds. A handler's timeout is 30 s at most.
GRACE = 30
# The metadata in which a gateway sends the id of a call, and the longest that it sends.
CALL_ID, CALL_ID_LIMIT = "hookgate-call-id", 64


class Server:
    """A running server. It is safe for concurrent use, and stops at the end of a with block."""

    def __init__(
        self, server: grpc.Server, pool: futures.Executor, servicer: health.HealthServicer, address: str, calls: "_Calls"
    ) -> None:
        self.address = address
        self._server, self._pool, self._health, self._calls = server, pool, servicer, calls

    @property
    def url(self) -> str:
        """The address as hookgate's commands and ExtensionConfigs take it."""
        return self.address if self.address.startswith("unix://") else f"{self._calls.scheme}://{self.address}"

    def stop(self, grace: float = GRACE) -> bool:
        """Takes no more calls, and waits for those in flight. It reports whether all have ended within grace seconds."""
        self._health.enter_graceful_shutdown()
        idle, end = self._calls.in_flight == 0, time.monotonic() + grace
        self._server.stop(grace).wait()
        in_time = idle or time.monotonic() < end  # else gRPC has cancelled them
        self._pool.shutdown(wait=False)
        self._calls.stop()
        return in_time and self._calls.in_flight == 0

    def __enter__(self) -> "Server":
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


class Options(TypedDict, total=False):
    """How an extension is served.

    tls_cert and tls_key are files in PEM, which are read again when they change; with client_ca, a file with CA
    certificates, callers must show a certificate. Beyond loopback, a server without TLS is refused unless insecure is set.
    workers plain functions run at the same time (16); coroutines share a thread. Of the calls in flight, those beyond
    concurrency (100) are refused with RESOURCE_EXHAUSTED.
    """

    tls_cert: str
    tls_key: str
    client_ca: str
    insecure: bool
    workers: int
    concurrency: int


def serve(extension: "Extension", address: str | None, options: Options) -> None:
    """Serves an extension until SIGTERM or SIGINT, and then finishes the calls in flight."""
    logs.configure()
    stop = threading.Event()
    before = {number: signal.signal(number, lambda *_: stop.set()) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        server = start(extension, address, options)
    except (OSError, ValueError) as error:
        sys.exit(f"hookgate: {error}")
    stop.wait()
    for number, handler in before.items():
        signal.signal(number, handler)  # so a second signal ends the program at once
    if not server.stop(GRACE):
        log.error("stopped with calls that have not ended within %d s", GRACE)
        logging.shutdown()
        os._exit(1)  # a thread that does not end would keep the program


def start(extension: "Extension", address: str | None, options: Options) -> Server:
    """Starts a server. It raises an OSError if it cannot listen, and a ValueError for options that make no sense."""
    workers, concurrency = options.get("workers", 16), options.get("concurrency", 100)
    if workers < 1 or concurrency < workers:
        raise ValueError(f"want at least one worker, and concurrency of at least that: not {workers} and {concurrency}")
    if not extension.handlers:
        raise ValueError("the extension has no handlers: register one with @extension.handler")
    where = addresses.parse(address or os.environ.get(ADDRESS_VARIABLE) or ADDRESS)
    credentials = certificates.credentials(options.get("tls_cert"), options.get("tls_key"), options.get("client_ca"))
    if credentials is None and not where.is_local and not options.get("insecure"):
        raise ValueError(
            f"{where.text} is not on loopback, and everyone may call it: "
            "state tls_cert and tls_key, or insecure=True if something else keeps others away"
        )
    asynchronous = any(handler.asynchronous for handler in extension.handlers)
    # A call of a coroutine waits for it in a thread.
    pool = futures.ThreadPoolExecutor(concurrency if asynchronous else workers, thread_name_prefix="hookgate")
    calls = _Calls(extension, "grpcs" if credentials else "grpc", workers)
    server = grpc.server(
        pool,
        maximum_concurrent_rpcs=concurrency,
        options=[
            ("grpc.max_receive_message_length", MESSAGE_LIMIT),
            ("grpc.max_send_message_length", MESSAGE_LIMIT),
            ("grpc.so_reuseport", 0),  # two servers at one address are a mistake
        ],
    )
    server.add_generic_rpc_handlers((calls,))
    servicer = health.HealthServicer()
    servicer.set("", health_pb2.HealthCheckResponse.SERVING)
    health_pb2_grpc.add_HealthServicer_to_server(servicer, server)
    services = {hook.service for hook in calls.hooks.values()}
    reflection.enable_server_reflection([*sorted(services), health.SERVICE_NAME, reflection.SERVICE_NAME], server)
    server.add_generic_rpc_handlers((_Unknown(),))  # the last to be asked
    listening = where.bind(lambda text: _add_port(server, text, credentials))
    calls.start(asynchronous)
    server.start()
    logs.write(logging.INFO, f"listening on {listening}", {"address": listening})
    return Server(server, pool, servicer, listening, calls)


def _add_port(server: grpc.Server, address: str, credentials: grpc.ServerCredentials | None) -> int:
    if credentials is None:
        return int(server.add_insecure_port(address))
    return int(server.add_secure_port(address, credentials))


def _metadata(context: grpc.ServicerContext) -> tuple[dict[str, str], str]:
    """Returns the metadata of a call, and the id that the gateway has given it."""
    metadata = {key: value for key, value in context.invocation_metadata() if isinstance(value, str)}
    return metadata, metadata.get(CALL_ID, "")[:CALL_ID_LIMIT]


class _Unknown(grpc.GenericRpcHandler):
    """Refuses hooks that the extension does not have, as gRPC would, and logs it."""

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> Any:
        """Returns what refuses an rpc, or nothing for one of gRPC's own that is not served: clients try them."""
        path = handler_call_details.method
        if path.startswith("/grpc."):
            return None
        service, _, name = path.rpartition("/")
        hook = name[:100]
        # A gateway calls the discoveries of all groups.
        level = logging.DEBUG if service.endswith(".DiscoveryService") else logging.INFO

        def refuse(request: bytes, context: grpc.ServicerContext) -> NoReturn:
            text = f"the extension has no handler of {hook}"
            logs.Call(hook, "", _metadata(context)[1]).failed("UnknownHook", text, code="UNIMPLEMENTED", level=level)
            context.abort(grpc.StatusCode.UNIMPLEMENTED, text)

        return grpc.unary_unary_rpc_method_handler(refuse)


class _Calls(grpc.GenericRpcHandler):
    """The rpcs of an extension that have handlers."""

    def __init__(self, extension: "Extension", scheme: str, workers: int) -> None:
        self.hooks = extension.methods()
        self.scheme = scheme
        self.in_flight = 0
        self._changed = threading.Condition()
        self._workers = threading.BoundedSemaphore(workers)
        self._loop: loops.Loop | None = None
        self._extension = extension
        self._rpcs = {path: self._rpc(hook) for path, hook in self.hooks.items()}
        self._traced = "opentelemetry" in sys.modules  # the program has it, and not only this machine

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> Any:
        """Returns the rpc of a path."""
        return self._rpcs.get(handler_call_details.method)

    def start(self, asynchronous: bool) -> None:
        """Starts the event loop, if there are coroutines to run."""
        if asynchronous:
            self._loop = loops.Loop()

    def stop(self) -> None:
        """Stops the event loop, and waits until the coroutines that this cancels are no calls in flight any more."""
        if self._loop:
            self._loop.stop()
            with self._changed:
                self._changed.wait_for(lambda: self.in_flight == 0, loops.END)

    def _run(self, asynchronous: bool, call: Callable[[], Any], context: grpc.ServicerContext) -> Any:
        if asynchronous and self._loop:
            return self._loop.run(call, context.add_callback)
        with self._workers:
            return call()

    def _rpc(self, hook: Hook) -> Any:
        def behaviour(request: bytes, context: grpc.ServicerContext) -> Any:
            with self._changed:
                self.in_flight += 1
            try:
                return self._answer(hook, _parse(hook, request), context)
            except StatusError as error:
                context.abort(error.code, printable(str(error)))
            finally:
                with self._changed:
                    self.in_flight -= 1
                    self._changed.notify_all()

        return grpc.unary_unary_rpc_method_handler(behaviour, response_serializer=hook.response.SerializeToString)

    def _answer(self, hook: Hook, request: Any, context: grpc.ServicerContext) -> Any:
        metadata, call_id = _metadata(context)

        def run(asynchronous: bool, call: Callable[[], Any]) -> Any:
            return self._run(asynchronous, call, context)

        if not self._traced:
            return self._extension.answer(hook, request, context, call_id, run)
        from opentelemetry import context as current
        from opentelemetry import propagate

        token = current.attach(propagate.extract(metadata))
        try:
            return self._extension.answer(hook, request, context, call_id, run)
        finally:
            current.detach(token)


def _parse(hook: Hook, request: bytes) -> Message:
    try:
        return hook.request.FromString(request)
    except DecodeError:  # which gRPC would log with a stack
        invalid(f"the request cannot be read as {hook.request.__name__}")
