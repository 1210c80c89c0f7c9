// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// The handlers. A hook without one stays unimplemented.

import { create } from "@bufbuild/protobuf";
import { covers, done, encode, Extension, fail, load, Patches, wait } from "@hookgate/sdk";
import {
  DiscoverVariablesResponseSchema,
  InPlaceUpdateHooksService,
  LifecycleHooksService,
  TopologyMutationHooksService,
} from "@hookgate/sdk/hooks/v1alpha1";

const annotation = "example.hookgate.dev/approved-minor";
const variable = "imageRepository";

export const extension = new Extension();

// approve-upgrade holds an upgrade to another minor version until the Cluster's annotation names it.
extension.handle(LifecycleHooksService.method.beforeClusterUpgrade, "approve-upgrade", (request) => {
  const { metadata } = load(request, "cluster");
  const from = minor(request.fromKubernetesVersion);
  const to = minor(request.toKubernetesVersion);
  if (!from || !to) {
    const member = from ? "toKubernetesVersion" : "fromKubernetesVersion";
    return fail(`${member} "${request[member]}" is not a version like v1.36.1`);
  }
  if (from === to || metadata?.annotations?.[annotation] === to) {
    return done();
  }
  return wait(30, `upgrade to ${to} waits for the annotation ${annotation}: ${to}`);
});

// image-repository sets the image repository of control planes from a variable.
extension.handle(TopologyMutationHooksService.method.generatePatches, "image-repository", (request) => {
  const patches = new Patches(request);
  for (const item of patches.items({ kind: "KubeadmControlPlaneTemplate" })) {
    const repository = item.variable(variable, "string", "");
    if (repository) {
      item.set("/spec/template/spec/kubeadmConfigSpec/clusterConfiguration/imageRepository", repository);
    }
  }
  return patches;
});

// image-repository-variables provides the schema of the variable.
extension.handle(TopologyMutationHooksService.method.discoverVariables, "image-repository-variables", () => {
  const raw = encode({
    type: "string",
    description: "Registry and path that the images of Kubernetes are pulled from.",
    minLength: 1,
    example: "registry.example.com/kubernetes",
  });
  return create(DiscoverVariablesResponseSchema, { variables: [{ name: variable, required: false, schema: { openApiV3Schema: { raw } } }] });
});

// patch-in-place offers to change the patch version of a Machine without replacing it.
extension.handle(InPlaceUpdateHooksService.method.canUpdateMachine, "patch-in-place", (request) => {
  const current = minor(load(request, "current.machine").spec?.version);
  const desired = minor(load(request, "desired.machine").spec?.version);
  return desired && desired === current ? covers(request, { machine: ["/spec/version"] }) : done();
});

// minor returns the minor version, v1.36 of v1.36.1.
function minor(version: unknown): string | undefined {
  return /^(v[0-9]+\.[0-9]+)\.[0-9]+([-+][0-9A-Za-z.+-]+)?$/.exec(String(version))?.[1];
}
