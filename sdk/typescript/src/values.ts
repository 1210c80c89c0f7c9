// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Settings and variables of a request, by name and type.

import { Failure } from "./answers.js";
import { decode, isObject, member, put, type Json } from "./json.js";

/** Types maps the names of the types of a variable to TypeScript's. Only "any" has integers above 2^53, as bigint. */
export interface Types {
  string: string;
  integer: number;
  number: number;
  boolean: boolean;
  array: any[];
  object: { [name: string]: any };
  any: any;
}

/** SettingType is the name of a type that the text of a setting can be read as. */
export type SettingType = "string" | "integer" | "number" | "boolean";

/** Configured is a request with settings. */
export interface Configured {
  settings: { [name: string]: string };
}

/** Variable is a variable of a request, as in the stubs. */
export interface Variable {
  name: string;
  value?: { raw: Uint8Array } | undefined;
}

const wants = { string: "text", integer: "an integer", number: "a number", boolean: "true or false" };

/**
 * setting returns a setting of a request. One that is not of the type, or is not set and has no fallback, is a Failure,
 * whose text does not have the value, which may be a secret.
 */
export function setting<T extends SettingType>(request: Configured, name: string, type: T): Types[T];
export function setting<T extends SettingType, F>(request: Configured, name: string, type: T, fallback: F): Types[T] | F;
export function setting(request: Configured, name: string, type: SettingType, ...fallback: unknown[]): unknown {
  if (!Object.hasOwn(request.settings, name)) {
    return fallen(fallback, `setting "${name}" is not set`);
  }
  const text = request.settings[name]!;
  switch (type) {
    case "string":
      return text;
    case "boolean":
      if (text === "true" || text === "false") {
        return text === "true";
      }
      break;
    default: {
      const pattern = type === "integer" ? /^[+-]?\d+$/ : /^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$/;
      const number = Number(text);
      if (pattern.test(text) && (type === "integer" ? Number.isSafeInteger(number) : Number.isFinite(number))) {
        return number;
      }
    }
  }
  throw new Failure(`setting "${name}": want ${wants[type]}`);
}

/** Scope has the variables of an item, which win, before those of its request. */
export type Scope = readonly { variables: readonly Variable[] }[];

/**
 * lookup returns what is at a path of the variables in scope, as in Cluster API's inline patches: "imageRepository",
 * "proxy.noProxy[0]", "builtin.controlPlane.version". The members of all values of builtin are merged.
 */
export function lookup(scope: Scope, path: string, type: keyof Types, fallback: unknown[]): unknown {
  const steps = path.split(".").flatMap((segment): (string | number)[] => {
    const step = /^([^[\]]+)(?:\[(\d{1,9})\])?$/.exec(segment);
    if (!step) {
      throw new TypeError(`"${path}" is not a path of variables such as "proxy.noProxy[0]"`);
    }
    return step[2] === undefined ? [step[1]!] : [step[1]!, Number(step[2])];
  });
  const value = steps
    .slice(1)
    .reduce<Json | undefined>(
      (value, step) => (typeof step === "string" ? member(value, step) : Array.isArray(value) ? value[step] : undefined),
      valueOf(scope, String(steps[0])),
    );
  if (value === undefined) {
    return fallen(fallback, `variable "${path}" is not set`);
  }
  if (!isOf(value, type)) {
    throw new Failure(`variable "${path}" is not ${/^[aeiou]/.test(type) ? "an" : "a"} ${type}`);
  }
  return value;
}

function valueOf(scope: Scope, name: string): Json | undefined {
  const values = scope.flatMap(({ variables }) => variables.findLast((variable) => variable.name === name) ?? []);
  const decoded = (name === "builtin" ? values : values.slice(0, 1)).map((variable) =>
    decode(variable.value?.raw ?? new Uint8Array(), `variable "${name}"`),
  );
  return decoded.length === 0 ? undefined : decoded.reduce(merge);
}

/** merge adds to first the members that it lacks. */
function merge(first: Json, second: Json): Json {
  if (isObject(first) && isObject(second)) {
    for (const [name, value] of Object.entries(second)) {
      put(first, name, Object.hasOwn(first, name) ? merge(first[name]!, value) : value);
    }
  }
  return first;
}

function isOf(value: Json, type: keyof Types): boolean {
  switch (type) {
    case "integer":
      return Number.isSafeInteger(value);
    case "array":
      return Array.isArray(value);
    case "object":
      return isObject(value);
    case "any":
      return true;
    default:
      return typeof value === type;
  }
}

function fallen(fallback: unknown[], text: string): unknown {
  if (fallback.length === 0) {
    throw new Failure(text);
  }
  return fallback[0];
}
