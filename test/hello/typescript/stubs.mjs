// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// An extension with one handler, on the stubs alone.
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { Server, ServerCredentials } from "@grpc/grpc-js";
import { DiscoveryService, LifecycleHooksService } from "@hookgate/sdk/hooks/v1alpha1";

const server = new Server();
const serve = (method, answer) => {
  server.addService(
    {
      [method.name]: {
        path: `/${method.parent.typeName}/${method.name}`,
        requestStream: false,
        responseStream: false,
        requestDeserialize: (bytes) => fromBinary(method.input, bytes),
        requestSerialize: (message) => Buffer.from(toBinary(method.input, message)),
        responseDeserialize: (bytes) => fromBinary(method.output, bytes),
        responseSerialize: (message) => Buffer.from(toBinary(method.output, message)),
      },
    },
    { [method.name]: (_, reply) => reply(null, create(method.output, answer)) },
  );
};
const requestHook = { apiVersion: "hooks.runtime.cluster.x-k8s.io/v1alpha1", hook: "BeforeClusterUpgrade" };
serve(DiscoveryService.method.discovery, { status: 1, handlers: [{ name: "hello", requestHook }] });
serve(LifecycleHooksService.method.beforeClusterUpgrade, { status: 1 });
server.bindAsync(process.argv[2], ServerCredentials.createInsecure(), (error) => {
  if (error) throw error;
});
