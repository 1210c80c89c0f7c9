// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// The server of an extension.

import { lstatSync, rmSync } from "node:fs";
import { connect } from "node:net";
import type { DescMethod, DescMethodUnary, DescService } from "@bufbuild/protobuf";
import { Server, ServerCredentials, type sendUnaryData, type ServerUnaryCall, type UntypedHandleCall } from "@grpc/grpc-js";

import { Bound } from "./bound.js";
import { definition, pathOf } from "./definition.js";
import type { Extension } from "./extension.js";
import { HealthService } from "./health.js";
import * as hooksV1alpha1 from "./hooks/v1alpha1.js";
import * as infrastructureV1alpha1 from "./infrastructure/v1alpha1.js";
import * as machinesV1alpha1 from "./machines/v1alpha1.js";
import { callIDOf, idField, jsonLines, type Logger } from "./log.js";
import { reflection } from "./reflection.js";
import { Code, StatusError } from "./status.js";
import { Certificates } from "./tls.js";
import { tracer, type Tracer } from "./tracing.js";

// Cluster API's limit, in both directions. gRPC's is 4 MiB, which the templates of one cluster can exceed.
const messageLimit = 20 << 20;
// How long calls in flight may take to finish, in milliseconds. A handler's timeout is 30 s at most.
const grace = 30_000;
/** contract is the services whose hooks are refused by their names if they have no handler. */
const contract: DescService[] = [hooksV1alpha1, infrastructureV1alpha1, machinesV1alpha1].flatMap((module) =>
  Object.values(module as { [name: string]: unknown }).filter((value): value is DescService => (value as { kind?: unknown } | null)?.kind === "service"),
);

/** ServeOptions say where and how an extension is served. */
export interface ServeOptions {
  /**
   * address is "HOST:PORT", where port 0 is any, or "unix:///PATH". By default, it is that of the environment variable
   * EXTENSION_ADDRESS, and 127.0.0.1:9090 without it.
   */
  address?: string | undefined;
  /** tlsCert is the file of the certificate, in PEM. It is read again when it changes, like the others. */
  tlsCert?: string | undefined;
  /** tlsKey is the file of its key. */
  tlsKey?: string | undefined;
  /** clientCa is the file of the certificate authority that clients must have a certificate of. */
  clientCa?: string | undefined;
  /** insecure allows an address that is not loopback without TLS. */
  insecure?: boolean | undefined;
  /** concurrency is how many calls may be in flight, by default 100. More are refused with RESOURCE_EXHAUSTED. */
  concurrency?: number | undefined;
  /** logger takes the log lines, in place of stderr. */
  logger?: Logger | undefined;
}

/** Listening is a server that listens. */
export interface Listening {
  /** address is where it listens, with the port that it has. */
  readonly address: string;
  /** close takes no more calls, and waits until those in flight have ended, for at most 30 s. */
  close(): Promise<void>;
}

/** serve serves an extension until SIGTERM or SIGINT. */
export async function serve(extension: Extension, options: ServeOptions): Promise<void> {
  const signals = ["SIGTERM", "SIGINT"];
  let stop = () => {};
  const stopped = new Promise<void>((resolve) => (stop = resolve));
  signals.forEach((signal) => process.on(signal, stop));
  try {
    const server = await listen(extension, options);
    await stopped;
    await server.close();
  } finally {
    signals.forEach((signal) => process.removeListener(signal, stop));
  }
}

/** listen serves an extension until it is closed. */
export async function listen(extension: Extension, options: ServeOptions): Promise<Listening> {
  const { logger = jsonLines, concurrency = 100 } = options;
  if (!Number.isInteger(concurrency) || concurrency < 1) {
    throw new RangeError(`concurrency is ${concurrency}, want an integer of at least 1`);
  }
  const address = options.address || process.env["EXTENSION_ADDRESS"] || "127.0.0.1:9090";
  checkAddress(address, options);
  const { hooks, discoveries } = extension.methods();
  const paths = new Set(hooks.map(pathOf));
  const bound = new Bound(concurrency, (path) => paths.has(path), logger);
  const server = new Server({
    "grpc.max_receive_message_length": messageLimit,
    "grpc.max_send_message_length": messageLimit,
    interceptors: [bound.interceptor],
  });
  const trace = await tracer();
  server.addService(definition([...discoveries, ...hooks]), {
    ...Object.fromEntries(discoveries.map((method) => [pathOf(method), discoverer(extension, method, logger)])),
    ...Object.fromEntries(hooks.map((method) => [pathOf(method), answerer(extension, method, bound, trace, logger)])),
  });
  const services = [...new Set([...discoveries, ...hooks].map((method) => method.parent))];
  const served = new Set([...discoveries, ...hooks].map(pathOf));
  const others = [...new Set([...services, ...contract])].flatMap((service) => service.methods).filter((method) => !served.has(pathOf(method)));
  server.addService(definition(others), Object.fromEntries(others.map((method) => [pathOf(method), refuser(method, logger)])));
  const health = new HealthService(services.map((service) => service.typeName));
  server.addService(health.definition, health.implementation);
  const reflected = reflection(services);
  server.addService(reflected.definition, reflected.implementation);

  const certificates = options.tlsCert && options.tlsKey
    ? new Certificates({ cert: options.tlsCert, key: options.tlsKey, clientCa: options.clientCa }, logger)
    : undefined;
  let bindTo = address;
  try {
    const port = await bind(server, address, certificates?.credentials ?? ServerCredentials.createInsecure());
    bindTo = address.replace(/:0$/, `:${port}`);
  } catch (error) {
    certificates?.close();
    throw error;
  }
  logger.info(`listening on ${bindTo}`, { address: bindTo });

  let closed: Promise<void> | undefined;
  return { address: bindTo, close: () => (closed ??= drain(server, health).finally(() => certificates?.close())) };
}

function checkAddress(address: string, { tlsCert, tlsKey, clientCa, insecure }: ServeOptions): void {
  if (Boolean(tlsCert) !== Boolean(tlsKey) || (clientCa && !tlsCert)) {
    throw new Error("tlsCert and tlsKey need each other, and clientCa needs both");
  }
  if (/^unix:\/\/\/./.test(address)) {
    return;
  }
  const host = /^(.*):\d{1,5}$/.exec(address)?.[1];
  if (!host || address.includes("/")) {
    throw new Error(`address "${address}": want HOST:PORT or unix:///PATH`);
  }
  if (!tlsCert && !insecure && !/^(localhost|127\.\d+\.\d+\.\d+|\[::1\])$/.test(host)) {
    throw new Error(`address ${address} is not loopback: set tlsCert and tlsKey, or insecure: true if something else protects the connection`);
  }
}

/** bind listens at an address, and returns the port. It replaces the socket that a killed server has left. */
async function bind(server: Server, address: string, credentials: ServerCredentials): Promise<number> {
  const listen = () =>
    new Promise<number>((resolve, reject) =>
      server.bindAsync(address, credentials, (error, port) => (error ? reject(new Error(`address ${address}: ${explain(error)}`)) : resolve(port))),
    );
  if (!address.startsWith("unix://")) {
    return listen();
  }
  const path = address.slice("unix://".length);
  const there = lstatSync(path, { throwIfNoEntry: false });
  if (there && !there.isSocket()) {
    throw new Error(`address ${address}: there is a file that is not a socket`);
  }
  if (there && (await accepts(path))) {
    throw new Error(`address ${address}: another server listens there`);
  }
  rmSync(path, { force: true });
  return forUserOnly(listen);
}

let masked: Promise<unknown> = Promise.resolve();

/** forUserOnly makes files that only their user can open. The mask is the process's, so it makes them one after the other. */
function forUserOnly<T>(make: () => Promise<T>): Promise<T> {
  const made = masked.then(async () => {
    const mask = process.umask(0o177);
    try {
      return await make();
    } finally {
      process.umask(mask);
    }
  });
  masked = made.catch(() => {});
  return made;
}

function explain({ message }: Error): string {
  return message.includes("EADDRINUSE") ? "another server listens there" : message;
}

function accepts(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(path);
    socket.once("connect", () => resolve(true)).once("error", () => resolve(false));
    socket.once("connect", () => socket.destroy());
  });
}

async function drain(server: Server, health: HealthService): Promise<void> {
  health.drain();
  const timer = setTimeout(() => server.forceShutdown(), grace);
  await new Promise<void>((resolve) => server.tryShutdown(() => resolve()));
  clearTimeout(timer);
}

function discoverer(extension: Extension, method: DescMethodUnary, log: Logger): UntypedHandleCall {
  return (_call: unknown, callback: sendUnaryData<unknown>) => {
    try {
      callback(null, extension.discover(method));
    } catch (error) {
      log.error("discovery", { hook: method.name, stack: (error as Error).stack });
      callback({ code: Code.INTERNAL, details: `${method.name}: internal error; the log of the extension has it` });
    }
  };
}

/** refuser refuses calls of a hook that the extension does not have. */
function refuser(method: DescMethod, log: Logger): UntypedHandleCall {
  const level = method.parent.name === "DiscoveryService" ? "debug" : "info"; // a gateway calls the discoveries of all groups
  return (call: ServerUnaryCall<any, any>, callback: sendUnaryData<unknown>) => {
    const error = `the extension has no handler of ${method.name}`;
    log[level]("call failed", { hook: method.name, ...idField(callIDOf(call.metadata)), kind: "UnknownHook", code: "UNIMPLEMENTED", error, took: 0 });
    callback({ code: Code.UNIMPLEMENTED, details: error });
  };
}

function answerer(extension: Extension, method: DescMethodUnary, bound: Bound, trace: Tracer, log: Logger): UntypedHandleCall {
  return (call: ServerUnaryCall<any, any>, callback: sendUnaryData<unknown>) => {
    const ended = new AbortController();
    call.on("cancelled", () => {
      const late = Number(call.getDeadline()) - Date.now() < 100; // the time of the caller is up a little earlier
      const [code, kind] = late ? ([Code.DEADLINE_EXCEEDED, "Timeout"] as const) : ([Code.CANCELLED, "Canceled"] as const);
      ended.abort(new StatusError(code, "the call has ended before its handler", kind));
    });
    const callID = callIDOf(call.metadata);
    bound
      .run(() => extension.answer(method, call.request, { callID, signal: ended.signal, log, run: (handler) => trace(call.metadata, handler) }))
      .then(
        (response) => callback(null, response),
        (error) => callback(error instanceof StatusError ? { code: error.code, details: error.message } : { code: Code.INTERNAL, details: "internal error" }),
      );
  };
}
