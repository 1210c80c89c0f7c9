# Copyright The Hookgate Authors.
# SPDX-License-Identifier: Apache-2.0

"""An extension with one handler, on the stubs alone."""

import sys
from concurrent import futures
from typing import Any

import grpc
from grpc_health.v1 import health, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from hookgate.hooks.v1alpha1 import discovery_pb2, discovery_pb2_grpc, lifecycle_hooks_pb2, lifecycle_hooks_pb2_grpc

HOOK = {"api_version": "hooks.runtime.cluster.x-k8s.io/v1alpha1", "hook": "BeforeClusterUpgrade"}


class Discovery(discovery_pb2_grpc.DiscoveryServiceServicer):
    """Lists the handler."""

    def Discovery(self, request: Any, context: Any) -> Any:
        """Lists the handler."""
        return discovery_pb2.DiscoveryResponse(status=1, handlers=[{"name": "hello", "request_hook": HOOK}])


class Lifecycle(lifecycle_hooks_pb2_grpc.LifecycleHooksServiceServicer):
    """Has the handler."""

    def BeforeClusterUpgrade(self, request: Any, context: Any) -> Any:
        """Says yes."""
        return lifecycle_hooks_pb2.BeforeClusterUpgradeResponse(status=1)


server = grpc.server(futures.ThreadPoolExecutor(max_workers=16))
discovery_pb2_grpc.add_DiscoveryServiceServicer_to_server(Discovery(), server)
lifecycle_hooks_pb2_grpc.add_LifecycleHooksServiceServicer_to_server(Lifecycle(), server)
health_pb2_grpc.add_HealthServicer_to_server(health.HealthServicer(), server)
names = [f"hookgate.hooks.v1alpha1.{name}" for name in ("DiscoveryService", "LifecycleHooksService")]
reflection.enable_server_reflection([*names, health.SERVICE_NAME, reflection.SERVICE_NAME], server)
server.add_insecure_port(sys.argv[1])
server.start()
server.wait_for_termination()
