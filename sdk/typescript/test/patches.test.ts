// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

import assert from "node:assert/strict";
import test from "node:test";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { encode, Extension, fail, items, load, Patches, type Item, type KubernetesObject } from "@hookgate/sdk";
import { GeneratePatchesRequestSchema, GeneratePatchesResponseSchema, TopologyMutationHooksService, type GeneratePatchesRequest } from "@hookgate/sdk/hooks/v1alpha1";
import { call, json } from "@hookgate/sdk/testing";
import { read } from "./shared.js";

const { generatePatches } = TopologyMutationHooksService.method;

function requestOf(...items: (string | object)[]): GeneratePatchesRequest {
  return create(GeneratePatchesRequestSchema, {
    items: items.map((item, i) => ({ uid: String(i), object: { raw: typeof item === "string" ? Buffer.from(item) : encode(item) } })),
  });
}

/** edited returns the text of the patch that an edit of an object leads to, or undefined without one. */
function edited(object: string | object, edit: (item: Item) => void): string | undefined {
  const patches = new Patches(requestOf(object));
  patches.items().forEach(edit);
  const [change] = patches.changes();
  return change && Buffer.from(change.patch).toString();
}

test("the vectors that all languages share", async () => {
  // Their numbers above 2^53 are read as the package reads them.
  const request = create(GeneratePatchesRequestSchema, { items: [{ object: { raw: Buffer.from(`{"vectors":${read("sdk/testdata/patches.json")}}`) } }] });
  const { vectors } = load(request, "items[0].object");
  assert.ok(vectors.length > 40);
  for (const { name, object, edit, edited: whole, want } of vectors) {
    const got = edited(object, (item) => {
      if (whole) {
        item.object = whole;
      }
      for (const step of edit ?? []) {
        "set" in step ? item.set(step.set, step.value) : item.remove(step.remove);
      }
    });
    assert.equal(got, want.length > 0 ? Buffer.from(encode(want)).toString() : undefined, name);
  }
});

test("the object can be edited as any other", () => {
  const patch = edited({ spec: { a: 1, list: ["x"] } }, ({ object }) => {
    object["spec"].a = undefined;
    object["spec"].list.push("y");
    object.metadata = { labels: { team: "red" } };
  });
  assert.equal(patch, '[{"op":"remove","path":"/spec/a"},{"op":"add","path":"/spec/list/-","value":"y"},{"op":"add","path":"/metadata","value":{"labels":{"team":"red"}}}]');
});

test("members with the names of JavaScript's own", () => {
  const add = (path: string) => (item: Item) => item.set(path, { polluted: true });
  assert.equal(edited("{}", add("/__proto__")), '[{"op":"add","path":"/__proto__","value":{"polluted":true}}]');
  assert.equal(edited("{}", add("/constructor/prototype")), '[{"op":"add","path":"/constructor","value":{"prototype":{"polluted":true}}}]');
  assert.equal(edited('{"__proto__":{"a":1},"n":9007199254740993}', (item) => item.set("/__proto__/a", 2)), '[{"op":"add","path":"/__proto__/a","value":2}]');
  assert.equal(({} as any).polluted, undefined);
});

test("a template of 20 MiB with a large integer is decoded in time", () => {
  const padding = `{"path":"/etc/x","content":"a \\"quoted\\" line\\n","mode":420},`.repeat(340_000);
  const object = `{"n":9007199254740993,"files":[${padding}{}]}`;
  assert.ok(object.length > 18 << 20);
  const begun = process.cpuUsage();
  assert.equal(edited(object, (item) => item.set("/a", 1)), '[{"op":"add","path":"/a","value":1}]');
  const { user } = process.cpuUsage(begun);
  assert.ok(user < 8_000_000, `${user} µs`);
});

test("what is not JSON is refused", () => {
  for (const value of [NaN, Infinity, new Date(), () => 0, [undefined], Symbol("s")]) {
    assert.throws(() => edited("{}", (item) => item.set("/a", value as any)), TypeError, String(value));
  }
  const failure = { name: "Failure", message: "items[0].object: a patch cannot replace the object by something else" };
  assert.throws(() => edited("{}", (item) => item.set("", [])), failure);
  assert.throws(() => edited("{}", (item) => (item.object = null as unknown as KubernetesObject)), failure);
  assert.throws(() => edited("{}", (item) => item.remove("")), { message: "items[0].object: a patch cannot remove the object itself" });
});

test("a pointer that leads nowhere is refused", () => {
  const pointers: [string, string][] = [
    ["spec", '"spec" is not a JSON pointer such as "/spec/replicas"'],
    ["/a~2b", '"/a~2b" is not a JSON pointer such as "/spec/replicas"'],
    ["/text/b", '"/text/b": there is a string above "b", where an object must be'],
    ["/list/3", '"/list/3": "3" is not an index of the array of 1 there'],
    ["/list/x/y", '"/list/x/y": "x" is not an index of the array of 1 there'],
    ["/list/01", '"/list/01": "01" is not an index of the array of 1 there'],
  ];
  for (const [pointer, message] of pointers) {
    assert.throws(() => edited({ text: "x", list: [1] }, (item) => item.set(pointer, 1)), { message });
  }
});

test("items are selected, and decoded only when they are looked into", () => {
  const template = (kind: string, apiVersion: string) => `{"kind":"${kind}","apiVersion":"${apiVersion}"}`;
  const request = requestOf(template("A", "x.example/v1"), template("B", "y.example/v1"), template("A", "v1"), "{");
  request.items[0]!.holderReference = { kind: "Cluster" } as any;
  request.items[3]!.holderReference = { kind: "Other" } as any;
  const patches = new Patches(request);
  assert.deepEqual(patches.items({ holder: "Cluster", kind: "A" }).map((item) => item.uid), ["0"]);
  assert.equal(patches.items().length, 4);
  assert.deepEqual(patches.changes(), []);
  request.items.pop();
  const whole = new Patches(request);
  assert.deepEqual(whole.items({ kind: "A" }).map((item) => item.uid), ["0", "2"]);
  assert.deepEqual(whole.items({ group: "y.example" }).map((item) => item.uid), ["1"]);
  assert.deepEqual(whole.items({ group: "" }).map((item) => item.uid), ["2"]);
  assert.throws(() => patches.items({ kind: "A" }), { name: "InvalidRequest", message: "items[3].object: not valid JSON" });
});

test("variables, by precedence, path and type", () => {
  const variables = (values: object): MessageInitShape<typeof GeneratePatchesRequestSchema>["variables"] & object =>
    Object.entries(values).map(([name, value]) => ({ name, value: { raw: typeof value === "string" ? Buffer.from(value) : encode(value) } }));
  const request = create(GeneratePatchesRequestSchema, {
    variables: variables({
      image: { a: "request" }, only: [1, { b: "x" }], on: true, large: "9007199254740993", bad: "{",
      builtin: { cluster: { name: "c", namespace: "n" }, controlPlane: { version: "v1" } },
    }),
    items: [{ variables: variables({ image: { a: "item" }, builtin: { cluster: { name: "own" }, machineDeployment: { version: "v2" } } }) }, {}],
  });
  const [item, plain] = new Patches(request).items() as [Item, Item];
  const image: string = item.variable("image.a", "string");
  assert.deepEqual([image, plain.variable("image.a", "string")], ["item", "request"]);
  assert.equal(item.variable("only[1].b", "string"), "x");
  assert.equal(item.variable("only[0]", "integer"), 1);
  assert.equal(item.variable("on", "boolean"), true);
  assert.equal(item.variable("large", "any"), 9007199254740993n);
  assert.deepEqual(item.variable("builtin", "object"), {
    cluster: { name: "own", namespace: "n" }, machineDeployment: { version: "v2" }, controlPlane: { version: "v1" },
  });
  assert.equal(item.variable("builtin.controlPlane.version", "string"), "v1");
  const absent: string | undefined = item.variable("absent", "string", undefined);
  assert.deepEqual([absent, item.variable("image.b", "string", ""), item.variable("only[2]", "integer", 7)], [undefined, "", 7]);
  const failures: [() => unknown, string][] = [
    [() => item.variable("absent", "string"), 'variable "absent" is not set'],
    [() => item.variable("image.toString", "string"), 'variable "image.toString" is not set'],
    [() => item.variable("image", "string", ""), 'variable "image" is not a string'],
    [() => item.variable("on", "integer"), 'variable "on" is not an integer'],
    [() => item.variable("large", "integer"), 'variable "large" is not an integer'],
    [() => item.variable("only", "object"), 'variable "only" is not an object'],
    [() => item.variable("image", "array"), 'variable "image" is not an array'],
  ];
  for (const [look, message] of failures) {
    assert.throws(look, { name: "Failure", message });
  }
  assert.throws(() => item.variable("only[x]", "any"), { name: "TypeError", message: '"only[x]" is not a path of variables such as "proxy.noProxy[0]"' });
  assert.throws(() => item.variable("bad", "any"), { name: "InvalidRequest", message: 'variable "bad": not valid JSON' });
});

test("the items of ValidateTopology", async () => {
  const { validateTopology } = TopologyMutationHooksService.method;
  const extension = new Extension().handle(validateTopology, "v", (request) =>
    fail(items(request, { kind: "A" }).map((item) => `${item.object["spec"].n} ${item.variable("v", "string")}`).join()),
  );
  const item = (kind: string, n: number) => ({ object: { kind, spec: { n } }, variables: [{ name: "v", value: `of ${n}` }] });
  assert.equal((await call(extension, validateTopology, { items: [item("A", 1), item("B", 2), item("A", 3)] })).message, "1 of 1,3 of 3");
});

test("patches as an answer", async () => {
  const extension = new Extension().handle(generatePatches, "image", (request) => {
    const patches = new Patches(request);
    for (const item of patches.items({ kind: "A" })) {
      item.set("/spec/image", item.variable("image", "string"));
    }
    return patches;
  });
  const item = (uid: string, kind: string) => ({ uid, object: { kind } });
  const request = { variables: [{ name: "image", value: "x" }], items: [item("1", "A"), item("2", "B")] };
  assert.deepEqual(json(GeneratePatchesResponseSchema, await call(extension, generatePatches, request)), {
    status: "Success",
    items: [{ uid: "1", patchType: "JSONPatch", patch: [{ op: "add", path: "/spec", value: { image: "x" } }] }],
  });
  // @ts-expect-error: the response of this hook has no items.
  new Extension().handle(TopologyMutationHooksService.method.validateTopology, "v", () => new Patches(requestOf()));
});

test("objects of a request", () => {
  const at = (raw: string) => load(requestOf(raw), "items[0].object");
  assert.deepEqual(at(String.raw`{"a":9007199254740993,"b":[-9223372036854775808 , 9007199254740991],"c":1e2,"d":0.1234567890123456789,"a":1}`), {
    a: 1, b: [-9223372036854775808n, 9007199254740991], c: 100, d: 0.12345678901234568,
  });
  assert.deepEqual(at(String.raw`{"a":12345678901234567e0000000000000000001,"b":-12345678901234567.5,"c":1e-0000000000000000001,"d":12345678901234567890}`), {
    a: 12345678901234567e1, b: -12345678901234568, c: 0.1, d: 12345678901234567890n,
  });
  assert.deepEqual(at(String.raw`{"12345678901234567":"\\\",12345678901234567,\"","x\\":12345678901234567,"__proto__":{"n":12345678901234567}}`), JSON.parse(
    String.raw`{"12345678901234567":"\\\",12345678901234567,\"","x\\":1,"__proto__":{"n":2}}`, (_, value) => (value === 1 || value === 2 ? 12345678901234567n : value)));
  const errors: [string, string][] = [["", "there is no object"], ["{", "not valid JSON"], ["[]", "not a JSON object"], ["null", "not a JSON object"],
    ['{"a":NaN}', "not valid JSON"], ["{12345678901234567:1}", "not valid JSON"], ['{"a":012345678901234567}', "not valid JSON"],
    [`{"n":12345678901234567,"a":${"[".repeat(50_000)}${"]".repeat(50_000)}}`, "too deeply nested"], ['{"a":12345678901234567890', "not valid JSON"], ["\ufeff{}", "not valid JSON"]];
  for (const [raw, text] of errors) {
    assert.throws(() => at(raw), { name: "InvalidRequest", message: `items[0].object: ${text}` }, raw);
  }
  const broken = requestOf();
  assert.throws(() => load(broken, "items[0].object"), { message: "items[0].object: there is no object" });
  broken.items = requestOf("x").items;
  broken.items[0]!.object!.raw = Buffer.from([0xff]);
  assert.throws(() => load(broken, "items[0].object"), { message: "items[0].object: not UTF-8" });
  // @ts-expect-error: the request has no such object.
  assert.throws(() => load(broken, "cluster"), { message: "cluster: there is no object" });
});
