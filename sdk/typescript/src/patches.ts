// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Patches of templates, made from the difference between what was sent and what a handler made of it.

import { Failure } from "./answers.js";
import { difference } from "./difference.js";
import { decodeObject, encode, isObject, type Json, type KubernetesObject } from "./json.js";
import { parsePointer, removeAt, setAt } from "./pointer.js";
import { lookup, type Scope, type Types, type Variable } from "./values.js";

interface HolderReference {
  apiVersion: string;
  kind: string;
  namespace: string;
  name: string;
  fieldPath: string;
}

interface RequestItem {
  uid?: string;
  holderReference?: HolderReference | undefined;
  object?: { raw: Uint8Array } | undefined;
  variables: Variable[];
}

/** ItemsRequest is a request of GeneratePatches or ValidateTopology, of any version. */
export interface ItemsRequest {
  variables: Variable[];
  items: RequestItem[];
}

/** ItemFilter selects items. What is left out selects all. */
export interface ItemFilter {
  /** kind of the template, such as "KubeadmControlPlaneTemplate". */
  kind?: string | undefined;
  /** group of the template's API, such as "controlplane.cluster.x-k8s.io". */
  group?: string | undefined;
  /** holder is the kind of the object that refers to the template, such as "MachineDeployment". */
  holder?: string | undefined;
}

/**
 * items returns the templates in a request of GeneratePatches or ValidateTopology that a filter selects, in order. One that
 * is not looked into is never decoded.
 */
export function items(request: ItemsRequest, filter: ItemFilter = {}): Item[] {
  return request.items.map((item, i) => new Item(item, `items[${i}].object`, [item, request])).filter(matches(filter));
}

function matches({ kind, group, holder }: ItemFilter): (item: Item) => boolean {
  return (item) =>
    (holder === undefined || item.holder?.kind === holder) &&
    (kind === undefined || item.kind === kind) &&
    (group === undefined || item.group === group);
}

/**
 * Patches collects changes of the items of a request of GeneratePatches. Return it from a handler to answer with a JSON
 * Patch for each item that differs from what was sent.
 */
export class Patches {
  readonly #items: Item[];

  constructor(request: ItemsRequest) {
    this.#items = items(request);
  }

  /** items returns the items that a filter selects, in order. An item that is not looked into is never decoded. */
  items(filter: ItemFilter = {}): Item[] {
    return this.#items.filter(matches(filter));
  }

  /** changes returns the UIDs of the items that differ, each with its JSON Patch. */
  changes(): { uid: string; patch: Uint8Array }[] {
    return this.#items.flatMap((item) => {
      const operations = item.operations();
      return operations.length === 0 ? [] : [{ uid: item.uid, patch: encode(operations) }];
    });
  }
}

/** Item is one template of a request. */
export class Item {
  /** uid is the item's in GeneratePatches, and "" in ValidateTopology. */
  readonly uid: string;
  /** holder refers to the object that the template is for. */
  readonly holder: HolderReference | undefined;
  readonly #raw: Uint8Array | undefined;
  readonly #place: string;
  readonly #scope: Scope;
  #object: Json | undefined;
  #edited = false;

  /** @internal */
  constructor(item: RequestItem, place: string, scope: Scope) {
    this.uid = item.uid ?? "";
    this.holder = item.holderReference;
    this.#raw = item.object?.raw;
    this.#place = place;
    this.#scope = scope;
  }

  /** object is a copy of the template, for the handler to edit. */
  get object(): KubernetesObject {
    this.#edited = true;
    return this.#decoded() as KubernetesObject;
  }

  set object(value: KubernetesObject) {
    this.#edited = true;
    this.#object = value as Json;
  }

  /** kind is the kind of the template. */
  get kind(): string {
    return String(this.#decoded()["kind"] ?? "");
  }

  /** group is the group of the template's API. */
  get group(): string {
    const [group, version] = String(this.#decoded()["apiVersion"] ?? "").split("/");
    return version === undefined ? "" : group!;
  }

  /**
   * set sets the value at a JSON pointer (RFC 6901), such as "/metadata/labels/example.com~1team", and makes parents that
   * are missing or null. The index of the end, or "-", appends to an array.
   */
  set(pointer: string, value: Json): void {
    if (parsePointer(pointer).length === 0) {
      this.object = value as KubernetesObject;
    } else {
      setAt(this.object as Json, pointer, value);
    }
  }

  /** remove removes what is at a JSON pointer, if anything. */
  remove(pointer: string): void {
    if (parsePointer(pointer).length === 0) {
      throw new Failure(`${this.#place}: a patch cannot remove the object itself`);
    }
    removeAt(this.object as Json, pointer);
  }

  /**
   * variable returns what is at a path of the item's variables, or else of the request's: "imageRepository",
   * "proxy.noProxy[0]", "builtin.controlPlane.version". What is not of the type, or is not set and has no fallback, is a
   * Failure.
   */
  variable<T extends keyof Types>(path: string, type: T): Types[T];
  variable<T extends keyof Types, F>(path: string, type: T, fallback: F): Types[T] | F;
  variable(path: string, type: keyof Types, ...fallback: unknown[]): unknown {
    return lookup(this.#scope, path, type, fallback);
  }

  /** @internal */
  operations() {
    if (!this.#edited) {
      return [];
    }
    if (!isObject(this.#object)) {
      throw new Failure(`${this.#place}: a patch cannot replace the object by something else`);
    }
    return difference(decodeObject(this.#raw, this.#place), this.#object);
  }

  #decoded(): { [name: string]: Json } {
    this.#object ??= decodeObject(this.#raw, this.#place);
    return this.#object as { [name: string]: Json };
  }
}
