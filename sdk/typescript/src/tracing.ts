// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// The context of OpenTelemetry that a call comes with, if the application has OpenTelemetry.

import type { Metadata } from "@grpc/grpc-js";

/** Tracer runs a function in the context of a call. */
export type Tracer = <T>(metadata: Metadata, run: () => T) => T;

/** tracer returns a Tracer that makes the caller's trace context the current one. Without OpenTelemetry, it does nothing. */
export async function tracer(): Promise<Tracer> {
  let api: typeof import("@opentelemetry/api");
  try {
    api = await import("@opentelemetry/api");
  } catch (error) {
    if ((error as { code?: string }).code !== "ERR_MODULE_NOT_FOUND") {
      throw error;
    }
    return (_metadata, run) => run();
  }
  const getter = {
    keys: (metadata: Metadata) => Object.keys(metadata.getMap()),
    get: (metadata: Metadata, key: string) => metadata.get(key).map(String),
  };
  return (metadata, run) => api.context.with(api.propagation.extract(api.context.active(), metadata, getter), run);
}
