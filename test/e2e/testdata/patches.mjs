// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// A GeneratePatches handler in JavaScript, with Node's own modules only: node patches.mjs PORT CERT_DIR
//
// It adds a word of its settings to the commands that run before kubeadm, with JSON patches. There must be some.

import { readFileSync } from "node:fs";
import { createServer } from "node:https";

const group = "/hooks.runtime.cluster.x-k8s.io/v1alpha1/";
const apiVersion = "hooks.runtime.cluster.x-k8s.io/v1alpha1";
const paths = {
  KubeadmControlPlaneTemplate: "/spec/template/spec/kubeadmConfigSpec/preKubeadmCommands/-",
  KubeadmConfigTemplate: "/spec/template/spec/preKubeadmCommands/-",
};

const hooks = {
  [group + "discovery"]: () => ({
    kind: "DiscoveryResponse",
    handlers: [{ name: "commands", requestHook: { apiVersion, hook: "GeneratePatches" } }],
  }),
  [group + "generatepatches/commands"]: (request) => ({
    kind: "GeneratePatchesResponse",
    items: request.items
      .filter((item) => paths[item.object.kind])
      .map((item) => ({
        uid: item.uid,
        patchType: "JSONPatch",
        patch: Buffer.from(
          JSON.stringify([{ op: "add", path: paths[item.object.kind], value: request.settings.word }]),
        ).toString("base64"),
      })),
  }),
};

const [port, certs] = process.argv.slice(2);
createServer({ cert: readFileSync(certs + "/tls.crt"), key: readFileSync(certs + "/tls.key") }, async (request, response) => {
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  const hook = hooks[request.url.split("?")[0]];
  if (!hook) {
    console.log("not found:", request.method, request.url);
    response.writeHead(404).end();
    return;
  }
  const answer = hook(JSON.parse(Buffer.concat(chunks).toString()));
  response.setHeader("Content-Type", "application/json");
  response.end(JSON.stringify({ apiVersion, status: "Success", ...answer }));
}).listen(Number(port), "127.0.0.1");
