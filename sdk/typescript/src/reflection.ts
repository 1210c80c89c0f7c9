// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// gRPC's server reflection, from the descriptors of the stubs.

import { create, createRegistry, toBinary, type DescFile, type DescService, type Message } from "@bufbuild/protobuf";
import { FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";
import { status, type ServerDuplexStream, type ServiceDefinition, type UntypedHandleCall } from "@grpc/grpc-js";

import { definition, pathOf } from "./definition.js";
import { ServerReflection, ServerReflectionResponseSchema, type ServerReflectionRequest } from "./gen/grpc/reflection/v1/reflection_pb.js";
import { ServerReflection as ServerReflectionV1alpha } from "./gen/grpc/reflection/v1alpha/reflection_pb.js";

/** reflection returns the definition and implementation of server reflection for services, in both of its versions. */
export function reflection(services: readonly DescService[]): { definition: ServiceDefinition; implementation: { [path: string]: UntypedHandleCall } } {
  const answer = responder([...services, ServerReflection, ServerReflectionV1alpha]);
  const serve = (stream: ServerDuplexStream<ServerReflectionRequest, Message>) => {
    stream.on("data", (request: ServerReflectionRequest) => stream.write(answer(request)));
    stream.on("end", () => stream.end());
  };
  // The messages of both versions are the same.
  const [v1] = Object.values(definition([ServerReflection.method.serverReflectionInfo]));
  const path = pathOf(ServerReflectionV1alpha.method.serverReflectionInfo);
  return {
    definition: { [v1!.path]: v1!, [path]: { ...v1!, path } },
    implementation: { [v1!.path]: serve as UntypedHandleCall, [path]: serve as UntypedHandleCall },
  };
}

function responder(services: readonly DescService[]): (request: ServerReflectionRequest) => Message {
  const files = new Map<string, DescFile>();
  const add = (file: DescFile) => {
    files.set(file.proto.name, file);
    file.dependencies.forEach(add);
  };
  services.forEach((service) => add(service.file));
  const registry = createRegistry(...files.values());
  const symbol = (name: string) => registry.get(name)?.file ?? registry.get(name.slice(0, name.lastIndexOf(".")))?.file;

  return (request) => {
    const { case: kind, value } = request.messageRequest;
    const respond = (messageResponse: object) =>
      create(ServerReflectionResponseSchema, { validHost: request.host, originalRequest: request, messageResponse: messageResponse as any });
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
