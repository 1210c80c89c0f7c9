// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// gRPC's health service.

import { create } from "@bufbuild/protobuf";
import { status, type ServerWritableStream, type UntypedHandleCall } from "@grpc/grpc-js";

import { definition } from "./definition.js";
import {
  Health,
  HealthCheckResponse_ServingStatus as Serving,
  HealthCheckResponseSchema,
  HealthListResponseSchema,
  type HealthCheckRequest,
  type HealthCheckResponse,
} from "./gen/health/v1/health_pb.js";

/** HealthService reports SERVING for the server and its services, until it drains. */
export class HealthService {
  readonly definition = definition(Object.values(Health.method));
  readonly implementation: { [path: string]: UntypedHandleCall };
  readonly #watchers = new Set<ServerWritableStream<HealthCheckRequest, HealthCheckResponse>>();
  #status = Serving.SERVING;

  constructor(services: string[]) {
    const known = new Set(["", ...services]);
    const response = (service: string) =>
      create(HealthCheckResponseSchema, { status: known.has(service) ? this.#status : Serving.SERVICE_UNKNOWN });
    const statuses = () => Object.fromEntries([...known].map((service) => [service, response(service)]));
    this.implementation = {
      "/grpc.health.v1.Health/Check": (call: any, callback: any) =>
        known.has(call.request.service)
          ? callback(null, response(call.request.service))
          : callback({ code: status.NOT_FOUND, details: `there is no service ${call.request.service}` }),
      "/grpc.health.v1.Health/List": (_call: any, callback: any) =>
        callback(null, create(HealthListResponseSchema, { statuses: statuses() })),
      "/grpc.health.v1.Health/Watch": (call: ServerWritableStream<HealthCheckRequest, HealthCheckResponse>) => {
        call.write(response(call.request.service));
        this.#watchers.add(call);
        call.on("cancelled", () => this.#watchers.delete(call));
      },
    };
  }

  /** drain reports NOT_SERVING, and ends the calls that watch: they would hold the server up. */
  drain(): void {
    this.#status = Serving.NOT_SERVING;
    for (const call of this.#watchers) {
      call.write(create(HealthCheckResponseSchema, { status: this.#status }));
      call.end();
    }
    this.#watchers.clear();
  }
}
