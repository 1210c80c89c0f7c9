# Copyright The Hookgate Authors.
# SPDX-License-Identifier: Apache-2.0

"""A Runtime Extension over gRPC. This file is the server; hooks.py implements the hooks."""

import signal
import sys
import threading
from concurrent import futures

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc

import hooks
from hookgate.hooks.v1alpha1 import discovery_pb2_grpc, in_place_update_pb2_grpc, lifecycle_hooks_pb2_grpc, topology_mutation_pb2_grpc

# Cluster API's limit, in both directions. gRPC's is 4 MiB, which the templates of one cluster can exceed.
MESSAGE_LIMIT = 20 << 20
# How long calls may take to finish, in seconds. A handler's timeout is 30 s at most.
GRACE = 30


def main() -> None:
    address = sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:9090"
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())

    server = grpc.server(
        futures.ThreadPoolExecutor(max_workers=16),
        options=[
            ("grpc.max_receive_message_length", MESSAGE_LIMIT),
            ("grpc.max_send_message_length", MESSAGE_LIMIT),
            ("grpc.so_reuseport", 0),  # two servers at one address are a mistake
        ],
    )
    discovery_pb2_grpc.add_DiscoveryServiceServicer_to_server(hooks.Discovery(), server)
    lifecycle_hooks_pb2_grpc.add_LifecycleHooksServiceServicer_to_server(hooks.Lifecycle(), server)
    topology_mutation_pb2_grpc.add_TopologyMutationHooksServiceServicer_to_server(hooks.Topology(), server)
    in_place_update_pb2_grpc.add_InPlaceUpdateHooksServiceServicer_to_server(hooks.InPlace(), server)
    servicer = health.HealthServicer()
    servicer.set("", health_pb2.HealthCheckResponse.SERVING)
    health_pb2_grpc.add_HealthServicer_to_server(servicer, server)

    # Without TLS: the gateway is beside it, on loopback or on a socket that only it can open. unix:///path is gRPC's own way
    # to write a socket; it replaces the file of a killed server.
    server.add_insecure_port(address)
    server.start()
    print(f"listening on {address}", flush=True)
    stop.wait()
    server.stop(GRACE).wait()


if __name__ == "__main__":
    main()
