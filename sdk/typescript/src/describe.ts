// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// The answers of gRPC's server reflection, from the descriptors of the stubs.

import { create, createRegistry, fromBinary, toBinary, type DescFile, type DescService } from "@bufbuild/protobuf";
import { FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";
import { status } from "@grpc/grpc-js";

import { ServerReflection, ServerReflectionRequestSchema, ServerReflectionResponseSchema } from "./gen/grpc/reflection/v1/reflection_pb.js";
import { ServerReflection as ServerReflectionV1alpha } from "./gen/grpc/reflection/v1alpha/reflection_pb.js";

/** describer returns a function that answers requests of server reflection about services, which are the same in v1 and v1alpha. */
export function describer(others: readonly DescService[]): (request: Buffer) => Buffer {
  const services = [...others, ServerReflection, ServerReflectionV1alpha];
  const files = new Map<string, DescFile>();
  const add = (file: DescFile) => {
    files.set(file.proto.name, file);
    file.dependencies.forEach(add);
  };
  services.forEach((service) => add(service.file));
  const registry = createRegistry(...files.values());
  const symbol = (name: string) => registry.get(name)?.file ?? registry.get(name.slice(0, name.lastIndexOf(".")))?.file;

  return (bytes) => {
    const request = fromBinary(ServerReflectionRequestSchema, bytes);
    const { case: kind, value } = request.messageRequest;
    const respond = (messageResponse: object) =>
      Buffer.from(
        toBinary(
          ServerReflectionResponseSchema,
          create(ServerReflectionResponseSchema, { validHost: request.host, originalRequest: request, messageResponse: messageResponse as any }),
        ),
      );
    if (kind === "listServices") {
      return respond({ case: "listServicesResponse", value: { service: services.map((service) => ({ name: service.typeName })) } });
    }
    const file = kind === "fileByFilename" ? files.get(value) : kind === "fileContainingSymbol" ? symbol(value) : undefined;
    if (file) {
      const fileDescriptorProto = [...closure(file)].map((file) => toBinary(FileDescriptorProtoSchema, file.proto));
      return respond({ case: "fileDescriptorResponse", value: { fileDescriptorProto } });
    }
    return respond({ case: "errorResponse", value: { errorCode: status.NOT_FOUND, errorMessage: "not found" } });
  };
}

/** closure returns a file and all that it imports. */
function closure(file: DescFile, found = new Set<DescFile>()): Set<DescFile> {
  found.add(file);
  file.dependencies.filter((imported) => !found.has(imported)).forEach((imported) => closure(imported, found));
  return found;
}
