// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

import assert from "node:assert/strict";
import test from "node:test";
import { create } from "@bufbuild/protobuf";
import { covers, Extension } from "@hookgate/sdk";
import { CanUpdateMachineRequestSchema, CanUpdateMachineResponseSchema, CanUpdateMachineSetResponseSchema, InPlaceUpdateHooksService } from "@hookgate/sdk/hooks/v1alpha1";
import { call, json } from "@hookgate/sdk/testing";

const { canUpdateMachine, canUpdateMachineSet } = InPlaceUpdateHooksService.method;

/** patchOf returns the patch of a Machine of which some places are covered. */
async function patchOf(current: object, desired: object, ...machine: string[]): Promise<unknown> {
  const extension = new Extension().handle(canUpdateMachine, "update", (request) => covers(request, { machine }));
  const response = json(CanUpdateMachineResponseSchema, await call(extension, canUpdateMachine, { current: { machine: current }, desired: { machine: desired } }));
  assert.equal(response.status, "Success", response.message);
  return response.machinePatch?.patch;
}

test("a patch has exactly the covered places that differ", async () => {
  const current = { a: 1, b: { c: 1, d: { e: 1, f: 2 } }, list: [1], gone: { x: 1 } };
  const desired = { a: 2, b: { c: 2, d: { e: 3, g: 4 } }, list: [1, 2], new: { y: 9007199254740993n } };
  const cases: [string[], unknown][] = [
    [["/a"], { a: 2 }],
    [["/b/c"], { b: { c: 2 } }],
    [["/b/d"], { b: { d: { e: 3, f: null, g: 4 } } }],
    [["/list"], { list: [1, 2] }],
    [["/gone"], { gone: null }],
    [["/gone/x"], { gone: { x: null } }],
    [["/new/y"], { new: { y: 9007199254740993n } }],
    [["/a", "/b/c"], { a: 2, b: { c: 2 } }],
    [["/b", "/b/c"], { b: { c: 2, d: { e: 3, f: null, g: 4 } } }],
    [["/b/c", "/b"], { b: { c: 2, d: { e: 3, f: null, g: 4 } } }],
    [["/gone/x", "/gone"], { gone: null }],
    [["/gone", "/gone/x"], { gone: null }],
    [["/missing/z"], undefined],
    [[], undefined],
  ];
  for (const [covered, want] of cases) {
    assert.deepEqual(await patchOf(current, desired, ...covered), want, covered.join());
  }
  assert.equal(await patchOf(current, current, "/a", "/b"), undefined);
});

test("a pointer into an array is an error, also if nothing differs there", async () => {
  const log: string[] = [];
  const logger = { debug() {}, info() {}, error: (_: string, fields?: object) => void log.push((fields as any).stack.split("\n")[0]) };
  const machine = { list: [{ a: 1 }] };
  for (const pointer of ["/list/0", "/list/0/a", ""]) {
    const extension = new Extension().handle(canUpdateMachine, "update", (request) => covers(request, { machine: [pointer] }));
    const { message } = await call(extension, canUpdateMachine, { current: { machine }, desired: { machine } }, { logger });
    assert.match(message, /internal error \(TypeError\)/);
  }
  assert.deepEqual(log, [
    'TypeError: covers: "/list/0" of machine leads into an array: cover the whole array',
    'TypeError: covers: "/list/0/a" of machine leads into an array: cover the whole array',
    'TypeError: covers: name the members of machine that can change, such as "/spec/version", not all of it',
  ]);
});

test("all objects of a MachineSet, and what else the response says", async () => {
  const extension = new Extension().handle(canUpdateMachineSet, "update", (request) => {
    const response = covers(request, { machineSet: ["/v"], infrastructureMachineTemplate: ["/v"], bootstrapConfigTemplate: ["/v"] });
    response.affectsAvailability = false;
    return response;
  });
  const objects = (v: number) => ({ machineSet: { v }, infrastructureMachineTemplate: { v }, bootstrapConfigTemplate: { v } });
  const patch = { patchType: "JSONMergePatch", patch: { v: 2 } };
  assert.deepEqual(json(CanUpdateMachineSetResponseSchema, await call(extension, canUpdateMachineSet, { current: objects(1), desired: objects(2) })), {
    status: "Success", machineSetPatch: patch, infrastructureMachineTemplatePatch: patch, bootstrapConfigTemplatePatch: patch, affectsAvailability: false,
  });
});

test("objects that a request does not have", async () => {
  const extension = new Extension().handle(canUpdateMachine, "update", (request) => covers(request, { machine: ["/v"], bootstrapConfig: ["/v"] }));
  await assert.rejects(call(extension, canUpdateMachine, { current: { machine: {} }, desired: {} }), { code: 3, message: "desired.machine: there is no object" });
  const machine = { v: 1 };
  const response = await call(extension, canUpdateMachine, { current: { machine }, desired: { machine } }); // neither has a bootstrapConfig
  assert.equal(response.bootstrapConfigPatch, undefined);
  assert.throws(() => covers(create(CanUpdateMachineRequestSchema), {}), /is not the request that the handler was called with/);
});
