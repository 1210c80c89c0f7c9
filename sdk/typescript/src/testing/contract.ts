// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// The contract's JSON, which is not protobuf's: objects are inlined, enums are Cluster API's strings, and members that the
// schema does not know are kept in unknownMembers.

import { create, ScalarType, type DescEnum, type DescField, type DescMessage, type Message } from "@bufbuild/protobuf";
import { FeatureSet_FieldPresence } from "@bufbuild/protobuf/wkt";

import { decode, encode, isObject, members, put, type Json } from "../json.js";

type JsonObject = { [name: string]: Json };

/** fromJson makes a message of the contract's JSON. It throws a TypeError that names the member that is wrong. */
export function fromJson(type: DescMessage, value: Json, place: string): Message {
  if (isRaw(type)) {
    return create(type, { raw: encode(value) });
  }
  if (!isObject(value)) {
    throw new TypeError(`${place || type.name}: want an object`);
  }
  const fields = new Map(type.fields.filter((field) => field.name !== "unknown_members").map((field) => [field.jsonName, field]));
  const init: { [name: string]: unknown } = {};
  const unknown: { [name: string]: unknown } = {};
  for (const name of members(value)) {
    const field = fields.get(name);
    if (!field) {
      unknown[name] = { raw: encode(value[name]) };
    } else if (value[name] !== null) {
      init[field.localName] = fieldFromJson(field, value[name]!, place ? `${place}.${name}` : name);
    }
  }
  return create(type, { ...init, unknownMembers: unknown });
}

function fieldFromJson(field: DescField, value: Json, place: string): unknown {
  switch (field.fieldKind) {
    case "message":
      return fromJson(field.message, value, place);
    case "list":
      if (!Array.isArray(value)) {
        throw new TypeError(`${place}: want an array`);
      }
      return value.map((element, i) =>
        field.listKind === "message" ? fromJson(field.message, element, `${place}[${i}]`) : scalarFromJson(field.scalar!, element, `${place}[${i}]`),
      );
    case "map":
      if (!isObject(value)) {
        throw new TypeError(`${place}: want an object`);
      }
      return Object.fromEntries(members(value).map((name) => [name, scalarFromJson(ScalarType.STRING, value[name]!, `${place}.${name}`)]));
    case "enum": {
      const texts = enumTexts(field.enum);
      const number = texts.get(String(value));
      if (number === undefined) {
        throw new TypeError(`${place}: want one of ${[...texts.keys()].filter(Boolean).join(", ")}`);
      }
      return number;
    }
    case "scalar":
      return scalarFromJson(field.scalar, value, place);
  }
}

function scalarFromJson(type: ScalarType, value: Json, place: string): unknown {
  switch (type) {
    case ScalarType.STRING:
      if (typeof value === "string") {
        return value;
      }
      throw new TypeError(`${place}: want a string`);
    case ScalarType.BYTES:
      if (typeof value === "string") {
        return Buffer.from(value, "base64");
      }
      throw new TypeError(`${place}: want a string of base64`);
    case ScalarType.BOOL:
      if (typeof value === "boolean") {
        return value;
      }
      throw new TypeError(`${place}: want true or false`);
    default:
      if (Number.isInteger(Number(value)) && typeof value !== "string") {
        return Number(value);
      }
      throw new TypeError(`${place}: want an integer`);
  }
}

/** toJson returns the contract's JSON of a message, with patches as the JSON that they hold in place of base64. */
export function toJson(type: DescMessage, message: Message): Json {
  const values = message as unknown as { [name: string]: any };
  if (isRaw(type)) {
    return decode(values["raw"], type.name);
  }
  const object: JsonObject = {};
  for (const field of type.fields) {
    const value = values[field.localName];
    if (field.name === "unknown_members") {
      for (const [name, { raw }] of Object.entries(value as { [name: string]: { raw: Uint8Array } })) {
        put(object, name, decode(raw, name));
      }
    } else if (!isAbsent(field, value)) {
      put(object, field.jsonName, fieldToJson(field, value));
    }
  }
  return object;
}

function isAbsent(field: DescField, value: any): boolean {
  switch (field.fieldKind) {
    case "list":
      return value.length === 0;
    case "map":
      return Object.keys(value).length === 0;
    default:
      return value === undefined || (field.presence === FeatureSet_FieldPresence.IMPLICIT && (!value || value.length === 0));
  }
}

function fieldToJson(field: DescField, value: any): Json {
  switch (field.fieldKind) {
    case "message":
      return toJson(field.message, value);
    case "list":
      return value.map((element: any) => (field.listKind === "message" ? toJson(field.message, element) : element));
    case "enum":
      return [...enumTexts(field.enum)].find(([, number]) => number === value)?.[0] ?? value;
    case "scalar":
      if (field.scalar === ScalarType.BYTES) {
        return field.name === "patch" ? decode(value, field.jsonName) : Buffer.from(value).toString("base64");
      }
      return value;
    case "map":
      return value;
  }
}

/** enumTexts returns the numbers of an enum's values by their texts: FAILURE_POLICY_IGNORE is "Ignore". */
function enumTexts(type: DescEnum): Map<string, number> {
  const prefix = (type.sharedPrefix ?? "").toUpperCase();
  return new Map(
    type.values.map(({ name, number }) => {
      const words = name.slice(prefix.length).split("_");
      const text = words.map((word) => (word === "JSON" ? word : word[0] + word.slice(1).toLowerCase())).join("");
      return [number === 0 ? "" : text, number];
    }),
  );
}

function isRaw(type: DescMessage): boolean {
  return (type.name === "RawExtension" || type.name === "JSON") && type.fields.length === 1;
}
