# Copyright The Hookgate Authors.
# SPDX-License-Identifier: Apache-2.0

"""An extension in Python that answers BeforeClusterCreate badly: server.py MODE CERTS ADDRESS...

CERTS is a folder with tls.crt and tls.key, or - for no TLS. server.mjs is the same in Node.
"""

import json
import signal
import socket
import ssl
import struct
import sys
import tempfile
import threading
import time
from concurrent import futures
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import grpc
from grpc_health.v1 import health, health_pb2_grpc

from hookgate.hooks.v1alpha1 import common_pb2, discovery_pb2, discovery_pb2_grpc, lifecycle_hooks_pb2, lifecycle_hooks_pb2_grpc

API_VERSION = "hooks.runtime.cluster.x-k8s.io/v1alpha1"
HANDLERS = {"create": 20, "quick": 1}  # and their timeouts in seconds
mode, certs, *addresses = sys.argv[1:]


class Discovery(discovery_pb2_grpc.DiscoveryServiceServicer):
    def Discovery(self, request, context):
        hook = discovery_pb2.GroupVersionHook(api_version=API_VERSION, hook="BeforeClusterCreate")
        handlers = [discovery_pb2.ExtensionHandler(name=name, request_hook=hook, timeout_seconds=seconds) for name, seconds in HANDLERS.items()]
        return discovery_pb2.DiscoveryResponse(status=common_pb2.RESPONSE_STATUS_SUCCESS, handlers=handlers)


class Lifecycle(lifecycle_hooks_pb2_grpc.LifecycleHooksServiceServicer):
    def BeforeClusterCreate(self, request, context):
        message = "fine"
        if mode == "large":
            message = "x" * (21 << 20)
        if mode == "mute":
            time.sleep(3600)
        if mode == "throw":
            raise RuntimeError("the handler's own text")
        if mode == "cut":
            context.send_initial_metadata((("begun", "yes"),))
            time.sleep(0.2)  # for the header to get through
            Cutter.cut()
        return lifecycle_hooks_pb2.BeforeClusterCreateResponse(status=common_pb2.RESPONSE_STATUS_SUCCESS, message=message)


class Cutter:
    """Proxies a server, because gRPC lets no handler break its connection."""

    connections = []

    @classmethod
    def serve(cls, address, inner):
        host, port = address.rsplit(":", 1)
        listener = socket.create_server((host, int(port)))

        def accept():
            while True:
                outside, _ = listener.accept()
                inside = socket.socket(socket.AF_UNIX)
                inside.connect(inner)
                cls.connections.append(outside)
                for pair in ((outside, inside), (inside, outside)):
                    threading.Thread(target=cls.copy, args=pair, daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()

    @staticmethod
    def copy(source, target):
        try:
            while data := source.recv(65536):
                target.sendall(data)
        except OSError:
            pass  # it was cut

    @classmethod
    def cut(cls):
        while cls.connections:
            connection = cls.connections.pop()
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # with a reset
            connection.shutdown(socket.SHUT_RD)  # so that nothing reads from it any more
            connection.close()


class REST(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # header and body in one packet

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        answer = {"apiVersion": API_VERSION, "kind": "BeforeClusterCreateResponse", "status": "Success", "message": "fine"}
        if "/discovery?" in self.path:
            hook = {"apiVersion": API_VERSION, "hook": "BeforeClusterCreate"}
            handlers = [{"name": name, "requestHook": hook, "timeoutSeconds": seconds} for name, seconds in HANDLERS.items()]
            answer = {"apiVersion": API_VERSION, "kind": "DiscoveryResponse", "status": "Success", "handlers": handlers}
        elif mode == "rest-large":
            answer["message"] = "x" * (21 << 20)
        elif mode == "rest-mute":
            time.sleep(3600)
        elif mode == "rest-throw":
            raise RuntimeError("the handler's own text")
        body = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if mode == "rest-cut":
            self.wfile.write(body[:10])
            self.wfile.flush()
            time.sleep(0.2)  # for it to get through
            self.connection.shutdown(socket.SHUT_RDWR)  # without the end that TLS wants to have
            return
        self.wfile.write(body)


def serve_rest():
    for address in addresses:
        host, port = address.rsplit(":", 1)
        server = ThreadingHTTPServer((host, int(port)), REST)
        if certs != "-":
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(f"{certs}/tls.crt", f"{certs}/tls.key")
            server.socket = context.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, daemon=True).start()


def serve_grpc():
    server = grpc.server(
        futures.ThreadPoolExecutor(max_workers=16),
        options=[("grpc.max_send_message_length", -1), ("grpc.so_reuseport", 0)],
    )
    if mode == "other":
        health_pb2_grpc.add_HealthServicer_to_server(health.HealthServicer(), server)
    else:
        discovery_pb2_grpc.add_DiscoveryServiceServicer_to_server(Discovery(), server)
        lifecycle_hooks_pb2_grpc.add_LifecycleHooksServiceServicer_to_server(Lifecycle(), server)
    if mode == "cut":
        inner = tempfile.mkdtemp() + "/inner.sock"
        server.add_insecure_port(f"unix://{inner}")
    elif certs == "-":
        for address in addresses:
            server.add_insecure_port(address)
    else:
        with open(f"{certs}/tls.key", "rb") as key, open(f"{certs}/tls.crt", "rb") as crt:
            credentials = grpc.ssl_server_credentials([(key.read(), crt.read())])
        for address in addresses:
            server.add_secure_port(address, credentials)
    server.start()
    if mode == "cut":
        Cutter.serve(addresses[0], inner)
    return server


server = serve_rest() if mode.startswith("rest") else serve_grpc()
print(f"listening on {addresses[0]}", flush=True)
signal.pause()
