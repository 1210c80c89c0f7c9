// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Which part of an update can be made in place.

import { create } from "@bufbuild/protobuf";

import { mergePatch } from "./difference.js";
import type {
  CanUpdateMachineRequest,
  CanUpdateMachineRequestObjects,
  CanUpdateMachineResponse,
  CanUpdateMachineSetRequest,
  CanUpdateMachineSetRequestObjects,
  CanUpdateMachineSetResponse,
} from "./gen/hookgate/hooks/v1alpha1/in_place_update_pb.js";
import { methodOf } from "./hook.js";
import { decodeObject, encode, isObject, member, put, type Json } from "./json.js";
import { parsePointer } from "./pointer.js";

const success = 1;
const jsonMergePatch = 2;

/** Covered has JSON pointers for the objects of a request: the places that can change in place. */
export type Covered<Objects> = { [Name in Exclude<keyof Objects, "$typeName" | "$unknown" | "unknownMembers">]?: string[] | undefined };

/**
 * covers answers CanUpdateMachine or CanUpdateMachineSet: for each object, a patch of exactly those covered places where
 * the desired object differs from the current one. A pointer that leads into an array is an error, because a merge patch
 * has only whole arrays.
 */
export function covers(request: CanUpdateMachineRequest, covered: Covered<CanUpdateMachineRequestObjects>): CanUpdateMachineResponse;
export function covers(request: CanUpdateMachineSetRequest, covered: Covered<CanUpdateMachineSetRequestObjects>): CanUpdateMachineSetResponse;
export function covers(
  request: CanUpdateMachineRequest | CanUpdateMachineSetRequest,
  covered: { [name: string]: string[] | undefined },
): CanUpdateMachineResponse | CanUpdateMachineSetResponse {
  const response: { [name: string]: unknown } = { status: success };
  const [current, desired] = [request.current, request.desired] as ({ [name: string]: { raw: Uint8Array } | undefined } | undefined)[];
  for (const [name, pointers] of Object.entries(covered)) {
    if (!pointers?.length || (!current?.[name] && !desired?.[name])) {
      continue;
    }
    const from = decodeObject(current?.[name]?.raw, `current.${name}`);
    const to = decodeObject(desired?.[name]?.raw, `desired.${name}`);
    const patch: { [name: string]: Json } = {};
    for (const pointer of pointers) {
      const steps = parsePointer(pointer);
      if (steps.length === 0) {
        throw new TypeError(`covers: name the members of ${name} that can change, such as "/spec/version", not all of it`);
      }
      const change = mergePatch(at(from, steps, name, pointer), at(to, steps, name, pointer));
      if (change !== undefined) {
        enter(patch, steps, change);
      }
    }
    if (Object.keys(patch).length > 0) {
      response[`${name}Patch`] = { patchType: jsonMergePatch, patch: encode(patch) };
    }
  }
  return create(methodOf(request).output, response) as CanUpdateMachineResponse;
}

function at(object: Json, steps: string[], name: string, pointer: string): Json | undefined {
  let value: Json | undefined = object;
  for (const step of steps) {
    if (Array.isArray(value)) {
      throw new TypeError(`covers: "${pointer}" of ${name} leads into an array: cover the whole array`);
    }
    value = member(value, step);
  }
  return value;
}

/**
 * enter adds a change at a place of a merge patch. If there is one for a place above, it has this one; one for places
 * below is part of this one.
 */
function enter(patch: { [name: string]: Json }, steps: string[], change: Json): void {
  let parent = patch;
  for (const step of steps.slice(0, -1)) {
    let child = member(parent, step);
    if (child === undefined) {
      put(parent, step, (child = {}));
    }
    if (!isObject(child)) {
      return;
    }
    parent = child;
  }
  put(parent, steps.at(-1)!, change);
}
