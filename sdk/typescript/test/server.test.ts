// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, existsSync, mkdtempSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test, { type TestContext } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { create, fromBinary, toBinary, type DescMessage, type DescMethodUnary, type MessageInitShape, type MessageShape } from "@bufbuild/protobuf";
import * as grpc from "@grpc/grpc-js";
import { context as otelContext, propagation, trace } from "@opentelemetry/api";
import { AsyncLocalStorageContextManager } from "@opentelemetry/context-async-hooks";
import { W3CTraceContextPropagator } from "@opentelemetry/core";
import { done, Extension, fail, wait, type Handler, type Listening, type Logger, type ServeOptions } from "@hookgate/sdk";
import { DiscoveryService, LifecycleHooksService, type BeforeClusterCreateRequestSchema, type BeforeClusterCreateResponseSchema } from "@hookgate/sdk/hooks/v1alpha1";
import { Lines } from "./shared.js";

const { beforeClusterCreate, beforeClusterDelete } = LifecycleHooksService.method;
const { status } = grpc;

type BeforeClusterCreate = Handler<typeof BeforeClusterCreateRequestSchema, typeof BeforeClusterCreateResponseSchema>;

/** start serves one handler until the test ends. */
async function start(t: TestContext, handler: BeforeClusterCreate, options: ServeOptions = {}): Promise<Listening> {
  const server = await new Extension().handle(beforeClusterCreate, "create", handler).listen({ address: "127.0.0.1:0", logger: new Lines(), ...options });
  t.after(() => server.close());
  return server;
}

function dial(t: TestContext, address: string, credentials = grpc.credentials.createInsecure()): grpc.Client {
  const client = new grpc.Client(address, credentials, { "grpc.max_receive_message_length": -1, "grpc.use_local_subchannel_pool": 1, "grpc.ssl_target_name_override": "localhost" });
  t.after(() => client.close());
  return client;
}

function ask<I extends DescMessage, O extends DescMessage>(
  client: grpc.Client,
  method: DescMethodUnary<I, O>,
  request: MessageInitShape<I> = {} as MessageInitShape<I>,
  { metadata = {}, deadline = Infinity, signal }: { metadata?: object; deadline?: number; signal?: AbortSignal } = {},
): Promise<MessageShape<O>> {
  return new Promise((resolve, reject) => {
    const call = client.makeUnaryRequest(
      `/${method.parent.typeName}/${method.name}`,
      (message: MessageShape<I>) => Buffer.from(toBinary(method.input, message)),
      (bytes: Buffer) => fromBinary(method.output, bytes),
      create(method.input, request),
      Object.entries(metadata).reduce((all, [key, value]) => (all.set(key, value), all), new grpc.Metadata()),
      { deadline },
      (error, response) => (error ? reject(error) : resolve(response!)),
    );
    signal?.addEventListener("abort", () => call.cancel());
  });
}

function folder(t: TestContext): string {
  const path = mkdtempSync(join(tmpdir(), "x"));
  t.after(() => rmSync(path, { recursive: true }));
  return path;
}

/** gate is a promise and what resolves it. */
function gate(): { opened: Promise<void>; open: () => void } {
  let open = () => {};
  const opened = new Promise<void>((resolve) => (open = resolve));
  return { opened, open };
}

/** eventually calls check until it returns true. */
async function eventually(check: () => boolean | Promise<boolean>): Promise<void> {
  for (const end = Date.now() + 30_000; !(await check()); await sleep(20)) {
    assert.ok(Date.now() < end, "it does not happen");
  }
}

test("a call, over TCP", async (t) => {
  const logger = new Lines();
  const server = await start(t, (_, { callID }) => wait(30, callID), { logger });
  const client = dial(t, server.address);
  const response = await ask(client, beforeClusterCreate, {}, { metadata: { "hookgate-call-id": "id-1" } });
  assert.deepEqual([response.status, response.retryAfterSeconds, response.message], [1, 30, "id-1"]);
  assert.equal((await ask(client, DiscoveryService.method.discovery)).handlers[0]!.name, "create");
  await assert.rejects(ask(client, beforeClusterDelete), { code: status.UNIMPLEMENTED });
  await assert.rejects(ask(client, beforeClusterCreate, { handler: "x" }), { code: status.NOT_FOUND, details: 'BeforeClusterCreate has no handler "x", but "create"' });
  assert.deepEqual(logger.lines[0], { level: "info", text: `listening on ${server.address}`, address: server.address });
});

test("an id of a call that is too long is cut", async (t) => {
  const client = dial(t, (await start(t, (_, { callID }) => fail(String(callID.length)))).address);
  assert.equal((await ask(client, beforeClusterCreate, {}, { metadata: { "hookgate-call-id": "x".repeat(1000) } })).message, "64");
});

test("an exception ends neither the process nor the connection", async (t) => {
  const server = await start(t, async ({ settings }) => {
    if (settings["late"]) {
      await sleep(1);
    }
    throw new Error("secret");
  });
  const client = dial(t, server.address);
  for (const settings of [{}, { late: "yes" }, {}] as { [name: string]: string }[]) {
    assert.match((await ask(client, beforeClusterCreate, { settings })).message, /^handler "create": internal error \(Error\)/);
  }
});

test("a logger that throws ends a call, and nothing else", async (t) => {
  const broken = (text: string) => text.startsWith("call ") && assert.fail("secret");
  const logger: Logger = { debug: broken, info: broken, error: broken };
  const client = dial(t, (await start(t, () => done(), { logger })).address);
  for (let i = 0; i < 2; i++) {
    await assert.rejects(ask(client, beforeClusterCreate), { code: status.INTERNAL, details: "internal error" });
  }
});

test("20 MiB, both ways", async (t) => {
  const client = dial(t, (await start(t, ({ settings }) => wait(1, "x".repeat(Number(settings["size"]))))).address);
  const raw = (size: number) => ({ cluster: { raw: Buffer.alloc(size) }, settings: { size: "1" } });
  await ask(client, beforeClusterCreate, raw((20 << 20) - 100));
  await assert.rejects(ask(client, beforeClusterCreate, raw(20 << 20)), { code: status.RESOURCE_EXHAUSTED });
  await ask(client, beforeClusterCreate, { settings: { size: String((20 << 20) - 100) } });
  await assert.rejects(ask(client, beforeClusterCreate, { settings: { size: String(20 << 20) } }), { code: status.RESOURCE_EXHAUSTED });
});

test("calls beyond the bound are refused", async (t) => {
  const { opened, open } = gate();
  let running = 0;
  const server = await start(t, async () => (running++, await opened, running--, done()), { concurrency: 2 });
  const client = dial(t, server.address);
  const calls = [ask(client, beforeClusterCreate), ask(client, beforeClusterCreate)];
  await eventually(() => running === 2);
  await assert.rejects(ask(client, beforeClusterCreate), { code: status.RESOURCE_EXHAUSTED, details: "2 calls are in flight: try again later" });
  assert.equal((await ask(client, DiscoveryService.method.discovery)).status, 1); // it is no hook
  open();
  await Promise.all(calls);
  await ask(client, beforeClusterCreate);
  await assert.rejects(start(t, () => done(), { concurrency: 0 }), { message: "concurrency is 0, want an integer of at least 1" });
});

test("a handler counts until it has ended, although its caller has gone", async (t) => {
  const { opened, open } = gate();
  const begun = gate();
  const server = await start(t, async () => (begun.open(), await opened, done()), { concurrency: 1 });
  const client = dial(t, server.address);
  const caller = new AbortController();
  const call = ask(client, beforeClusterCreate, {}, { signal: caller.signal });
  await begun.opened;
  caller.abort();
  await assert.rejects(call, { code: status.CANCELLED });
  await assert.rejects(ask(client, beforeClusterCreate), { code: status.RESOURCE_EXHAUSTED });
  open();
  await eventually(() => ask(client, beforeClusterCreate).then(() => true, () => false));
});

test("a call that ends before its handler begins counts no longer", async (t) => {
  const server = await start(t, () => done(), { concurrency: 1 });
  const client = dial(t, server.address);
  await assert.rejects(ask(client, beforeClusterCreate, { cluster: { raw: Buffer.alloc(20 << 20) } }), { code: status.RESOURCE_EXHAUSTED, details: /larger than max/ });
  await eventually(() => ask(client, beforeClusterCreate).then(() => true, () => false));
  const path = `/${beforeClusterCreate.parent.typeName}/${beforeClusterCreate.name}`;
  const send = (deadline: number) =>
    new Promise((resolve) => {
      const stream = client.makeClientStreamRequest(path, (bytes: Buffer) => bytes, (bytes: Buffer) => bytes, { deadline }, (error) => resolve(error?.code));
      deadline === Infinity && stream.end(Buffer.from([0xff]));
    });
  assert.equal(await send(Infinity), status.INTERNAL); // not protobuf
  await eventually(() => ask(client, beforeClusterCreate).then(() => true, () => false));
  assert.equal(await send(Date.now() + 100), status.DEADLINE_EXCEEDED); // never sent
  await eventually(() => ask(client, beforeClusterCreate).then(() => true, () => false));
});

test("the request of a call counts before it is there", async (t) => {
  const server = await start(t, () => done(), { concurrency: 1 });
  const client = dial(t, server.address);
  const path = `/${beforeClusterCreate.parent.typeName}/${beforeClusterCreate.name}`;
  const stream = client.makeClientStreamRequest(path, () => Buffer.alloc(0), (bytes: Buffer) => bytes, () => {});
  await eventually(() => ask(client, beforeClusterCreate).then(() => false, (error) => error.code === status.RESOURCE_EXHAUSTED));
  stream.cancel();
  await eventually(() => ask(client, beforeClusterCreate).then(() => true, () => false));
});

test("the end of a call's time aborts its handler, and is no failure", async (t) => {
  const logger = new Lines();
  const server = await start(t, (_, { signal }) => once(signal, "abort").then(() => fail("too late")), { logger });
  await assert.rejects(ask(dial(t, server.address), beforeClusterCreate, {}, { deadline: Date.now() + 200 }), { code: status.DEADLINE_EXCEEDED });
  await eventually(() => logger.lines.length === 2);
  assert.match(logger.lines[1]!["kind"], /^(Timeout|Canceled)$/); // whether the caller or the server was the first to see it
});

test("health, until the server drains", async (t) => {
  const { opened, open } = gate();
  const begun = gate();
  const server = await start(t, async () => (begun.open(), await opened, done()));
  const client = dial(t, server.address);
  const call = ask(client, beforeClusterCreate);
  const seen: number[] = [];
  const watch = client.makeServerStreamRequest("/grpc.health.v1.Health/Watch", () => Buffer.alloc(0), (bytes: Buffer) => bytes[1]!, {});
  watch.on("data", (serving) => seen.push(serving)).on("error", (error) => assert.fail(error));
  await begun.opened;
  await eventually(() => seen.length === 1);
  const check = (service: string) =>
    new Promise((resolve, reject) =>
      client.makeUnaryRequest("/grpc.health.v1.Health/Check", (name: string) => Buffer.from([10, name.length, ...Buffer.from(name)]), (bytes) => bytes[1], service, (error, serving) =>
        error ? reject(error) : resolve(serving),
      ),
    );
  assert.deepEqual([await check(""), await check("hookgate.hooks.v1alpha1.LifecycleHooksService")], [1, 1]);
  await assert.rejects(check("x"), { code: status.NOT_FOUND });
  const ended = once(watch, "end");
  const closed = server.close();
  await ended;
  assert.deepEqual(seen, [1, 2]);
  open();
  assert.equal((await call).status, 1); // which was in flight
  await closed;
  await assert.rejects(ask(client, beforeClusterCreate, {}, { deadline: Date.now() + 5000 }), { code: status.UNAVAILABLE });
});

test("reflection has the services, and their files with all imports", async (t) => {
  const client = dial(t, (await start(t, () => done())).address);
  for (const version of ["v1", "v1alpha"]) {
    // Requests and responses by hand: the messages of reflection are not in the package's surface.
    const request = (field: number, text: string) => Buffer.from([(field << 3) | 2, text.length, ...Buffer.from(text)]);
    const stream = client.makeBidiStreamRequest(`/grpc.reflection.${version}.ServerReflection/ServerReflectionInfo`, (bytes: Buffer) => bytes, (bytes: Buffer) => bytes, {});
    const answer = async (field: number, text: string) => {
      stream.write(request(field, text));
      const [bytes] = await once(stream, "data");
      return bytes as Buffer;
    };
    assert.match(String(await answer(7, "*")), /hookgate\.hooks\.v1alpha1\.LifecycleHooksService/);
    for (const symbol of ["hookgate.hooks.v1alpha1.LifecycleHooksService", "hookgate.hooks.v1alpha1.LifecycleHooksService.BeforeClusterCreate", "hookgate.hooks.v1alpha1.BeforeClusterCreateRequest"]) {
      const files = String(await answer(4, symbol));
      assert.match(files, /lifecycle_hooks\.proto[^]*hookgate\/hooks\/v1alpha1\/common\.proto/);
    }
    assert.match(String(await answer(3, "hookgate/hooks/v1alpha1/common.proto")), /RawExtension/);
    assert.match(String(await answer(4, "no.such.Symbol")), /not found/);
    stream.end();
    await once(stream.resume(), "end");
    const broken = client.makeBidiStreamRequest(`/grpc.reflection.${version}.ServerReflection/ServerReflectionInfo`, (bytes: Buffer) => bytes, (bytes: Buffer) => bytes, {});
    broken.write(Buffer.from([0xff]));
    await assert.rejects(once(broken, "data"), { code: status.INVALID_ARGUMENT, details: "not a request of server reflection" });
  }
});

test("an address in the open needs TLS", async (t) => {
  for (const address of ["0.0.0.0:0", "[::]:0", "example.com:1", ":0"]) {
    const want = address === ":0" ? /^address ":0": want HOST:PORT/ : /is not loopback: set tlsCert and tlsKey, or insecure: true/;
    await assert.rejects(start(t, () => done(), { address }), { message: want });
  }
  for (const address of ["", undefined]) {
    process.env["EXTENSION_ADDRESS"] = "x";
    await assert.rejects(start(t, () => done(), { address }), { message: 'address "x": want HOST:PORT or unix:///PATH' });
    delete process.env["EXTENSION_ADDRESS"];
  }
  const server = await start(t, () => done(), { address: "0.0.0.0:0", insecure: true });
  await ask(dial(t, server.address.replace("0.0.0.0", "127.0.0.1")), beforeClusterCreate);
  await start(t, () => done(), { address: "localhost:0" });
  await assert.rejects(start(t, () => done(), { tlsCert: "x" }), { message: "tlsCert and tlsKey need each other, and clientCa needs both" });
});

test("several sockets at a time leave the mask of the process as it was", async (t) => {
  const [dir, mask] = [folder(t), process.umask()];
  await Promise.all(["a", "b", "c"].map((name) => start(t, () => done(), { address: `unix://${dir}/${name}` })));
  assert.deepEqual(["a", "b", "c"].map((name) => statSync(join(dir, name)).mode & 0o777), [0o600, 0o600, 0o600]);
  assert.equal(process.umask(), mask);
});

test("a discovery whose announcement throws", async (t) => {
  const logger = new Lines();
  const extension = new Extension().discovery(DiscoveryService.method.discovery, () => {
    throw new Error("secret");
  });
  const server = await extension.listen({ address: "127.0.0.1:0", logger });
  t.after(() => server.close());
  await assert.rejects(ask(dial(t, server.address), DiscoveryService.method.discovery), {
    code: status.INTERNAL, details: "Discovery: internal error; the log of the extension has it",
  });
  assert.match(logger.lines[1]!["stack"], /secret/);
});

test("two servers at one address", async (t) => {
  for (const address of ["127.0.0.1:0", `unix://${folder(t)}/x.sock`]) {
    const first = await start(t, () => done(), { address });
    await assert.rejects(start(t, () => done(), { address: first.address }), { message: `address ${first.address}: another server listens there` });
    await ask(dial(t, first.address), beforeClusterCreate);
  }
});

test("a Unix socket is its user's, and replaces only a socket that nothing listens on", async (t) => {
  const path = join(folder(t), "x.sock");
  const address = `unix://${path}`;
  const killed = spawn(process.execPath, ["-e", `require("net").createServer().listen(${JSON.stringify(path)}, () => console.log())`], { stdio: ["ignore", "pipe", "inherit"] });
  await once(killed.stdout, "data");
  killed.kill("SIGKILL");
  await once(killed, "exit");
  assert.ok(existsSync(path));
  const mask = process.umask();
  const server = await start(t, () => done(), { address });
  assert.deepEqual([statSync(path).mode & 0o777, process.umask()], [0o600, mask]);
  await ask(dial(t, address), beforeClusterCreate);
  await server.close();

  writeFileSync(path, "a file");
  await assert.rejects(start(t, () => done(), { address }), { message: `address ${address}: there is a file that is not a socket` });
  assert.equal(readFileSync(path, "utf8"), "a file");
});

/** issue makes a certificate of localhost, and its key, in a folder. */
function issue(into: string, name: string): void {
  execFileSync("openssl", ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", `/CN=${name}`, "-addext", "subjectAltName=DNS:localhost",
    "-keyout", join(into, `${name}.key`), "-out", join(into, `${name}.crt`)], { stdio: "ignore" });
}

test("TLS files are read again, and broken ones are not used", async (t) => {
  const dir = folder(t);
  issue(dir, "one");
  issue(dir, "two");
  const [tlsCert, tlsKey] = [join(dir, "tls.crt"), join(dir, "tls.key")];
  const install = (name: string, of = name) => {
    for (const [file, from] of [[tlsCert, `${name}.crt`], [tlsKey, `${of}.key`]] as const) {
      writeFileSync(file + "~", readFileSync(join(dir, from)));
      renameSync(file + "~", file);
    }
  };
  install("one");
  const logger = new Lines();
  const server = await start(t, () => done(), { tlsCert, tlsKey, logger });
  const trusts = (name: string) => {
    const client = dial(t, server.address, grpc.credentials.createSsl(readFileSync(join(dir, `${name}.crt`))));
    return ask(client, beforeClusterCreate, {}, { deadline: Date.now() + 5000 }).then(() => true, () => false);
  };
  assert.deepEqual([await trusts("one"), await trusts("two")], [true, false]);
  install("two", "one");
  await eventually(() => logger.lines.some((line) => line.text === "certificate refused: what was read last stays in use"));
  assert.ok(await trusts("one"));
  install("two");
  await eventually(() => logger.lines.some((line) => line.text === "certificate replaced"));
  assert.deepEqual([await trusts("one"), await trusts("two")], [false, true]);
  await assert.rejects(start(t, () => done(), { tlsCert, tlsKey: tlsCert }), { message: /tls.crt: not a certificate and its key in PEM: / });
  await assert.rejects(start(t, () => done(), { tlsCert: join(dir, "missing"), tlsKey }), { code: "ENOENT" });
});

test("with clientCa, clients need a certificate of it", async (t) => {
  const dir = folder(t);
  issue(dir, "server");
  issue(dir, "client");
  issue(dir, "other");
  const file = (name: string) => join(dir, name);
  const server = await start(t, () => done(), { tlsCert: file("server.crt"), tlsKey: file("server.key"), clientCa: file("client.crt") });
  const call = (name?: string) => {
    const pair = name ? [readFileSync(file(`${name}.key`)), readFileSync(file(`${name}.crt`))] : [];
    return ask(dial(t, server.address, grpc.credentials.createSsl(readFileSync(file("server.crt")), ...pair)), beforeClusterCreate, {}, { deadline: Date.now() + 5000 });
  };
  assert.equal((await call("client")).status, 1);
  await assert.rejects(call("other"));
  await assert.rejects(call());
});

test("a signal ends the process when the calls in flight are done", async (t) => {
  const dir = folder(t);
  const program = join(import.meta.dirname, `signal-${process.pid}.mjs`); // where the package is found
  t.after(() => rmSync(program));
  writeFileSync(program, `
    import { setTimeout } from "node:timers/promises";
    import { done, Extension } from "@hookgate/sdk";
    import { LifecycleHooksService } from "@hookgate/sdk/hooks/v1alpha1";
    const extension = new Extension().handle(LifecycleHooksService.method.beforeClusterCreate, "create", async () => {
      console.log("begun");
      await setTimeout(500);
      return done();
    });
    await extension.serve({ address: "unix://${dir}/x.sock" });
    console.log("drained");
  `);
  chmodSync(program, 0o600);
  for (const signal of ["SIGTERM", "SIGINT"] as const) {
    const child = spawn(process.execPath, [program], { stdio: ["ignore", "pipe", "pipe"] });
    const exited = once(child, "exit");
    let said = "";
    child.stdout.on("data", (text) => (said += text));
    const [line] = await once(child.stderr, "data");
    const { time, ...fields } = JSON.parse(line);
    assert.deepEqual(fields, { level: "INFO", msg: `listening on unix://${dir}/x.sock`, address: `unix://${dir}/x.sock` });
    const call = ask(dial(t, `unix://${dir}/x.sock`), beforeClusterCreate);
    await eventually(() => said === "begun\n");
    child.kill(signal);
    assert.equal((await call).status, 1);
    assert.deepEqual(await exited, [0, null]);
    assert.equal(said, "begun\ndrained\n");
  }
});

test("the trace of a call is the current one of its handler", async (t) => {
  otelContext.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  propagation.setGlobalPropagator(new W3CTraceContextPropagator());
  t.after(() => (otelContext.disable(), propagation.disable()));
  const server = await start(t, async () => {
    await sleep(1);
    return fail(trace.getActiveSpan()?.spanContext().traceId ?? "none");
  });
  const client = dial(t, server.address);
  const traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
  assert.equal((await ask(client, beforeClusterCreate, {}, { metadata: { traceparent } })).message, "0af7651916cd43dd8448eb211c80319c");
  assert.equal((await ask(client, beforeClusterCreate)).message, "none");
});

test("a socket of another program is not taken over", async (t) => {
  const path = join(folder(t), "x.sock");
  const other = createServer().listen(path);
  await once(other, "listening");
  t.after(() => other.close());
  await assert.rejects(start(t, () => done(), { address: `unix://${path}` }), { message: `address unix://${path}: another server listens there` });
});
