// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// gRPC's server reflection. What answers it is loaded by the first call: few extensions are ever asked, and all start.

import type { DescService } from "@bufbuild/protobuf";
import { status, type ServerDuplexStream, type ServiceDefinition, type UntypedHandleCall } from "@grpc/grpc-js";

const paths = ["v1", "v1alpha"].map((version) => `/grpc.reflection.${version}.ServerReflection/ServerReflectionInfo`);

/** reflection returns the definition and implementation of server reflection for services, in both of its versions. */
export function reflection(services: readonly DescService[]): {
  definition: ServiceDefinition;
  implementation: { [path: string]: UntypedHandleCall };
} {
  let loaded: Promise<(request: Buffer) => Buffer> | undefined;
  const serve = (stream: ServerDuplexStream<Buffer, Buffer>) => {
    const describe = (loaded ??= import("./describe.js").then(({ describer }) => describer(services)));
    const broken = { code: status.INVALID_ARGUMENT, details: "not a request of server reflection" };
    stream.on("data", (request) => describe.then((answer) => stream.write(answer(request))).catch(() => stream.emit("error", broken)));
    stream.on("end", () => describe.then(() => stream.end()));
  };
  const same = (bytes: Buffer) => bytes;
  const streams = { requestStream: true, responseStream: true };
  const encodings = { requestSerialize: same, requestDeserialize: same, responseSerialize: same, responseDeserialize: same };
  return {
    definition: Object.fromEntries(paths.map((path) => [path, { path, ...streams, ...encodings }])),
    implementation: Object.fromEntries(paths.map((path) => [path, serve as UntypedHandleCall])),
  };
}
