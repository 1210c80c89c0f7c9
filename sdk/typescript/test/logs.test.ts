// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// The log, whose lines the packages of all languages write alike.

import assert from "node:assert/strict";
import test from "node:test";
import * as grpc from "@grpc/grpc-js";
import { Code, done, Extension, fail, InvalidRequest, StatusError } from "@hookgate/sdk";
import { LifecycleHooksService } from "@hookgate/sdk/hooks/v1alpha1";
import { DiscoveryService } from "@hookgate/sdk/infrastructure/v1alpha1";
import { Lines, read } from "./shared.js";

const { beforeClusterCreate, beforeClusterDelete } = LifecycleHooksService.method;
const without = [beforeClusterDelete, DiscoveryService.method.discoverInfrastructure];

function raising(error: Error) {
  return () => {
    throw error;
  };
}

test("lines", async (t) => {
  const logger = new Lines();
  const server = await new Extension()
    .handle(beforeClusterCreate, "done", () => done())
    .handle(beforeClusterCreate, "refusing", () => fail("no quota"))
    .handle(beforeClusterCreate, "unreadable", raising(new InvalidRequest("cluster: there is none")))
    .handle(beforeClusterCreate, "unavailable", raising(new StatusError(Code.UNAVAILABLE, "come back")))
    .handle(beforeClusterCreate, "broken", raising(new Error("secret")))
    .listen({ address: "127.0.0.1:0", logger });
  t.after(() => server.close());
  const client = new grpc.Client(server.address, grpc.credentials.createInsecure());
  t.after(() => client.close());
  const metadata = new grpc.Metadata();
  metadata.set("hookgate-call-id", "c1");
  const call = (name: string) => {
    const method = without.find((other) => other.name === name) ?? beforeClusterCreate;
    // Requests by hand: handler, a string, is the field 1.
    const request = method === beforeClusterCreate ? Buffer.from([(handlerField << 3) | 2, name.length, ...Buffer.from(name)]) : Buffer.alloc(0);
    return new Promise((resolve) =>
      client.makeUnaryRequest(`/${method.parent.typeName}/${method.name}`, (bytes: Buffer) => bytes, (bytes: Buffer) => bytes, request, metadata, resolve),
    );
  };
  const handlerField = beforeClusterCreate.input.field["handler"]!.number;
  const cases: { [name: string]: { line: { [key: string]: string }; others: string[] } } = JSON.parse(read("sdk/testdata/logs.json").toString());
  for (const [name, { line, others }] of Object.entries(cases)) {
    if (name !== "listening") {
      logger.lines.length = 0;
      await call(name);
    }
    assert.equal(logger.lines.length, 1, name);
    const { level, text, ...fields } = logger.lines[0]!;
    const got: { [key: string]: unknown } = { level: level.toUpperCase(), msg: text, ...fields };
    for (const key of others) {
      assert.notEqual(got[key], undefined, `${name} has ${key}`);
      delete got[key];
    }
    assert.deepEqual(got, line, name);
  }
});
