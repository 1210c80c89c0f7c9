// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package @hookgate/sdk/testing calls handlers in process, and checks an extension against the rules of the contract.

import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { DescMessage, DescMethodUnary, MessageShape } from "@bufbuild/protobuf";
import { parse } from "yaml";

import type { Extension } from "../extension.js";
import { isObject, type Json } from "../json.js";
import { jsonLines, type Logger } from "../log.js";
import { fromJson, toJson } from "./contract.js";

export { StatusError } from "../status.js";

const silent: Logger = { ...jsonLines, info() {} };

/** CallOptions are what a call has besides its request. */
export interface CallOptions {
  /** handler is the handler's name. It may be absent if the hook has only one. */
  handler?: string | undefined;
  /** callID is the id that the gateway would give the call. */
  callID?: string | undefined;
  /** signal aborts the call, as a deadline does. */
  signal?: AbortSignal | undefined;
  /** logger takes the log lines of the call. By default, only exceptions are written, to stderr. */
  logger?: Logger | undefined;
}

/**
 * call calls a handler in process, and returns its response. The request is a file in YAML or JSON, or an object: both in
 * the contract's JSON, as for `hookgate call -f`. A call that a server would end with a gRPC status rejects with a
 * StatusError.
 */
export async function call<I extends DescMessage, O extends DescMessage>(
  extension: Extension,
  method: DescMethodUnary<I, O>,
  request: string | object,
  { handler = "", callID = "", signal = new AbortController().signal, logger = silent }: CallOptions = {},
): Promise<MessageShape<O>> {
  const value = (typeof request === "string" ? parse(await readFile(request, "utf8"), { intAsBigInt: true }) : request) as Json;
  if (!isObject(value)) {
    throw new TypeError(`${typeof request === "string" ? request : "request"}: want an object`);
  }
  const { kind, apiVersion, ...members } = value;
  if (kind !== undefined && kind !== method.input.name) {
    throw new TypeError(`${typeof request === "string" ? request : "request"}: kind is ${kind}, want ${method.input.name}`);
  }
  const message = Object.assign(fromJson(method.input, members, ""), { handler });
  return (await extension.answer(method, message, {
    callID,
    signal,
    log: logger,
    run: (run) => run(),
  })) as MessageShape<O>;
}

/** json returns a message of a hook in the contract's JSON, with patches as the JSON that they hold. */
export function json<O extends DescMessage>(type: O, message: MessageShape<O>): any {
  return toJson(type, message);
}

/**
 * check checks an extension against the rules of the contract, with `hookgate check`. The program is that of the
 * environment variable HOOKGATE_BIN, or else the one in PATH. It calls every handler several times, with invented objects.
 * More arguments, such as "--strict", can be given. It throws an Error with the findings.
 */
export async function check(extension: Extension, ...args: string[]): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), "hookgate-"));
  try {
    const server = await extension.listen({ address: `unix://${folder}/x.sock`, logger: silent });
    try {
      await run(["check", server.address, ...args]);
    } finally {
      await server.close();
    }
  } finally {
    await rm(folder, { recursive: true });
  }
}

function run(args: string[]): Promise<void> {
  const program = process.env["HOOKGATE_BIN"] || "hookgate";
  return new Promise((resolve, reject) => {
    execFile(program, args, { maxBuffer: 64 << 20 }, (error, stdout, stderr) => {
      if (!error) {
        resolve();
      } else if (error.code === "ENOENT") {
        const releases = "https://github.com/hookgate/hookgate/releases";
        reject(new Error(`${program}: no such program. Put hookgate into PATH, or its path into HOOKGATE_BIN: ${releases} has it`));
      } else {
        reject(new Error(`${program} ${args[0]}:\n${stdout}${stderr}`));
      }
    });
  });
}
