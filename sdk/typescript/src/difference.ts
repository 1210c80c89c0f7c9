// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Patches that are made from the difference of two JSON values.

import { isObject, member, members, put, type Json } from "./json.js";
import { formatName } from "./pointer.js";

/** Operation is an operation of a JSON Patch (RFC 6902). */
export interface Operation {
  op: "add" | "remove" | "replace";
  path: string;
  value?: Json;
}

/**
 * difference returns the JSON Patch that makes from into to, at the deepest places where they differ. Of arrays of equal
 * length, elements are replaced; to a longer one with an equal beginning, elements are added; any other is replaced as a
 * whole.
 */
export function difference(from: Json, to: Json): Operation[] {
  const operations: Operation[] = [];
  walk(from, to, "", "add", operations);
  return operations;
}

function walk(from: Json, to: Json, path: string, op: "add" | "replace", operations: Operation[]): void {
  if (isObject(from) && isObject(to)) {
    const names = new Set(members(to));
    for (const name of members(from)) {
      if (names.delete(name)) {
        walk(from[name]!, to[name]!, path + formatName(name), "add", operations);
      } else {
        operations.push({ op: "remove", path: path + formatName(name) });
      }
    }
    for (const name of names) {
      operations.push({ op: "add", path: path + formatName(name), value: to[name]! });
    }
  } else if (Array.isArray(from) && Array.isArray(to) && from.length === to.length) {
    from.forEach((element, i) => walk(element, to[i]!, path + formatName(i), "replace", operations));
  } else if (Array.isArray(from) && Array.isArray(to) && from.length < to.length && from.every((element, i) => equal(element, to[i]!))) {
    for (const value of to.slice(from.length)) {
      operations.push({ op: "add", path: `${path}/-`, value });
    }
  } else if (!equal(from, to)) {
    operations.push({ op, path, value: to });
  }
}

/** equal reports whether two values are the same in JSON: the order of members does not count, and 1 is 1n. */
export function equal(a: Json, b: Json): boolean {
  if (isObject(a) && isObject(b)) {
    const names = members(a);
    return names.length === members(b).length && names.every((name) => {
      const other = member(b, name);
      return other !== undefined && equal(a[name]!, other);
    });
  }
  if (Array.isArray(a) && Array.isArray(b)) {
    return a.length === b.length && a.every((element, i) => equal(element, b[i]!));
  }
  return isNumber(a) && isNumber(b) ? a == b : a === b;
}

function isNumber(value: Json): boolean {
  return typeof value === "number" || typeof value === "bigint";
}

/**
 * mergePatch returns the JSON Merge Patch (RFC 7386) that makes from into to, or undefined if they do not differ. A
 * member that was removed is null.
 */
export function mergePatch(from: Json | undefined, to: Json | undefined): Json | undefined {
  if (from === undefined || to === undefined || !isObject(from) || !isObject(to)) {
    return equal(from ?? null, to ?? null) ? undefined : (to ?? null);
  }
  const patch: { [name: string]: Json } = {};
  for (const name of new Set([...members(from), ...members(to)])) {
    const change = mergePatch(member(from, name), member(to, name));
    if (change !== undefined) {
      put(patch, name, change);
    }
  }
  return members(patch).length > 0 ? patch : undefined;
}
