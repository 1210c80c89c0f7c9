// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// What a handler answers, besides the response message of its hook.

import type { DescMessage, MessageShape } from "@bufbuild/protobuf";

import type { Patches } from "./patches.js";

const longestWait = 2 ** 31 - 1;

/** Done is the answer Success. Make one with {@link done}. */
export class Done {
  declare private readonly kind: "Done";
}

/** Wait is the answer Success with retryAfterSeconds. Make one with {@link wait}. */
export class Wait {
  declare private readonly kind: "Wait";

  constructor(
    readonly seconds: number,
    readonly message: string,
  ) {}
}

/**
 * Failure is the answer Failure, for a problem that a person must solve. A handler returns or throws it. Make one with
 * {@link fail}.
 */
export class Failure extends Error {
  override readonly name = "Failure";
}

/**
 * InvalidRequest ends a call with the gRPC status INVALID_ARGUMENT, for a request that cannot be read: a mistake of the
 * caller. A handler throws it.
 */
export class InvalidRequest extends Error {
  override readonly name = "InvalidRequest";
}

/**
 * Answer is what the handler of a hook with the response O may return: {@link wait} only if the response has
 * retryAfterSeconds, and {@link Patches} only if it has patches for items.
 */
export type Answer<O extends DescMessage> =
  | Done
  | Failure
  | MessageShape<O>
  | (MessageShape<O> extends { retryAfterSeconds: number } ? Wait : never)
  | (MessageShape<O> extends { items: { uid: string; patch?: Uint8Array | undefined }[] } ? Patches : never);

/** done answers Success: the caller goes on. */
export function done(): Done {
  return new Done();
}

/** wait answers Success with retryAfterSeconds: the caller waits, and calls again. The message says what it waits for. */
export function wait(seconds: number, message: string): Wait {
  if (!Number.isInteger(seconds) || seconds < 1 || seconds > longestWait) {
    throw new RangeError(`wait: ${seconds} is not a number of seconds: want an integer of at least 1`);
  }
  if (!message) {
    throw new RangeError("wait: the message is empty: say what the caller waits for");
  }
  return new Wait(seconds, message);
}

/**
 * fail answers Failure: a problem that a person must solve. The message says which, and is the same for the same
 * request.
 */
export function fail(message: string): Failure {
  if (!message) {
    throw new RangeError("fail: the message is empty: say what is wrong");
  }
  return new Failure(message);
}
