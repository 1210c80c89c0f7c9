// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// A Runtime Extension over gRPC. This file is the server; hooks.ts implements the hooks.

import { lstatSync, rmSync } from "node:fs";
import { Server, ServerCredentials } from "@grpc/grpc-js";
import { HealthImplementation } from "grpc-health-check";

import { discovery, inPlace, lifecycle, topology } from "./hooks.js";
import { DiscoveryServiceService } from "./gen/hookgate/hooks/v1alpha1/discovery.js";
import { InPlaceUpdateHooksServiceService } from "./gen/hookgate/hooks/v1alpha1/in_place_update.js";
import { LifecycleHooksServiceService } from "./gen/hookgate/hooks/v1alpha1/lifecycle_hooks.js";
import { TopologyMutationHooksServiceService } from "./gen/hookgate/hooks/v1alpha1/topology_mutation.js";

// Cluster API's limit, in both directions. gRPC's is 4 MiB, which the templates of one cluster can exceed.
const messageLimit = 20 << 20;
// How long calls may take to finish, in milliseconds. A handler's timeout is 30 s at most.
const grace = 30_000;

const address = process.argv[2] ?? "127.0.0.1:9090";
const server = new Server({
  "grpc.max_receive_message_length": messageLimit,
  "grpc.max_send_message_length": messageLimit,
});
server.addService(DiscoveryServiceService, discovery);
server.addService(LifecycleHooksServiceService, lifecycle);
server.addService(TopologyMutationHooksServiceService, topology);
server.addService(InPlaceUpdateHooksServiceService, inPlace);
new HealthImplementation({ "": "SERVING" }).addToServer(server);

// unix:///path is gRPC's own way to write a socket. A killed server leaves its file, so it is replaced.
if (address.startsWith("unix://")) {
  const path = address.slice("unix://".length);
  if (lstatSync(path, { throwIfNoEntry: false })?.isSocket()) {
    rmSync(path);
  }
}
// Without TLS: the gateway is beside it, on loopback or on a socket that only it can open.
server.bindAsync(address, ServerCredentials.createInsecure(), (error) => {
  if (error) {
    console.error(error.message);
    process.exit(1);
  }
  console.log(`listening on ${address}`);
});

for (const signal of ["SIGTERM", "SIGINT"]) {
  process.on(signal, () => {
    setTimeout(() => server.forceShutdown(), grace).unref();
    server.tryShutdown((error) => process.exit(error ? 1 : 0));
  });
}
