// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// What the descriptors of the stubs say about a hook, and how an answer becomes its response.

import { create, isMessage, type DescField, type DescMessage, type DescMethodUnary, type Message } from "@bufbuild/protobuf";

import { Done, Failure, Wait } from "./answers.js";
import { Patches } from "./patches.js";

// The numbers of ResponseStatus and PatchType are the same in every version of the contract.
const success = 1;
const failure = 2;
const jsonPatch = 1;

const groups: { readonly [pkg: string]: string } = {
  "hookgate.hooks": "hooks.runtime.cluster.x-k8s.io",
  "hookgate.infrastructure": "infrastructure.hookgate.dev",
  "hookgate.machines": "hooks.machines.hookgate.dev",
};

/** apiVersionOf returns the apiVersion of the hooks of a proto package, by its name or by a map of the packages of others. */
export function apiVersionOf(method: DescMethodUnary, others: { readonly [pkg: string]: string }): string {
  const pkg = method.parent.file.proto.package;
  const at = pkg.lastIndexOf(".");
  const stem = pkg.slice(0, at);
  const group = others[pkg] ?? others[stem] ?? groups[stem];
  if (group === undefined) {
    const statement = `new Extension({groups: {"${pkg}": "dns.acme.example"}})`;
    throw new Error(`${method.name}: the group of the proto package ${pkg} is not known: ${statement} states it`);
  }
  return `${group}/${pkg.slice(at + 1)}`;
}

/** field returns a field of a message's type by its name in protobuf, if it has one. */
export function field(type: DescMessage, name: string): DescField | undefined {
  return type.fields.find((field) => field.name === name);
}

const methods = new WeakMap<object, DescMethodUnary>();

/** remember notes which hook a request is for. */
export function remember(request: object, method: DescMethodUnary): void {
  methods.set(request, method);
}

/** methodOf returns the hook that a request is for. */
export function methodOf(request: { $typeName: string }): DescMethodUnary {
  const method = methods.get(request);
  if (!method) {
    throw new TypeError(`this ${request.$typeName} is not the request that the handler was called with`);
  }
  return method;
}

/** respond makes the response of a hook from what a handler has returned. */
export function respond(method: DescMethodUnary, answer: unknown, handler = ""): Message {
  const type = method.output;
  if (answer instanceof Done) {
    return create(type, { status: success });
  }
  if (answer instanceof Failure) {
    return create(type, { status: failure, message: answer.message });
  }
  if (answer instanceof Wait) {
    if (!field(type, "retry_after_seconds")) {
      throw new Failure(`${method.name} has no retryAfterSeconds: answer done() or fail(), not wait()`);
    }
    return create(type, { status: success, retryAfterSeconds: answer.seconds, message: answer.message });
  }
  if (answer instanceof Patches) {
    return create(type, { status: success, items: answer.changes().map((change) => ({ ...change, patchType: jsonPatch })) });
  }
  if (isMessage(answer, type)) {
    const response = answer as Message & { status?: number };
    if (field(type, "status") && !response.status) {
      response.status = success;
    }
    return response;
  }
  const what = answer === undefined || answer === null ? "nothing" : `a ${Object(answer).constructor?.name ?? "value"}`;
  throw new Failure(`handler "${handler}" returned ${what}: return done(), wait(), fail() or a ${type.name}`);
}

/** failed reports whether a response has the status Failure. */
export function failed(response: Message): boolean {
  return (response as { status?: number }).status === failure;
}
