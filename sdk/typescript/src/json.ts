// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// JSON as Kubernetes has it: integers above 2^53 are kept, as bigint.

import { randomUUID } from "node:crypto";

import { InvalidRequest } from "./answers.js";

/** Json is a decoded JSON value. An integer that a number cannot hold is a bigint. */
export type Json = null | boolean | number | bigint | string | Json[] | { [name: string]: Json };

/** KubernetesObject is a decoded Kubernetes object, as it was sent: nothing has checked its members. */
export interface KubernetesObject {
  apiVersion?: string;
  kind?: string;
  metadata?: {
    name?: string;
    namespace?: string;
    labels?: { [name: string]: string };
    annotations?: { [name: string]: string };
    [name: string]: any;
  };
  [name: string]: any;
}

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** decode decodes JSON. What is not JSON is an InvalidRequest, whose text begins with the place. */
export function decode(raw: Uint8Array, place: string): Json {
  let text: string;
  try {
    text = utf8.decode(raw);
  } catch {
    throw new InvalidRequest(`${place}: not UTF-8`);
  }
  try {
    return parse(text);
  } catch (error) {
    // The parser's own text quotes the document, which may have secrets.
    throw new InvalidRequest(`${place}: ${error instanceof RangeError ? "too deeply nested" : "not valid JSON"}`);
  }
}

// JSON.parse rounds integers above 2^53, and JSON.stringify refuses a bigint. Parsers in JavaScript that do neither need ten
// seconds for 20 MiB. So such an integer is a string for a moment, with a mark that no document can have guessed.
const mark = `${randomUUID()}:`;
const marked = new RegExp(`"${mark}(-?\\d+)"`, "g");
const longInteger = /(?<![\d.eE+-])-?\d{16,}(?![\d.eE])/g;

function parse(text: string): Json {
  const value = JSON.parse(text) as Json; // also because marks could make JSON of what is none
  if (!/\d{16}/.test(text)) {
    return value;
  }
  let withMarks = "";
  let copied = 0;
  for (let at = 0; at < text.length; ) {
    const quote = text.indexOf('"', at);
    const end = quote < 0 ? text.length : quote;
    if (end - at >= 16) { // most of what is between strings is too short
      withMarks += text.slice(copied, at) + text.slice(at, end).replace(longInteger, `"${mark}$&"`);
      copied = end;
    }
    at = quote < 0 ? end : endOfString(text, quote);
  }
  return unmark(JSON.parse(withMarks + text.slice(copied)));
}

/** endOfString returns the index after the string that begins at an index. */
function endOfString(text: string, begin: number): number {
  for (let at = begin; ; ) {
    at = text.indexOf('"', at + 1);
    let backslashes = 0;
    while (text[at - 1 - backslashes] === "\\") {
      backslashes++;
    }
    if (backslashes % 2 === 0) {
      return at + 1;
    }
  }
}

/** unmark replaces marked integers below a value, in place, and returns it. */
function unmark(value: Json): Json {
  if (typeof value === "string" && value.startsWith(mark)) {
    const digits = value.slice(mark.length);
    return Number.isSafeInteger(Number(digits)) ? Number(digits) : BigInt(digits);
  }
  if (typeof value === "object" && value !== null) {
    for (const name of Object.keys(value)) {
      const member = (value as { [name: string]: Json })[name]!;
      const unmarked = unmark(member);
      if (unmarked !== member) {
        put(value as { [name: string]: Json }, name, unmarked);
      }
    }
  }
  return value;
}

/** decodeObject decodes a JSON object. Anything else is an InvalidRequest, whose text begins with the place. */
export function decodeObject(raw: Uint8Array | undefined, place: string): { [name: string]: Json } {
  if (!raw?.length) {
    throw new InvalidRequest(`${place}: there is no object`);
  }
  const value = decode(raw, place);
  if (!isObject(value)) {
    throw new InvalidRequest(`${place}: not a JSON object`);
  }
  return value;
}

/** encode encodes JSON without spaces. It throws a TypeError for what JSON does not have. */
export function encode(value: unknown): Uint8Array {
  checkJson(value);
  const text = JSON.stringify(value, (_, member) => (typeof member === "bigint" ? mark + member : member));
  return Buffer.from(text.replace(marked, "$1"));
}

function checkJson(value: unknown): void {
  if (Array.isArray(value)) {
    value.forEach(checkJson);
  } else if (isObject(value)) {
    for (const name of members(value)) {
      checkJson(value[name]);
    }
  } else if (typeof value === "number" && !Number.isFinite(value)) {
    throw new TypeError(`${value} is not a JSON value`);
  }
}

/**
 * isObject reports whether a value is a JSON object. It throws a TypeError for what is no JSON value at all, such as a
 * Date.
 */
export function isObject(value: unknown): value is { [name: string]: Json } {
  switch (typeof value) {
    case "boolean":
    case "number":
    case "bigint":
    case "string":
      return false;
    case "object": {
      if (value === null || Array.isArray(value)) {
        return false;
      }
      const prototype = Object.getPrototypeOf(value);
      if (prototype === null || prototype === Object.prototype) {
        return true;
      }
      throw new TypeError(`an object of the class ${prototype.constructor?.name} is not a JSON value`);
    }
    default:
      throw new TypeError(`a value of the type ${typeof value} is not a JSON value`);
  }
}

/** members returns the names of an object's members. One that is undefined is absent, as for JSON.stringify. */
export function members(object: { [name: string]: unknown }): string[] {
  return Object.keys(object).filter((name) => object[name] !== undefined);
}

/** member returns the member of an object, or undefined if value is no object or has no such member. */
export function member(value: Json | undefined, name: string): Json | undefined {
  return value !== undefined && isObject(value) && Object.hasOwn(value, name) ? value[name] : undefined;
}

/** put sets a member, also one whose name is __proto__. */
export function put(object: { [name: string]: Json }, name: string, value: Json): void {
  Object.defineProperty(object, name, { value, writable: true, enumerable: true, configurable: true });
}

/** RawPath is the type of the paths from a message of type T to its Kubernetes objects. */
export type RawPath<T> = { [Name in keyof T & string]: Step<Name, NonNullable<T[Name]>> }[keyof T & string];
type Step<Path extends string, T> = T extends { $typeName: string; raw: Uint8Array }
  ? Path
  : T extends readonly (infer Element)[]
    ? Step<`${Path}[${number}]`, Element>
    : T extends { $typeName: string }
      ? `${Path}.${RawPath<T>}`
      : never;

/**
 * load returns a Kubernetes object of a request, decoded. The path consists of the contract's names in JSON: "cluster",
 * "current.machine", "items[0].object". An object that is absent or no JSON object ends the call with the gRPC status
 * INVALID_ARGUMENT.
 */
export function load<Request extends { $typeName: string }, T = KubernetesObject>(request: Request, path: RawPath<Request>): T {
  return decodeObject(rawAt(request, path), path) as T;
}

function rawAt(request: object, path: string): Uint8Array | undefined {
  const steps = path.split(/[.[\]]+/).filter((step) => step !== "");
  const value = steps.reduce<any>((value, step) => (value && Object.hasOwn(value, step) ? value[step] : undefined), request);
  return value?.raw;
}
