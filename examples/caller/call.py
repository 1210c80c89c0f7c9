# Copyright The Hookgate Authors.
# SPDX-License-Identifier: Apache-2.0

# Calls the gateway of `make run` over gRPC, with the stubs in the folder stubs. A Kubernetes object is
# RawExtension{raw: <JSON>}, complete and verbatim; unknown_members has members that the stubs do not know.

import json, sys, grpc
sys.path.insert(0, "stubs")
from hookgate.hooks.v1alpha1 import common_pb2, lifecycle_hooks_pb2, lifecycle_hooks_pb2_grpc

metadata = {"name": "c1", "namespace": "default"}
cluster = {"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "metadata": metadata}
# gRPC's own limit is 4 MiB.
limits = [("grpc.max_receive_message_length", 20 << 20), ("grpc.max_send_message_length", 20 << 20)]
credentials = grpc.ssl_channel_credentials(open("out/dev/certs/dev-ca.crt", "rb").read())
with grpc.secure_channel("127.0.0.1:9090", credentials, limits) as channel:
    hooks = lifecycle_hooks_pb2_grpc.LifecycleHooksServiceStub(channel)
    print(hooks.BeforeClusterCreate(lifecycle_hooks_pb2.BeforeClusterCreateRequest(
        cluster=common_pb2.RawExtension(raw=json.dumps(cluster).encode())), timeout=10))
