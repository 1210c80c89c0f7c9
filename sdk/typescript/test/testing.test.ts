// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { fromBinary, type DescMessage, type DescService } from "@bufbuild/protobuf";
import { done, Extension, fail, load, wait } from "@hookgate/sdk";
import * as hooks from "@hookgate/sdk/hooks/v1alpha1";
import * as infrastructure from "@hookgate/sdk/infrastructure/v1alpha1";
import { call, check, json } from "@hookgate/sdk/testing";
import { cluster, read, repository } from "./shared.js";

const { beforeClusterCreate } = hooks.LifecycleHooksService.method;

/** services returns the services of a module of stubs. */
function services(stubs: object): DescService[] {
  return Object.values(stubs).filter((value) => value?.kind === "service");
}

test("the golden vectors of every hook, as JSON and as protobuf", async () => {
  let count = 0;
  for (const [stubs, folder] of [[hooks, "v1alpha1"], [infrastructure, "infrastructure/v1alpha1"]] as const) {
    const files = readdirSync(join(repository, "proto/testdata", folder));
    for (const method of services(stubs).flatMap((service) => service.methods)) {
      const read1 = (type: DescMessage, side: string) =>
        fromBinary(type, read("proto/testdata", folder, `${method.name.toLowerCase()}.${side}.binpb`)) as any;
      assert.ok(files.includes(`${method.name.toLowerCase()}.request.json`), method.name);
      const wantRequest = read1(method.input, "request");
      const wantResponse = read1(method.output, "response");
      const path = join(repository, "proto/testdata", folder, `${method.name.toLowerCase()}.request.json`);
      if (method.name.startsWith("Discover") && !method.name.endsWith("Variables")) {
        continue; // no handler answers it
      }
      let got: any;
      const extension = new Extension().handle(method as typeof beforeClusterCreate, "a", (request) => ((got = request), wantResponse));
      await call(extension, method as typeof beforeClusterCreate, path);
      assert.deepEqual(plain(json(method.input, got)), plain(json(method.input, wantRequest)), method.name);
      const { kind, apiVersion, ...response } = load(raw(read("proto/testdata", folder, `${method.name.toLowerCase()}.response.json`)), "cluster");
      assert.deepEqual(plain(json(method.output, wantResponse)), plain(response), method.name);
      count++;
    }
  }
  assert.equal(count, 16 + 6);
});

/** plain returns JSON without what has several texts, or is absent as well, and with patches decoded. */
function plain(value: any): any {
  if (value === 0) {
    return 0; // also for -0
  }
  if (Array.isArray(value)) {
    return value.map(plain);
  }
  if (typeof value !== "object" || value === null) {
    return value;
  }
  return Object.fromEntries(
    Object.entries<any>(value)
      .filter(([name, member]) => !(member === 0 && name === "retryAfterSeconds") && !(Array.isArray(member) && member.length === 0 && name !== "patch"))
      .map(([name, member]) => [name, name === "patch" && typeof member === "string" ? JSON.parse(Buffer.from(member, "base64").toString()) : plain(member)]),
  );
}

function raw(bytes: Buffer): hooks.BeforeClusterCreateRequest {
  return { cluster: { raw: bytes } } as unknown as hooks.BeforeClusterCreateRequest;
}

test("the examples of requests, in YAML", async () => {
  const extension = new Extension().handle(beforeClusterCreate, "team", (request) => {
    const { metadata } = load(request, "cluster");
    return metadata?.labels?.["team"] ? done() : wait(30, `Cluster ${metadata?.name} waits for the label team`);
  });
  const response = await call(extension, beforeClusterCreate, join(repository, "examples/requests/before-cluster-create.yaml"));
  assert.equal(response.message, "Cluster payments-eu-west-1 waits for the label team");
});

test("a request that is none", async () => {
  const extension = new Extension().handle(hooks.TopologyMutationHooksService.method.generatePatches, "a", () => done());
  const patches = hooks.TopologyMutationHooksService.method.generatePatches;
  const wrong: [object, string][] = [
    [[], "request: want an object"],
    [{ kind: "BeforeClusterCreateRequest" }, "request: kind is BeforeClusterCreateRequest, want GeneratePatchesRequest"],
    [{ items: {} }, "items: want an array"],
    [{ items: [7] }, "items[0]: want an object"],
    [{ items: [{ uid: 7 }] }, "items[0].uid: want a string"],
    [{ settings: { a: 1 } }, "settings.a: want a string"],
  ];
  for (const [request, message] of wrong) {
    await assert.rejects(call(extension, patches, request), { name: "TypeError", message });
  }
  const file = join(mkdtempSync(join(tmpdir(), "x")), "request.yaml");
  writeFileSync(file, "kind: Cluster\n");
  await assert.rejects(call(extension, patches, file), { message: `${file}: kind is Cluster, want GeneratePatchesRequest` });
  await assert.rejects(call(extension, patches, file + ".missing"), { code: "ENOENT" });
});

test("members that the contract does not know are kept", async () => {
  let got: any;
  const extension = new Extension().handle(beforeClusterCreate, "a", (request) => ((got = request), fail("x")));
  await call(extension, beforeClusterCreate, { ...cluster(), dryRun: { n: 9007199254740993n } });
  assert.equal(Buffer.from(got.unknownMembers.dryRun.raw).toString(), '{"n":9007199254740993}');
});

test("an extension keeps the rules of the contract", async () => {
  await check(new Extension().handle(beforeClusterCreate, "team", (request) => (load(request, "cluster").metadata?.labels?.["team"] ? done() : wait(30, "m"))), "--skip", "answers.quick");
});

test("what breaks a rule is in the error", async () => {
  let n = 0;
  const { discoverVariables } = hooks.TopologyMutationHooksService.method;
  const extension = new Extension().handle(discoverVariables, "variables", () => fail(`call ${n++}`));
  await assert.rejects(check(extension, "--only", "determinism"), /FAIL +determinism.answers[^]*handler +variables/);
});

test("without hookgate, check says where to get it", async () => {
  const { HOOKGATE_BIN } = process.env;
  process.env["HOOKGATE_BIN"] = "/nowhere/hookgate";
  try {
    await assert.rejects(check(new Extension()), { message: "/nowhere/hookgate: no such program. Put hookgate into PATH, or its path into HOOKGATE_BIN: https://github.com/hookgate/hookgate/releases has it" });
  } finally {
    process.env["HOOKGATE_BIN"] = HOOKGATE_BIN;
  }
});
