// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Registrations, the discovery that is made from them, and the answer to one call.

import { create, type DescMessage, type DescMethodUnary, type Message, type MessageShape } from "@bufbuild/protobuf";

import { Failure, InvalidRequest, type Answer } from "./answers.js";
import { DiscoveryService } from "./gen/hookgate/hooks/v1alpha1/discovery_pb.js";
import { apiVersionOf, failed, field, remember, respond } from "./hook.js";
import { idField, withFields, type Logger } from "./log.js";
import { listen, serve, type Listening, type ServeOptions } from "./server.js";
import { Code, StatusError, type Kind } from "./status.js";

/** ClusterApiVersion is a version of Cluster API's objects, or null for objects as they were sent. */
export type ClusterApiVersion = "v1beta2" | "v1beta1" | null;

/** ExtensionOptions are what holds for all handlers of an extension. */
export interface ExtensionOptions {
  /**
   * clusterApiVersion is the version of Cluster API's objects that the handlers read: the gateway converts others. By
   * default "v1beta2"; null takes objects as they were sent.
   */
  clusterApiVersion?: ClusterApiVersion | undefined;
  /** groups maps the proto packages of hooks of your own, such as "acme.dns.v1alpha1", to their groups, "dns.acme.example". */
  groups?: { readonly [pkg: string]: string } | undefined;
}

/** HandlerOptions are what a handler states in discovery. */
export interface HandlerOptions {
  /** timeoutSeconds is how long a call may take: 0 to 30, by default 10. */
  timeoutSeconds?: number | undefined;
  /** failurePolicy says whether a call that could not be completed counts. By default "Fail". */
  failurePolicy?: "Fail" | "Ignore" | undefined;
  /** clusterApiVersion overrides that of the extension. */
  clusterApiVersion?: ClusterApiVersion | undefined;
}

/** Context is what a handler knows of its call besides the request. */
export interface Context {
  /** handler is the handler's name. */
  readonly handler: string;
  /** callID is the id of the call that the gateway has given its caller, or "". */
  readonly callID: string;
  /** signal is aborted when the deadline of the call has passed, or its caller has gone. */
  readonly signal: AbortSignal;
  /** log writes log lines with the fields hook, handler and, if the call has an id, call_id. */
  readonly log: Logger;
}

/** Handler answers a hook. */
export type Handler<I extends DescMessage, O extends DescMessage> = (
  request: MessageShape<I>,
  context: Context,
) => Answer<O> | Promise<Answer<O>>;

interface Registration {
  readonly method: DescMethodUnary;
  readonly handler: (request: any, context: Context) => unknown;
  readonly name: string;
  readonly apiVersion: string;
  readonly timeoutSeconds: number;
  readonly failurePolicy: "Fail" | "Ignore";
  readonly clusterApiVersion: string;
}

type Discover = () => Message;

/** Call is one call of a hook, as its server knows it. */
export interface Call {
  readonly callID: string;
  readonly signal: AbortSignal;
  readonly log: Logger;
  /** run runs the handler in the call's context of OpenTelemetry. */
  run<T>(handler: () => T): T;
}

/** Extension has handlers, and serves them. Its methods return it, so that they can be chained. */
export class Extension {
  readonly #options: ExtensionOptions;
  readonly #handlers: Registration[] = [];
  readonly #discoveries = new Map<DescMethodUnary, Discover>();

  constructor(options: ExtensionOptions = {}) {
    this.#options = options;
    this.discovery(DiscoveryService.method.discovery);
  }

  /**
   * handle registers the handler of a hook, under a name that is a DNS-1123 label and is not used yet. A hook may have
   * several handlers: the caller chooses one by its name.
   */
  handle<I extends DescMessage, O extends DescMessage>(
    method: DescMethodUnary<I, O>,
    name: string,
    handler: Handler<I, O>,
    { timeoutSeconds = 10, failurePolicy = "Fail", clusterApiVersion = this.#options.clusterApiVersion }: HandlerOptions = {},
  ): this {
    if (name.length > 63 || !/^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/.test(name)) {
      throw new RangeError(`handler "${name}": not a DNS-1123 label, such as "approve-upgrade"`);
    }
    if (this.#handlers.some((other) => other.name === name)) {
      throw new RangeError(`handler "${name}": there is another one with this name`);
    }
    if (isDiscovery(method)) {
      throw new TypeError(`handler "${name}": ${method.name} is a discovery, which is made from the handlers: see extension.discovery`);
    }
    if (!Number.isInteger(timeoutSeconds) || timeoutSeconds < 0 || timeoutSeconds > 30) {
      throw new RangeError(`handler "${name}": timeoutSeconds is ${timeoutSeconds}, want an integer from 0 to 30`);
    }
    if (!["Fail", "Ignore"].includes(failurePolicy)) {
      throw new RangeError(`handler "${name}": failurePolicy is "${failurePolicy}", want "Fail" or "Ignore"`);
    }
    if (clusterApiVersion && !["v1beta1", "v1beta2"].includes(clusterApiVersion)) {
      throw new RangeError(`handler "${name}": clusterApiVersion is "${clusterApiVersion}", want "v1beta2", "v1beta1" or null`);
    }
    this.#handlers.push({
      method,
      handler,
      name,
      apiVersion: apiVersionOf(method, this.#options.groups ?? {}),
      timeoutSeconds,
      failurePolicy,
      clusterApiVersion: clusterApiVersion === undefined ? "v1beta2" : (clusterApiVersion ?? ""),
    });
    return this;
  }

  /**
   * discovery serves the discovery of another group than Cluster API's: that of infrastructure, or of hooks of your own.
   * The handlers are filled in; what else is in the response is made by announce.
   */
  discovery<I extends DescMessage, O extends DescMessage>(method: DescMethodUnary<I, O>, announce?: () => MessageShape<O>): this {
    if (!isDiscovery(method)) {
      throw new TypeError(`${method.name} is not a discovery: its response has no handlers`);
    }
    apiVersionOf(method, this.#options.groups ?? {});
    this.#discoveries.set(method, announce ?? (() => create(method.output) as Message));
    return this;
  }

  /** serve serves the extension until SIGTERM or SIGINT, and finishes the calls in flight. */
  serve(options: ServeOptions = {}): Promise<void> {
    return serve(this, options);
  }

  /** listen serves the extension until it is closed. */
  listen(options: ServeOptions = {}): Promise<Listening> {
    return listen(this, options);
  }

  /** @internal methods returns the hooks that have handlers, and the discoveries that list them. */
  methods(): { hooks: DescMethodUnary[]; discoveries: DescMethodUnary[] } {
    const hooks = [...new Set(this.#handlers.map((handler) => handler.method))];
    const discoveries = [...this.#discoveries.keys()];
    const groups = new Set(discoveries.map((method) => this.#groupOf(method)));
    const hidden = this.#handlers.find((handler) => !groups.has(group(handler.apiVersion)));
    if (hidden) {
      const { name, apiVersion } = hidden;
      throw new Error(`handler "${name}": no discovery lists it: call extension.discovery with that of ${group(apiVersion)}`);
    }
    return { hooks, discoveries };
  }

  /** @internal discover answers a discovery. */
  discover(method: DescMethodUnary): Message {
    const handlers = this.#handlers.filter((handler) => group(handler.apiVersion) === this.#groupOf(method));
    const response = respond(method, this.#discoveries.get(method)!()) as Message & { handlers: object[] };
    const type = field(method.output, "handlers")!.message!;
    response.handlers = handlers.map((handler) =>
      create(type, {
        name: handler.name,
        requestHook: { apiVersion: handler.apiVersion, hook: handler.method.name },
        timeoutSeconds: handler.timeoutSeconds,
        failurePolicy: handler.failurePolicy === "Ignore" ? 1 : 2,
        clusterApiVersion: handler.clusterApiVersion,
      }),
    );
    return response;
  }

  /** @internal answer answers a call of a hook. It rejects with a StatusError, and with nothing else. */
  async answer(method: DescMethodUnary, request: Message, call: Call): Promise<Message> {
    const started = performance.now();
    let fields: { [name: string]: string } = { hook: method.name, ...idField(call.callID) };
    const took = () => Math.round((performance.now() - started) * 1e6);
    const logFailed = (kind: Kind, error: string, more?: object) =>
      call.log[kind === "Internal" ? "error" : "info"]("call failed", { ...fields, kind, error, took: took(), ...more });
    try {
      const { name, handler } = this.#select(method, request);
      fields = { hook: method.name, handler: name, ...idField(call.callID) };
      remember(request, method);
      const context = { handler: name, callID: call.callID, signal: call.signal, log: withFields(call.log, fields) };
      const answer = await call.run(() => handler(request, context));
      call.signal.throwIfAborted();
      const response = respond(method, answer, name);
      if (failed(response)) {
        logFailed("Failure", (response as { message?: string }).message ?? "");
      } else {
        call.log.debug("call answered", { ...fields, took: took() });
      }
      return response;
    } catch (thrown) {
      let error: unknown = thrown;
      if (call.signal.aborted) {
        const { reason } = call.signal;
        error = reason instanceof StatusError ? reason : new StatusError(Code.CANCELLED, "the call has ended before its handler", "Canceled");
      } else if (thrown instanceof InvalidRequest) {
        error = new StatusError(Code.INVALID_ARGUMENT, thrown.message);
      }
      if (error instanceof StatusError) {
        logFailed(error.kind, error.message, { code: Code[error.code] });
        throw error;
      }
      if (error instanceof Failure) {
        logFailed("Failure", error.message);
      } else {
        // The error's own text stays in the log: it may have secrets, and may change from call to call.
        const name = error instanceof Error ? error.constructor.name : typeof error;
        logFailed("Internal", String(error), { stack: error instanceof Error ? error.stack : String(error) });
        error = new Failure(`handler "${fields["handler"]}": internal error (${name}); search the log of the extension for the call's id`);
      }
      if (!field(method.output, "status")) {
        throw new StatusError(Code.INTERNAL, (error as Failure).message);
      }
      return respond(method, error);
    }
  }

  #select(method: DescMethodUnary, request: Message): Registration {
    const handlers = this.#handlers.filter((handler) => handler.method === method);
    const asked = (request as { handler?: string }).handler ?? "";
    const found = asked === "" ? handlers : handlers.filter((handler) => handler.name === asked);
    if (found.length === 1) {
      return found[0]!;
    }
    if (handlers.length === 0) {
      throw new StatusError(Code.UNIMPLEMENTED, `the extension has no handler of ${method.name}`, "UnknownHook");
    }
    const names = handlers.map((handler) => `"${handler.name}"`).join(", ");
    if (asked !== "") {
      throw new StatusError(Code.NOT_FOUND, `${method.name} has no handler "${asked}", but ${names}`, "UnknownHandler");
    }
    throw new StatusError(Code.INVALID_ARGUMENT, `${method.name} has several handlers: name one of ${names}`, "Ambiguous");
  }

  #groupOf(method: DescMethodUnary): string {
    return group(apiVersionOf(method, this.#options.groups ?? {}));
  }
}

function isDiscovery(method: DescMethodUnary): boolean {
  return field(method.output, "handlers")?.message?.name === "ExtensionHandler";
}

function group(apiVersion: string): string {
  return apiVersion.slice(0, apiVersion.lastIndexOf("/"));
}
