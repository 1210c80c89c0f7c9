// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// The log of an extension.

import type { Metadata } from "@grpc/grpc-js";

const longestCallID = 64;

/** Logger takes the log lines of an extension. Those of console, pino and winston are examples. */
export interface Logger {
  debug(message: string, fields?: object): void;
  info(message: string, fields?: object): void;
  error(message: string, fields?: object): void;
}

/** jsonLines writes one JSON object for each line to stderr, without those of level debug. */
export const jsonLines: Logger = {
  debug() {},
  info: (message, fields) => write("INFO", message, fields),
  error: (message, fields) => write("ERROR", message, fields),
};

function write(level: string, msg: string, fields: object | undefined): void {
  process.stderr.write(JSON.stringify({ time: new Date().toISOString(), level, msg, ...fields }) + "\n");
}

/** withFields returns a logger that adds fields to each line. */
export function withFields(logger: Logger, fields: object): Logger {
  return {
    debug: (message, more) => logger.debug(message, { ...fields, ...more }),
    info: (message, more) => logger.info(message, { ...fields, ...more }),
    error: (message, more) => logger.error(message, { ...fields, ...more }),
  };
}

/** idField returns the field call_id, which lines of calls without an id do not have. */
export function idField(callID: string): { [name: string]: string } {
  return callID === "" ? {} : { call_id: callID };
}

/** callIDOf returns the id that the gateway has given a call, or "". */
export function callIDOf(metadata: Metadata): string {
  return String(metadata.get("hookgate-call-id")[0] ?? "").slice(0, longestCallID);
}
