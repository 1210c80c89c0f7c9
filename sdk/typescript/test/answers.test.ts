// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

import assert from "node:assert/strict";
import test from "node:test";
import { create } from "@bufbuild/protobuf";
import { done, Extension, fail, Failure, InvalidRequest, load, setting, wait, type Handler } from "@hookgate/sdk";
import { BeforeClusterCreateResponseSchema, DiscoverVariablesResponseSchema, LifecycleHooksService, TopologyMutationHooksService, type BeforeClusterCreateRequestSchema } from "@hookgate/sdk/hooks/v1alpha1";
import { call, json, StatusError } from "@hookgate/sdk/testing";
import { Lines, cluster } from "./shared.js";

const hooks = LifecycleHooksService.method;
type BeforeClusterCreate = Handler<typeof BeforeClusterCreateRequestSchema, typeof BeforeClusterCreateResponseSchema>;

async function answer(handler: BeforeClusterCreate, request: object = cluster(), logger = new Lines()): Promise<object> {
  const extension = new Extension().handle(hooks.beforeClusterCreate, "create", handler);
  return json(BeforeClusterCreateResponseSchema, await call(extension, hooks.beforeClusterCreate, request, { logger }));
}

function refused(code: number, message: string) {
  return (error: unknown) => {
    assert.ok(error instanceof StatusError);
    assert.deepEqual([error.code, error.message], [code, message]);
    return true;
  };
}

test("answers", async () => {
  const thrown = () => {
    throw fail("no quota");
  };
  assert.deepEqual(await answer(() => done()), { status: "Success" });
  assert.deepEqual(await answer(async () => done()), { status: "Success" });
  assert.deepEqual(await answer(() => wait(30, "later")), { status: "Success", retryAfterSeconds: 30, message: "later" });
  assert.deepEqual(await answer(() => fail("no quota")), { status: "Failure", message: "no quota" });
  assert.deepEqual(await answer(thrown), { status: "Failure", message: "no quota" });
  assert.deepEqual(await answer(async () => thrown()), { status: "Failure", message: "no quota" });
});

test("the response of the hook itself", async () => {
  assert.deepEqual(await answer(() => create(BeforeClusterCreateResponseSchema, { message: "m" })), { status: "Success", message: "m" });
  assert.deepEqual(await answer(() => create(BeforeClusterCreateResponseSchema, { status: 2, message: "m" })), { status: "Failure", message: "m" });
});

test("an answer that is none is a failure, not consent", async () => {
  const nones: [unknown, string][] = [[undefined, "nothing"], [null, "nothing"], [true, "a Boolean"], [{ status: 1 }, "a Object"], [create(DiscoverVariablesResponseSchema), "a Object"]];
  for (const [none, what] of nones) {
    const message = `handler "create" returned ${what}: return done(), wait(), fail() or a BeforeClusterCreateResponse`;
    assert.deepEqual(await answer((() => none) as any), { status: "Failure", message });
  }
});

test("wait and fail need what they say", () => {
  assert.throws(() => wait(0, "m"), /0 is not a number of seconds: want an integer of at least 1/);
  assert.throws(() => wait(1.5, "m"), RangeError);
  assert.throws(() => wait(2 ** 31, "m"), RangeError);
  assert.throws(() => wait(1, ""), /the message is empty/);
  assert.throws(() => fail(""), /the message is empty/);
});

test("wait, where a hook has no retryAfterSeconds", async () => {
  const method = TopologyMutationHooksService.method.validateTopology;
  // @ts-expect-error: the type of the response has no retryAfterSeconds.
  const extension = new Extension().handle(method, "validate", () => wait(30, "later"));
  const response = await call(extension, method, {});
  assert.equal(response.message, "ValidateTopology has no retryAfterSeconds: answer done() or fail(), not wait()");
});

test("an exception is a failure without its text, which the log has with the stack", async () => {
  class QuotaError extends Error {}
  for (const [thrown, name] of [[new QuotaError("password=hunter2"), "QuotaError"], ["password=hunter2", "string"], [undefined, "undefined"]] as const) {
    const log = new Lines();
    const response = await answer(() => Promise.reject(thrown), cluster(), log);
    const message = `handler "create": internal error (${name}); search the log of the extension for the call's id`;
    assert.deepEqual(response, { status: "Failure", message });
    assert.equal(log.lines.length, 1);
    const { level, kind, hook, handler, stack } = log.lines[0]!;
    assert.deepEqual([level, kind, hook, handler], ["error", "Internal", "BeforeClusterCreate", "create"]);
    assert.match(stack, thrown instanceof Error ? /hunter2[^]*answers\.test/ : /hunter2|undefined/);
  }
});

test("an unreadable request is a status, not an answer", async () => {
  const invalid = () => {
    throw new InvalidRequest("cluster: of no kind");
  };
  await assert.rejects(answer(invalid), refused(3, "cluster: of no kind"));
  await assert.rejects(answer((request) => load(request, "cluster") && done(), {}), refused(3, "cluster: there is no object"));
});

test("a call that has ended is no failure", async () => {
  const ended = AbortSignal.abort();
  const extension = new Extension().handle(hooks.beforeClusterCreate, "create", (_, { signal }) => {
    signal.throwIfAborted();
    return done();
  });
  await assert.rejects(call(extension, hooks.beforeClusterCreate, cluster(), { signal: ended }), refused(1, "the call has ended before its handler"));
});

test("which handler answers", async () => {
  const extension = new Extension()
    .handle(hooks.beforeClusterCreate, "one", () => wait(1, "one"))
    .handle(hooks.beforeClusterCreate, "two", () => wait(2, "two"))
    .handle(hooks.beforeClusterDelete, "three", () => wait(3, "three"));
  assert.equal((await call(extension, hooks.beforeClusterCreate, cluster(), { handler: "two" })).message, "two");
  assert.equal((await call(extension, hooks.beforeClusterDelete, cluster())).message, "three");
  await assert.rejects(
    call(extension, hooks.beforeClusterCreate, cluster()),
    refused(3, 'BeforeClusterCreate has several handlers: name one of "one", "two"'),
  );
  await assert.rejects(
    call(extension, hooks.beforeClusterCreate, cluster(), { handler: "three" }),
    refused(5, 'BeforeClusterCreate has no handler "three", but "one", "two"'),
  );
});

test("a hook without a handler", async () => {
  await assert.rejects(call(new Extension(), hooks.beforeClusterDelete, cluster()), refused(12, "the extension has no handler of BeforeClusterDelete"));
});

test("the context of a call, and its log lines", async () => {
  const logger = new Lines();
  const extension = new Extension().handle(hooks.beforeClusterCreate, "create", (_, { handler, callID, log }) => {
    log.info("asked", { team: "red" });
    return fail(`${handler} ${callID}`);
  });
  const { message } = await call(extension, hooks.beforeClusterCreate, cluster(), { callID: "id-1", logger });
  assert.equal(message, "create id-1");
  const fields = { level: "info", hook: "BeforeClusterCreate", handler: "create", call_id: "id-1" };
  const [own, end] = logger.lines;
  assert.deepEqual(own, { ...fields, text: "asked", team: "red" });
  assert.deepEqual(end, { ...fields, text: "call failed", kind: "Failure", error: "create id-1", took: end!["took"] });
  assert.equal(typeof end!["took"], "number");
  logger.lines.length = 0;
  await call(extension, hooks.beforeClusterCreate, cluster(), { logger });
  assert.ok(logger.lines.every((line) => !("call_id" in line)), "without a gateway");
});

test("settings", () => {
  const request = { settings: { text: "x", count: "-7", share: "0.5", on: "true", off: "false", hex: "0x10", large: "9007199254740993", empty: "" } };
  const text: string = setting(request, "text", "string");
  const count: number = setting(request, "count", "integer");
  assert.deepEqual([text, count], ["x", -7]);
  assert.equal(setting(request, "share", "number"), 0.5);
  assert.deepEqual([setting(request, "on", "boolean"), setting(request, "off", "boolean")], [true, false]);
  assert.equal(setting(request, "absent", "integer", 3), 3);
  assert.equal(setting(request, "absent", "integer", undefined), undefined);
  const failures: [string, "string" | "integer" | "number" | "boolean", string][] = [
    ["absent", "string", 'setting "absent" is not set'],
    ["toString", "string", 'setting "toString" is not set'],
    ["text", "integer", 'setting "text": want an integer'],
    ["share", "integer", 'setting "share": want an integer'],
    ["hex", "integer", 'setting "hex": want an integer'],
    ["large", "integer", 'setting "large": want an integer'],
    ["empty", "number", 'setting "empty": want a number'],
    ["text", "boolean", 'setting "text": want true or false'],
  ];
  for (const [name, type, message] of failures) {
    assert.throws(() => setting(request, name, type, ...([] as [])), (error) => error instanceof Failure && error.message === message, message);
  }
});
