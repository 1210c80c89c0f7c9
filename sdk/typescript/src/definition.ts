// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// The stubs' descriptors as definitions for @grpc/grpc-js.

import { fromBinary, toBinary, type DescMessage, type DescMethod, type Message } from "@bufbuild/protobuf";
import type { ServiceDefinition } from "@grpc/grpc-js";

/** pathOf returns the path of a method in gRPC. */
export function pathOf(method: DescMethod): string {
  return `/${method.parent.typeName}/${method.name}`;
}

/** definition returns the definition of methods, which may be of several services, by their paths. */
export function definition(methods: readonly DescMethod[]): ServiceDefinition {
  return Object.fromEntries(
    methods.map((method) => {
      const path = pathOf(method);
      const streams = (kind: string) => method.methodKind === kind || method.methodKind === "bidi_streaming";
      return [
        path,
        {
          path,
          requestStream: streams("client_streaming"),
          responseStream: streams("server_streaming"),
          requestSerialize: serialize(method.input),
          requestDeserialize: (bytes: Buffer) => fromBinary(method.input, bytes),
          responseSerialize: serialize(method.output),
          responseDeserialize: (bytes: Buffer) => fromBinary(method.output, bytes),
        },
      ];
    }),
  );
}

function serialize(type: DescMessage): (message: Message) => Buffer {
  return (message) => {
    const bytes = toBinary(type, message);
    return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  };
}
