// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// The hooks. A service of the contract is an object; a hook that it does not implement stays unimplemented.

import { status, type handleUnaryCall } from "@grpc/grpc-js";

import { FailurePolicy, PatchType, ResponseStatus } from "./gen/hookgate/hooks/v1alpha1/common.js";
import { DiscoveryResponse, type DiscoveryServiceServer } from "./gen/hookgate/hooks/v1alpha1/discovery.js";
import { CanUpdateMachineResponse, type InPlaceUpdateHooksServiceServer } from "./gen/hookgate/hooks/v1alpha1/in_place_update.js";
import { BeforeClusterUpgradeResponse, type LifecycleHooksServiceServer } from "./gen/hookgate/hooks/v1alpha1/lifecycle_hooks.js";
import {
  DiscoverVariablesResponse,
  GeneratePatchesResponse,
  type TopologyMutationHooksServiceServer,
} from "./gen/hookgate/hooks/v1alpha1/topology_mutation.js";

const success = ResponseStatus.RESPONSE_STATUS_SUCCESS;
const failure = ResponseStatus.RESPONSE_STATUS_FAILURE;
const annotation = "example.hookgate.dev/approved-minor";
const variable = "imageRepository";

// discovery lists the handlers. A hook may have several; the request's handler field then selects one.
export const discovery = {
  discovery: unary(() => {
    const handlers = {
      "approve-upgrade": "BeforeClusterUpgrade",
      "image-repository": "GeneratePatches",
      "image-repository-variables": "DiscoverVariables",
      "patch-in-place": "CanUpdateMachine",
    };
    return DiscoveryResponse.fromPartial({
      status: success,
      handlers: Object.entries(handlers).map(([name, hook]) => ({
        name,
        requestHook: { apiVersion: "hooks.runtime.cluster.x-k8s.io/v1alpha1", hook },
        timeoutSeconds: 10,
        failurePolicy: FailurePolicy.FAILURE_POLICY_FAIL,
        clusterApiVersion: "v1beta2", // of the objects that are read here: the gateway converts others
      })),
    });
  }),
} satisfies Partial<DiscoveryServiceServer>;

// lifecycle holds an upgrade to another minor version until the Cluster's annotation names it.
export const lifecycle = {
  beforeClusterUpgrade: unary((request) => {
    const cluster = decode("cluster", request.cluster?.raw);
    const from = minor(request.fromKubernetesVersion);
    const to = minor(request.toKubernetesVersion);
    if (from === undefined) {
      return notAVersion("fromKubernetesVersion", request.fromKubernetesVersion);
    }
    if (to === undefined) {
      return notAVersion("toKubernetesVersion", request.toKubernetesVersion);
    }
    if (from === to || member(cluster, "metadata", "annotations", annotation) === to) {
      return BeforeClusterUpgradeResponse.fromPartial({ status: success });
    }
    // Blocking is not a failure: the caller asks again after this many seconds.
    return BeforeClusterUpgradeResponse.fromPartial({
      status: success,
      retryAfterSeconds: 30,
      message: `upgrade to ${to} waits for the annotation ${annotation}: ${to}`,
    });
  }),
} satisfies Partial<LifecycleHooksServiceServer>;

function notAVersion(name: string, value: string): BeforeClusterUpgradeResponse {
  return BeforeClusterUpgradeResponse.fromPartial({ status: failure, message: `${name} "${value}" is not a version like v1.36.1` });
}

// topology sets the image repository of control planes from a variable, and provides the variable's schema.
export const topology = {
  generatePatches: unary((request) => {
    const response = GeneratePatchesResponse.fromPartial({ status: success });
    for (const [i, item] of request.items.entries()) {
      const template = decode(`items[${i}].object`, item.object?.raw);
      if (template.kind !== "KubeadmControlPlaneTemplate") {
        continue;
      }
      // The variables of an item come last, because they win.
      const value = [...request.variables, ...item.variables].findLast((v) => v.name === variable);
      const repository = value ? parse(`variable ${variable}`, value.value?.raw) : "";
      if (typeof repository !== "string") {
        return GeneratePatchesResponse.fromPartial({ status: failure, message: `variable "${variable}" is not a string` });
      }
      if (repository !== "") {
        const path = ["spec", "template", "spec", "kubeadmConfigSpec", "clusterConfiguration", "imageRepository"];
        const patch = Buffer.from(JSON.stringify([add(template, path, repository)]));
        response.items.push({ uid: item.uid, patchType: PatchType.PATCH_TYPE_JSON_PATCH, patch, unknownMembers: new Map() });
      }
    }
    return response;
  }),

  discoverVariables: unary(() => {
    const schema = {
      type: "string",
      description: "Registry and path that the images of Kubernetes are pulled from.",
      minLength: 1,
      example: "registry.example.com/kubernetes",
    };
    return DiscoverVariablesResponse.fromPartial({
      status: success,
      variables: [{ name: variable, required: false, schema: { openApiV3Schema: { raw: Buffer.from(JSON.stringify(schema)) } } }],
    });
  }),
} satisfies Partial<TopologyMutationHooksServiceServer>;

// inPlace offers to change the patch version of a Machine without replacing it.
export const inPlace = {
  canUpdateMachine: unary((request) => {
    const current = member(decode("current.machine", request.current?.machine?.raw), "spec", "version");
    const desired = member(decode("desired.machine", request.desired?.machine?.raw), "spec", "version");
    if (current === desired || minor(current) === undefined || minor(current) !== minor(desired)) {
      return CanUpdateMachineResponse.fromPartial({ status: success });
    }
    const patch = Buffer.from(JSON.stringify({ spec: { version: desired } }));
    return CanUpdateMachineResponse.fromPartial({
      status: success,
      machinePatch: { patchType: PatchType.PATCH_TYPE_JSON_MERGE_PATCH, patch },
    });
  }),
} satisfies Partial<InPlaceUpdateHooksServiceServer>;

// BadRequest is a mistake of the caller, which in gRPC is a status code, not an answer.
class BadRequest extends Error {}

// unary turns a function that returns or throws into a handler of @grpc/grpc-js.
function unary<Request, Response>(answer: (request: Request) => Response): handleUnaryCall<Request, Response> {
  return (call, callback) => {
    let response: Response;
    try {
      response = answer(call.request);
    } catch (error) {
      callback({ code: error instanceof BadRequest ? status.INVALID_ARGUMENT : status.INTERNAL, details: String((error as Error).message) });
      return;
    }
    callback(null, response);
  };
}

type Json = null | boolean | number | string | Json[] | { [name: string]: Json };

// parse reads raw JSON. JSON.parse rounds integers above 2^53, so an object that was read here is never written back.
function parse(name: string, raw: Buffer | undefined): Json {
  try {
    return JSON.parse((raw ?? Buffer.alloc(0)).toString()) as Json;
  } catch (error) {
    throw new BadRequest(`${name}: ${(error as Error).message}`);
  }
}

// decode reads a raw Kubernetes object.
function decode(name: string, raw: Buffer | undefined): { [name: string]: Json } {
  const value = parse(name, raw);
  if (!isObject(value)) {
    throw new BadRequest(`${name}: not a JSON object`);
  }
  return value;
}

function isObject(value: Json | undefined): value is { [name: string]: Json } {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

// member returns the member at a path, or undefined if there is none.
function member(value: Json | undefined, ...path: string[]): Json | undefined {
  return path.reduce<Json | undefined>((v, name) => (isObject(v) && Object.hasOwn(v, name) ? v[name] : undefined), value);
}

// add returns the one operation that puts value at path. JSON Patch adds no parents, so it begins at the first one
// missing.
function add(template: Json, path: string[], value: Json): Json {
  let depth = 1;
  while (depth < path.length && isObject(member(template, ...path.slice(0, depth)))) {
    depth++;
  }
  const below = path.slice(depth).reduceRight<Json>((v, name) => ({ [name]: v }), value);
  return { op: "add", path: "/" + path.slice(0, depth).join("/"), value: below }; // no name here needs to be escaped
}

// minor returns the minor version, v1.36 of v1.36.1.
function minor(version: Json | undefined): string | undefined {
  return typeof version === "string" ? /^(v[0-9]+\.[0-9]+)\.[0-9]+([-+][0-9A-Za-z.+-]+)?$/.exec(version)?.[1] : undefined;
}
