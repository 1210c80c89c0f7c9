// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// The bound of the calls in flight.

import { ServerInterceptingCall, status, type ServerInterceptor } from "@grpc/grpc-js";

import { callIDOf, idField, type Logger } from "./log.js";

/** Bound counts calls from their beginning, so that it refuses a call before its request takes memory. */
export class Bound {
  #receiving = 0;
  #running = 0;

  /** limit is how many calls may be in flight; applies says whether a path is one of a hook. */
  constructor(
    readonly limit: number,
    readonly applies: (path: string) => boolean,
    readonly log: Logger,
  ) {}

  /** interceptor refuses calls beyond the limit. */
  readonly interceptor: ServerInterceptor = (method, call) => {
    if (!this.applies(method.path)) {
      return new ServerInterceptingCall(call);
    }
    let receiving = false;
    const received = () => {
      if (receiving) {
        receiving = false;
        this.#receiving--;
      }
    };
    return new ServerInterceptingCall(call, {
      start: (next) =>
        next({
          onReceiveMetadata: (metadata, forward) => {
            if (this.#receiving + this.#running >= this.limit) {
              const error = `${this.limit} calls are in flight: try again later`;
              const hook = method.path.slice(method.path.lastIndexOf("/") + 1);
              this.log.info("call failed", { hook, ...idField(callIDOf(metadata)), kind: "Overloaded", code: "RESOURCE_EXHAUSTED", error, took: 0 });
              call.sendStatus({ code: status.RESOURCE_EXHAUSTED, details: error });
              return;
            }
            receiving = true;
            this.#receiving++;
            forward(metadata);
          },
          onReceiveHalfClose: (forward) => {
            received();
            forward();
          },
          onCancel: received,
        }),
      sendStatus: (ended, next) => {
        received();
        next(ended);
      },
    });
  };

  /** run counts a handler until it has ended, also after its call has. */
  async run<T>(handler: () => Promise<T>): Promise<T> {
    this.#running++;
    try {
      return await handler();
    } finally {
      this.#running--;
    }
  }
}
