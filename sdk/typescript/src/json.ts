// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// JSON as Kubernetes has it: integers above 2^53 are kept, as bigint.

import { parse as parseLossless, stringify as stringifyLossless } from "lossless-json";

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

/**
 * decode decodes JSON. What is not JSON is an InvalidRequest, whose text begins with the place. Duplicate members are
 * decided as by JSON.parse: the last one counts.
 */
export function decode(raw: Uint8Array, place: string): Json {
  let text: string;
  try {
    text = utf8.decode(raw);
  } catch {
    throw new InvalidRequest(`${place}: not UTF-8`);
  }
  try {
    // Only a long run of digits can be an integer that JSON.parse rounds, and JSON.parse is many times faster.
    return /\d{16}/.test(text) ? (parseLossless(text, null, { parseNumber, onDuplicateKey: last }) as Json) : JSON.parse(text);
  } catch (error) {
    // The parsers' own texts quote the document, which may have secrets.
    throw new InvalidRequest(`${place}: ${error instanceof RangeError ? "too deeply nested" : "not valid JSON"}`);
  }
}

function parseNumber(text: string): number | bigint {
  const number = Number(text);
  return Number.isSafeInteger(number) || !/^-?\d+$/.test(text) ? number : BigInt(text);
}

function last({ newValue }: { newValue: unknown }): unknown {
  return newValue;
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
  return Buffer.from(stringifyLossless(value)!);
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
