// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

import assert from "node:assert/strict";
import test from "node:test";
import { create } from "@bufbuild/protobuf";
import { done, Extension, type HandlerOptions } from "@hookgate/sdk";
import { DiscoveryService, LifecycleHooksService, TopologyMutationHooksService } from "@hookgate/sdk/hooks/v1alpha1";
import * as infrastructure from "@hookgate/sdk/infrastructure/v1alpha1";

const create1 = LifecycleHooksService.method.beforeClusterCreate;

function register(name: string, options?: HandlerOptions): Extension {
  return new Extension().handle(create1, name, () => done(), options);
}

test("a registration that cannot be is refused at once", () => {
  for (const name of ["", "A", "a_b", "a.b", "-a", "a-", "a".repeat(64)]) {
    assert.throws(() => register(name), { message: `handler "${name}": not a DNS-1123 label, such as "approve-upgrade"` });
  }
  register("a".repeat(63));
  for (const timeoutSeconds of [-1, 31, 1.5, NaN]) {
    assert.throws(() => register("a", { timeoutSeconds }), { message: `handler "a": timeoutSeconds is ${timeoutSeconds}, want an integer from 0 to 30` });
  }
  assert.throws(() => register("a", { failurePolicy: "fail" as "Fail" }), { message: 'handler "a": failurePolicy is "fail", want "Fail" or "Ignore"' });
  assert.throws(() => register("a", { clusterApiVersion: "v1" as "v1beta1" }), { message: 'handler "a": clusterApiVersion is "v1", want "v1beta2", "v1beta1" or null' });
  assert.throws(() => register("a").handle(LifecycleHooksService.method.beforeClusterDelete, "a", () => done()), {
    message: 'handler "a": there is another one with this name',
  });
  assert.throws(() => new Extension().handle(DiscoveryService.method.discovery, "a", () => done()), /Discovery is a discovery, which is made from the handlers/);
});

test("discovery lists the handlers in the order of their registration", async () => {
  const extension = new Extension({ clusterApiVersion: "v1beta1" })
    .handle(TopologyMutationHooksService.method.discoverVariables, "z", () => done(), { timeoutSeconds: 0, failurePolicy: "Ignore", clusterApiVersion: null })
    .handle(create1, "a", () => done());
  const described = (extension.discover(DiscoveryService.method.discovery) as any).handlers.map((h: any) => [
    h.name, h.requestHook.apiVersion, h.requestHook.hook, h.timeoutSeconds, h.failurePolicy, h.clusterApiVersion,
  ]);
  const apiVersion = "hooks.runtime.cluster.x-k8s.io/v1alpha1";
  assert.deepEqual(described, [
    ["z", apiVersion, "DiscoverVariables", 0, 1, ""],
    ["a", apiVersion, "BeforeClusterCreate", 10, 2, "v1beta1"],
  ]);
});

test("what discovery says without options", () => {
  const [handler] = (register("a").discover(DiscoveryService.method.discovery) as any).handlers;
  assert.deepEqual([handler.timeoutSeconds, handler.failurePolicy, handler.clusterApiVersion], [10, 2, "v1beta2"]);
});

test("the hooks of infrastructure have a discovery of their own", async () => {
  const extension = register("a").handle(infrastructure.ClusterHooksService.method.reconcileCluster, "cluster", () => done());
  await assert.rejects(extension.listen({ address: "127.0.0.1:0" }), {
    message: 'handler "cluster": no discovery lists it: call extension.discovery with that of infrastructure.hookgate.dev',
  });
  const discover = infrastructure.DiscoveryService.method.discoverInfrastructure;
  extension.discovery(discover, () => create(infrastructure.DiscoverInfrastructureResponseSchema, { providerIdPrefix: "acme://" }));
  const response: any = extension.discover(discover);
  assert.deepEqual([response.status, response.providerIdPrefix], [1, "acme://"]);
  assert.deepEqual(response.handlers.map((h: any) => [h.name, h.requestHook.apiVersion]), [["cluster", "infrastructure.hookgate.dev/v1alpha1"]]);
  assert.deepEqual((extension.discover(DiscoveryService.method.discovery) as any).handlers.map((h: any) => h.name), ["a"]);
});

test("a package whose group is not known", async () => {
  // Stubs of another package: these, under another name.
  const file = Object.create(create1.parent.file, { proto: { value: { package: "acme.dns.v1" } } });
  const method: typeof create1 = Object.create(create1, { parent: { value: Object.create(create1.parent, { file: { value: file } }) } });
  assert.throws(() => new Extension().handle(method, "a", () => done()), {
    message: 'BeforeClusterCreate: the group of the proto package acme.dns.v1 is not known: new Extension({groups: {"acme.dns.v1": "dns.acme.example"}}) states it',
  });
  for (const pkg of ["acme.dns.v1", "acme.dns"]) {
    new Extension({ groups: { [pkg]: "dns.acme.example" } }).handle(method, "a", () => done());
  }
});
