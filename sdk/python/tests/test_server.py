# Copyright The Hookgate Authors.
# SPDX-License-Identifier: Apache-2.0

"""Calls over real connections: what the server adds to the handlers."""

import json
import os
import signal
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from hookgate import Answer, Extension, StatusError, done, wait
from hookgate.hooks.v1alpha1 import (
    BeforeClusterCreateRequest,
    BeforeClusterDeleteRequest,
    BeforeClusterUpgradeRequest,
    DiscoveryRequest,
    RawExtension,
)
from hookgate.hooks.v1alpha1.discovery_pb2_grpc import DiscoveryServiceStub
from hookgate.hooks.v1alpha1.lifecycle_hooks_pb2_grpc import LifecycleHooksServiceStub

Start = Callable[..., tuple[Any, grpc.Channel]]
# How long a test waits for what must happen, in seconds.
PATIENCE = 60


def hello(body: Callable[[Any], Any] = lambda _: done()) -> Extension:
    """Returns an extension with one handler."""
    extension = Extension()

    @extension.handler
    def create(request: BeforeClusterCreateRequest) -> Answer:
        return body(request)  # type: ignore[no-any-return]

    return extension


def health(channel: grpc.Channel) -> int:
    """Returns what the health service says."""
    stub: Any = health_pb2_grpc.HealthStub(channel)
    return int(stub.Check(health_pb2.HealthCheckRequest(), timeout=PATIENCE).status)


def test_it_answers_over_grpc(start: Start) -> None:
    _, channel = start(hello(lambda _: wait(30, "a quota")))
    answer = LifecycleHooksServiceStub(channel).BeforeClusterCreate(BeforeClusterCreateRequest(), timeout=PATIENCE)
    assert (answer.retry_after_seconds, answer.message) == (30, "a quota")
    assert [h.name for h in DiscoveryServiceStub(channel).Discovery(DiscoveryRequest(), timeout=PATIENCE).handlers] == ["create"]
    assert health(channel) == health_pb2.HealthCheckResponse.SERVING
    listing = reflection_pb2.ServerReflectionRequest(list_services="")
    stub: Any = reflection_pb2_grpc.ServerReflectionStub(channel)
    (services,) = stub.ServerReflectionInfo(iter([listing]), timeout=PATIENCE)
    assert [s.name for s in services.list_services_response.service] == [
        "grpc.health.v1.Health",
        "grpc.reflection.v1alpha.ServerReflection",
        "hookgate.hooks.v1alpha1.DiscoveryService",
        "hookgate.hooks.v1alpha1.LifecycleHooksService",
    ]


def status_of(call: Callable[[], Any]) -> tuple[str, str]:
    """Returns the status with which a call ends."""
    with pytest.raises(grpc.RpcError) as error:
        call()
    status: Any = error.value
    return status.code().name, status.details()


def test_what_has_no_answer_has_a_status(start: Start) -> None:
    def broken(request: Any) -> Any:
        raise StatusError(grpc.StatusCode.INVALID_ARGUMENT, "cluster: Expecting value")

    _, channel = start(hello(broken))
    stub = LifecycleHooksServiceStub(channel)
    assert status_of(lambda: stub.BeforeClusterCreate(BeforeClusterCreateRequest(), timeout=PATIENCE)) == (
        "INVALID_ARGUMENT",
        "cluster: Expecting value",
    )
    unknown = BeforeClusterCreateRequest(handler="x")
    assert status_of(lambda: stub.BeforeClusterCreate(unknown, timeout=PATIENCE))[0] == "NOT_FOUND"
    path = "/hookgate.hooks.v1alpha1.LifecycleHooksService/BeforeClusterCreate"
    garbage: Any = channel.unary_unary(path)  # without serializers
    assert status_of(lambda: garbage(b"\xff", timeout=PATIENCE)) == (
        "INVALID_ARGUMENT",
        "the request cannot be read as BeforeClusterCreateRequest",
    )
    for other in (stub.BeforeClusterDelete, stub.BeforeClusterUpgrade):
        request = BeforeClusterDeleteRequest() if other is stub.BeforeClusterDelete else BeforeClusterUpgradeRequest()
        assert status_of(lambda other=other, request=request: other(request, timeout=PATIENCE))[0] == "UNIMPLEMENTED"  # type: ignore[misc]


def test_no_stack_and_no_text_of_an_exception_leaves(start: Start) -> None:
    def broken(request: Any) -> Any:
        raise KeyError("s3cr3t")

    _, channel = start(hello(broken))
    call = LifecycleHooksServiceStub(channel).BeforeClusterCreate
    answer, rpc = call.with_call(BeforeClusterCreateRequest(), timeout=PATIENCE)
    assert answer.status == 2
    everything = f"{answer} {rpc.code()} {rpc.details()} {rpc.trailing_metadata()} {rpc.initial_metadata()}"
    assert "s3cr3t" not in everything
    assert "Traceback" not in everything
    assert "KeyError" in answer.message


def test_a_handler_gets_the_context_of_its_call(start: Start, caplog: pytest.LogCaptureFixture) -> None:
    extension = Extension()

    @extension.handler
    def create(request: BeforeClusterCreateRequest, context: grpc.ServicerContext) -> Answer:
        if request.settings.get("abort"):
            context.abort(grpc.StatusCode.UNAVAILABLE, "come back")
        return wait(1, str(dict(context.invocation_metadata())["x-test"]))

    _, channel = start(extension)
    call = LifecycleHooksServiceStub(channel).BeforeClusterCreate
    metadata = (("x-test", "yes"), ("hookgate-call-id", "ABC"), ("x-binary-bin", b"\xff"))
    assert call(BeforeClusterCreateRequest(), metadata=metadata, timeout=PATIENCE).message == "yes"
    assert status_of(lambda: call(BeforeClusterCreateRequest(settings={"abort": "1"}), timeout=PATIENCE)) == (
        "UNAVAILABLE",
        "come back",
    )
    with caplog.at_level("DEBUG", "hookgate"):
        call(BeforeClusterCreateRequest(), metadata=metadata, timeout=PATIENCE)
    assert [r.fields["call_id"] for r in caplog.records] == ["ABC"]  # type: ignore[attr-defined]


def test_messages_of_20_mib(start: Start) -> None:
    options = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]
    server, _ = start(hello(lambda request: wait(1, "x" * len(request.cluster.raw))))
    with grpc.insecure_channel(server.address, options) as unlimited:
        call = LifecycleHooksServiceStub(unlimited).BeforeClusterCreate
        answer = call(BeforeClusterCreateRequest(cluster=RawExtension(raw=b"x" * ((20 << 20) - 1000))), timeout=PATIENCE)
        assert len(answer.message) == (20 << 20) - 1000
        larger = BeforeClusterCreateRequest(cluster=RawExtension(raw=b"x" * (20 << 20)))
        assert status_of(lambda: call(larger, timeout=PATIENCE))[0] == "RESOURCE_EXHAUSTED"


def test_calls_beyond_the_bound_are_refused(start: Start) -> None:
    running, release = threading.Semaphore(0), threading.Event()

    def held(request: Any) -> Answer:
        running.release()
        assert release.wait(PATIENCE)
        return done()

    _, channel = start(hello(held), workers=2, concurrency=2)
    call = LifecycleHooksServiceStub(channel).BeforeClusterCreate
    with ThreadPoolExecutor() as pool:
        calls = [pool.submit(call, BeforeClusterCreateRequest(), timeout=PATIENCE) for _ in range(2)]
        for _ in calls:
            assert running.acquire(timeout=PATIENCE)
        assert status_of(lambda: call(BeforeClusterCreateRequest(), timeout=PATIENCE))[0] == "RESOURCE_EXHAUSTED"
        release.set()
        assert [c.result().status for c in calls] == [1, 1]


def test_stopping_finishes_calls(start: Start) -> None:
    running, release = threading.Event(), threading.Event()

    def held(request: Any) -> Answer:
        running.set()
        assert release.wait(PATIENCE)
        return done()

    server, channel = start(hello(held))
    with ThreadPoolExecutor() as pool:
        call = pool.submit(LifecycleHooksServiceStub(channel).BeforeClusterCreate, BeforeClusterCreateRequest(), timeout=PATIENCE)
        assert running.wait(PATIENCE)
        stub: Any = health_pb2_grpc.HealthStub(channel)
        watch = stub.Watch(health_pb2.HealthCheckRequest(), timeout=PATIENCE)
        assert next(watch).status == health_pb2.HealthCheckResponse.SERVING
        stopped = pool.submit(server.stop, PATIENCE)
        assert next(watch).status == health_pb2.HealthCheckResponse.NOT_SERVING
        watch.cancel()
        release.set()
        assert call.result().status == 1
        assert stopped.result() is True


def test_stopping_gives_up_on_a_call_that_does_not_end(start: Start) -> None:
    running, release = threading.Event(), threading.Event()

    def held(request: Any) -> Answer:
        running.set()
        assert release.wait(PATIENCE)
        return done()

    server, channel = start(hello(held))
    with ThreadPoolExecutor() as pool:
        call = pool.submit(LifecycleHooksServiceStub(channel).BeforeClusterCreate, BeforeClusterCreateRequest(), timeout=PATIENCE)
        assert running.wait(PATIENCE)
        assert server.stop(0.1) is False
        assert isinstance(call.exception(), grpc.RpcError)
        release.set()


def test_a_socket_is_its_owners_and_a_stale_one_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "x.sock"
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))  # and nothing listens on it any more
    with hello().start(f"unix://{path}") as server:
        assert server.url == server.address == f"unix://{path}"
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        with grpc.insecure_channel(server.address) as channel:
            assert health(channel) == health_pb2.HealthCheckResponse.SERVING
            with pytest.raises(OSError, match=r"cannot listen on unix://.*: another server listens there"):
                hello().start(f"unix://{path}")
            assert health(channel) == health_pb2.HealthCheckResponse.SERVING
    path.write_text("precious")
    with pytest.raises(OSError, match="there is a file that is not a socket"):
        hello().start(f"unix://{path}")
    assert path.read_text() == "precious"
    with pytest.raises(OSError, match=r"cannot listen on unix://.*/missing/x\.sock: No such file or directory"):
        hello().start(f"unix://{tmp_path}/missing/x.sock")


def test_two_servers_at_one_address_are_an_error(start: Start) -> None:
    server, _ = start(hello())
    with pytest.raises(OSError, match=f"cannot listen on {server.address}: Address already in use"):
        hello().start(server.address)


@pytest.mark.parametrize(
    ("address", "options", "text"),
    [
        (
            "0.0.0.0:0",
            {},
            r"0\.0\.0\.0:0 is not on loopback, and everyone may call it: state tls_cert and tls_key, or insecure=True",
        ),
        (":0", {}, "is not on loopback"),
        ("acme.example:0", {}, "is not on loopback"),
        ("[::]:0", {}, "is not on loopback"),
        ("unix://x.sock", {}, "the path of a socket begins with /"),
        ("127.0.0.1", {}, 'the address "127.0.0.1": want HOST:PORT, or unix:///PATH'),
        ("127.0.0.1:65536", {}, "want HOST:PORT"),
        ("::1:9090", {}, "want HOST:PORT"),
        ("127.0.0.1:0", {"workers": 0}, "want at least one worker"),
        ("127.0.0.1:0", {"workers": 5, "concurrency": 4}, "concurrency of at least that: not 5 and 4"),
        ("127.0.0.1:0", {"tls_cert": "x"}, "TLS needs both tls_cert and tls_key"),
        ("127.0.0.1:0", {"client_ca": "x"}, "TLS needs both tls_cert and tls_key"),
    ],
)
def test_what_makes_no_sense_is_refused(address: str, options: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        hello().start(address, **options)


def test_an_extension_without_handlers_is_not_served() -> None:
    with pytest.raises(ValueError, match=r"the extension has no handlers: register one with @extension\.handler"):
        Extension().start("127.0.0.1:0")


def test_insecure_beyond_loopback_is_stated() -> None:
    hello().start("0.0.0.0:0", insecure=True).stop()


def test_the_address_comes_from_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EXTENSION_ADDRESS", f"unix://{tmp_path}/e.sock")
    with hello().start() as server:
        assert server.address == f"unix://{tmp_path}/e.sock"


def openssl(*arguments: str) -> None:
    """Runs openssl."""
    subprocess.run(["openssl", *arguments], check=True, capture_output=True)


def certificate(folder: Path, name: str) -> None:
    """Writes a self-signed certificate for localhost."""
    files = ("-keyout", f"{folder}/tls.key.new", "-out", f"{folder}/tls.crt.new")
    extension = ("-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost")
    openssl(
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:P-256",
        "-nodes",
        "-days",
        "2",
        "-subj",
        f"/CN={name}",
        *extension,
        *files,
    )
    for file in ("tls.key", "tls.crt"):
        os.replace(folder / f"{file}.new", folder / file)


def check_tls(address: str, root: bytes, own: tuple[bytes, bytes] | None = None) -> bool:
    """Reports whether a new connection that trusts a certificate succeeds."""
    key, chain = own or (None, None)
    credentials = grpc.ssl_channel_credentials(root, key, chain)
    with grpc.secure_channel(address, credentials, [("grpc.use_local_subchannel_pool", 1)]) as channel:
        try:
            health(channel)
        except grpc.RpcError:
            return False
    return True


def test_certificates_are_read_again(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    certificate(tmp_path, "first")
    first = (tmp_path / "tls.crt").read_bytes()
    with hello().start("127.0.0.1:0", tls_cert=f"{tmp_path}/tls.crt", tls_key=f"{tmp_path}/tls.key") as server:
        assert server.url == f"grpcs://{server.address}"
        assert check_tls(server.address, first)
        certificate(tmp_path, "second")
        second = (tmp_path / "tls.crt").read_bytes()
        assert check_tls(server.address, second)
        (tmp_path / "tls.key").write_text("broken")
        assert check_tls(server.address, second)
        assert "keeping the certificates that were read before" in caplog.text
        assert check_tls(server.address, second)
        certificate(tmp_path, "third")
        assert check_tls(server.address, (tmp_path / "tls.crt").read_bytes())
        (tmp_path / "tls.crt").unlink()
        assert check_tls(server.address, first) is False


def test_callers_show_certificates(tmp_path: Path) -> None:
    certificate(tmp_path, "server")
    own = ((tmp_path / "tls.key").read_bytes(), (tmp_path / "tls.crt").read_bytes())
    other = tmp_path / "other"
    other.mkdir()
    certificate(other, "other")
    stranger = ((other / "tls.key").read_bytes(), (other / "tls.crt").read_bytes())
    files = {"tls_cert": f"{tmp_path}/tls.crt", "tls_key": f"{tmp_path}/tls.key"}
    with hello().start("127.0.0.1:0", client_ca=f"{tmp_path}/tls.crt", **files) as server:  # type: ignore[arg-type]
        assert check_tls(server.address, own[1], own)
        assert not check_tls(server.address, own[1], stranger)
        assert not check_tls(server.address, own[1])


@pytest.mark.parametrize(
    ("file", "text"), [("tls.key", "are not a certificate and its key"), ("ca.crt", "has no certificates in PEM")]
)
def test_broken_certificates_are_an_error(tmp_path: Path, file: str, text: str) -> None:
    certificate(tmp_path, "x")
    (tmp_path / "ca.crt").write_bytes((tmp_path / "tls.crt").read_bytes())
    (tmp_path / file).write_text("broken")
    with pytest.raises(ValueError, match=text):
        hello().start("127.0.0.1:0", tls_cert=f"{tmp_path}/tls.crt", tls_key=f"{tmp_path}/tls.key", client_ca=f"{tmp_path}/ca.crt")
    (tmp_path / file).unlink()
    with pytest.raises(FileNotFoundError):
        hello().start("127.0.0.1:0", tls_cert=f"{tmp_path}/tls.crt", tls_key=f"{tmp_path}/tls.key", client_ca=f"{tmp_path}/ca.crt")


PROGRAM = """
import sys
from hookgate import Answer, Extension, done, fail
from hookgate.hooks.v1alpha1 import BeforeClusterCreateRequest
extension = Extension()

@extension.handler
def create(request: BeforeClusterCreateRequest) -> Answer:
    if request.settings["wait"]:
        print("running", file=sys.stderr, flush=True)
        input()
    raise KeyError("s3cr3t")

%s
extension.serve(%r)
"""


def run(code: str) -> "subprocess.Popen[str]":
    """Starts a program."""
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen([sys.executable, "-c", code], **pipes)


def listens(address: str) -> bool:
    """Reports whether a server takes connections."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host, int(port)), PATIENCE).close()
    except (ConnectionRefusedError, ConnectionResetError):
        return False
    return True


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_a_program_after_its_calls(number: int) -> None:
    process = run(PROGRAM % ("", "127.0.0.1:0"))
    with process:
        assert process.stdin
        assert process.stderr
        line = json.loads(process.stderr.readline())
        address = line["address"]
        with grpc.insecure_channel(address) as channel:
            grpc.channel_ready_future(channel).result(PATIENCE)
            call = LifecycleHooksServiceStub(channel).BeforeClusterCreate.future(
                BeforeClusterCreateRequest(settings={"wait": "1"}), metadata=(("hookgate-call-id", "ABC"),), timeout=PATIENCE
            )
            assert process.stderr.readline() == "running\n"
            process.send_signal(number)
            while listens(address):
                pass
            print(file=process.stdin, flush=True)
            assert "internal error (KeyError)" in call.result().message
        assert process.wait(PATIENCE) == 0
        (line,) = map(json.loads, process.stderr)
        assert "KeyError: 's3cr3t'" in line["stack"]
        assert (line["call_id"], line["level"], line["kind"], line["handler"]) == ("ABC", "ERROR", "Internal", "create")


def test_a_program_does_not_wait_for_ever() -> None:
    process = run(PROGRAM % ("import hookgate.server; hookgate.server.GRACE = 0.1", "127.0.0.1:0"))
    with process:
        assert process.stderr
        address = json.loads(process.stderr.readline())["address"]
        with grpc.insecure_channel(address) as channel:
            grpc.channel_ready_future(channel).result(PATIENCE)
            call = LifecycleHooksServiceStub(channel).BeforeClusterCreate.future(
                BeforeClusterCreateRequest(settings={"wait": "1"}), timeout=PATIENCE
            )
            assert process.stderr.readline() == "running\n"
            process.terminate()
            assert process.wait(PATIENCE) == 1
            assert isinstance(call.exception(), grpc.RpcError)
        assert "stopped with calls that have not ended" in process.stderr.read()


def test_a_program_that_cannot_listen_says_why() -> None:
    process = run(PROGRAM % ("", "127.0.0.1"))
    _, said = process.communicate(timeout=PATIENCE)
    assert (process.returncode, said) == (1, 'hookgate: the address "127.0.0.1": want HOST:PORT, or unix:///PATH\n')


def test_a_program_that_has_configured_logging_keeps_it() -> None:
    process = run(PROGRAM % ("import logging; logging.basicConfig(level='INFO', format='mine: %(message)s')", "127.0.0.1:0"))
    assert process.stderr
    assert process.stderr.readline().startswith("mine: listening on 127.0.0.1:")
    process.terminate()
    process.communicate(timeout=PATIENCE)
    assert process.returncode == 0


def test_the_callers_trace_goes_on(start: Start) -> None:
    from opentelemetry import trace

    seen = []

    def traced(request: Any) -> Answer:
        seen.append(trace.get_current_span().get_span_context())
        return done()

    _, channel = start(hello(traced))
    parent = "00-0123456789abcdef0123456789abcdef-0123456789abcdef-01"
    call = LifecycleHooksServiceStub(channel).BeforeClusterCreate
    call(BeforeClusterCreateRequest(), metadata=(("traceparent", parent),), timeout=PATIENCE)
    call(BeforeClusterCreateRequest(), timeout=PATIENCE)
    assert f"{seen[0].trace_id:032x}-{seen[0].span_id:016x}" == parent[3:-3]
    assert not seen[1].is_valid
