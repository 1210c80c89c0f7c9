// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// RFC 6901 pointers into JSON values that are being edited.

import { isObject, member, put, type Json } from "./json.js";

/** parsePointer returns the names on the way of an RFC 6901 pointer, such as "/metadata/labels/example.com~1team". */
export function parsePointer(pointer: string): string[] {
  if (pointer === "") {
    return [];
  }
  if (!pointer.startsWith("/") || /~(?![01])/.test(pointer)) {
    throw new TypeError(`"${pointer}" is not a JSON pointer such as "/spec/replicas"`);
  }
  return pointer.slice(1).split("/").map((name) => name.replaceAll("~1", "/").replaceAll("~0", "~"));
}

/** formatName returns a member's name or an element's index as a step of a pointer. */
export function formatName(name: string | number): string {
  return "/" + String(name).replaceAll("~", "~0").replaceAll("/", "~1");
}

/** setAt sets the value at a pointer below root, which is not the empty one, and makes parents that are missing or null. */
export function setAt(root: Json, pointer: string, value: Json): void {
  const names = parsePointer(pointer);
  const last = names.pop()!;
  let parent = root;
  for (const name of names) {
    let child = Array.isArray(parent) ? parent[index(parent, name, pointer)] : member(parent, name);
    if (child === undefined || child === null) {
      child = {};
      assign(parent, name, child, pointer);
    }
    parent = child;
  }
  assign(parent, last, value, pointer);
}

/** removeAt removes what is at a pointer below root, which is not the empty one, and reports whether it was there. */
export function removeAt(root: Json, pointer: string): void {
  const names = parsePointer(pointer);
  const last = names.pop()!;
  const parent = names.reduce<Json | undefined>(
    (value, name) => (Array.isArray(value) ? (isIndex(name) ? value[Number(name)] : undefined) : member(value, name)),
    root,
  );
  if (Array.isArray(parent)) {
    if (isIndex(last)) {
      parent.splice(Number(last), 1);
    }
  } else if (parent !== undefined && isObject(parent)) {
    delete parent[last];
  }
}

function assign(parent: Json, name: string, value: Json, pointer: string): void {
  if (Array.isArray(parent)) {
    parent[index(parent, name, pointer)] = value;
  } else if (isObject(parent)) {
    put(parent, name, value);
  } else {
    throw new TypeError(`"${pointer}": there is a ${typeof parent} above "${name}", where an object must be`);
  }
}

/** index returns the index that a step has in an array. The one after the last element appends. */
function index(array: Json[], name: string, pointer: string): number {
  const at = name === "-" ? array.length : isIndex(name) ? Number(name) : NaN;
  if (!(at <= array.length)) {
    throw new TypeError(`"${pointer}": "${name}" is not an index of the array of ${array.length} there`);
  }
  return at;
}

function isIndex(name: string): boolean {
  return /^(0|[1-9]\d{0,15})$/.test(name);
}
