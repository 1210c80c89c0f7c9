// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// An extension in Node that answers BeforeClusterCreate badly: server.mjs MODE CERTS ADDRESS...
//
// CERTS is a folder with tls.crt and tls.key, or - for no TLS. server.py is the same in Python. It is started in the folder
// of the example in TypeScript, whose packages and stubs it uses.

import { mkdtempSync, readFileSync } from "node:fs";
import http from "node:http";
import https from "node:https";
import { createRequire } from "node:module";
import net from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

const require = createRequire(resolve("package.json"));
const { Metadata, Server, ServerCredentials } = require("@grpc/grpc-js");
const load = (name) => import(pathToFileURL(require.resolve(name)));
const { create, fromBinary, toBinary } = await load("@bufbuild/protobuf");
const { BeforeClusterCreateResponseSchema, DiscoveryResponseSchema, DiscoveryService, LifecycleHooksService, ResponseStatus } =
  await load("@hookgate/sdk/hooks/v1alpha1");

// The stubs without the layer above them, whose handlers answer well.
const define = ({ parent, name, input, output }) => ({
  path: `/${parent.typeName}/${name}`,
  requestStream: false,
  responseStream: false,
  requestDeserialize: (bytes) => fromBinary(input, bytes),
  responseSerialize: (message) => Buffer.from(toBinary(output, message)),
});
const serviceOf = (...methods) => Object.fromEntries(methods.map((method) => [method.localName, define(method)]));

const apiVersion = "hooks.runtime.cluster.x-k8s.io/v1alpha1";
const [mode, certs, ...addresses] = process.argv.slice(2);
const requestHook = { apiVersion, hook: "BeforeClusterCreate" };
const handlers = [
  { name: "create", requestHook, timeoutSeconds: 20 },
  { name: "quick", requestHook, timeoutSeconds: 1 },
];
const read = (name) => readFileSync(join(certs, name));

const discovery = {
  discovery: (_, done) => done(null, create(DiscoveryResponseSchema, { status: ResponseStatus.SUCCESS, handlers })),
};

const lifecycle = {
  beforeClusterCreate: (call, done) => {
    const answer = (message) => done(null, create(BeforeClusterCreateResponseSchema, { status: ResponseStatus.SUCCESS, message }));
    switch (mode) {
      case "large":
        return answer("x".repeat(21 << 20));
      case "mute":
        return;
      case "throw":
        throw new Error("the handler's own text");
      case "cut": {
        const begun = new Metadata();
        begun.set("begun", "yes");
        call.sendMetadata(begun);
        setTimeout(cut, 200); // for the header to get through
        return;
      }
      default:
        return answer("fine");
    }
  },
};

// gRPC lets no handler break its connection, so a proxy in front of the server does.
const connections = new Set();
const cut = () => {
  for (const connection of connections) {
    connection.resetAndDestroy();
  }
};

const listening = (server, address) =>
  new Promise((done) => {
    const at = address.lastIndexOf(":");
    server.listen(Number(address.slice(at + 1)), address.slice(0, at), done);
  });

const serveCutter = (address, inner) =>
  listening(
    net.createServer((outside) => {
      const inside = net.connect(inner);
      connections.add(outside);
      outside.on("close", () => {
        connections.delete(outside);
        inside.destroy();
      });
      inside.on("error", () => {});
      outside.on("error", () => {});
      outside.pipe(inside).pipe(outside);
    }),
    address,
  );

const answerREST = (request, response) => {
  request.resume().on("end", () => {
    response.setHeader("Content-Type", "application/json");
    if (request.url.includes("/discovery?")) {
      return response.end(JSON.stringify({ apiVersion, kind: "DiscoveryResponse", status: "Success", handlers }));
    }
    const answer = (message) => JSON.stringify({ apiVersion, kind: "BeforeClusterCreateResponse", status: "Success", message });
    switch (mode) {
      case "rest-large":
        return response.end(answer("x".repeat(21 << 20)));
      case "rest-mute":
        return;
      case "rest-throw": // Node's own server would end the process
        return response.writeHead(500).end("the handler's own text");
      case "rest-cut":
        response.setHeader("Content-Length", 1000);
        return response.write("{", () => request.socket.destroy());
      default:
        return response.end(answer("fine"));
    }
  });
};

const serveREST = async () => {
  for (const address of addresses) {
    const server = certs === "-" ? http.createServer(answerREST) : https.createServer({ key: read("tls.key"), cert: read("tls.crt") }, answerREST);
    await listening(server, address);
  }
};

const serveGRPC = async () => {
  const server = new Server({ "grpc.max_send_message_length": -1 });
  if (mode === "other") {
    const check = { path: "/grpc.health.v1.Health/Check", requestStream: false, responseStream: false, requestDeserialize: Buffer.from, responseSerialize: Buffer.from };
    server.addService({ check }, { check: (_, done) => done(null, [8, 1]) }); // SERVING
  } else {
    server.addService(serviceOf(DiscoveryService.method.discovery), discovery);
    server.addService(serviceOf(LifecycleHooksService.method.beforeClusterCreate), lifecycle);
  }
  const credentials =
    certs === "-" ? ServerCredentials.createInsecure() : ServerCredentials.createSsl(null, [{ private_key: read("tls.key"), cert_chain: read("tls.crt") }]);
  const bind = (address) =>
    new Promise((done, failed) => server.bindAsync(address, credentials, (error) => (error ? failed(error) : done())));
  if (mode !== "cut") {
    return Promise.all(addresses.map(bind));
  }
  const inner = join(mkdtempSync(join(tmpdir(), "cut")), "inner.sock");
  await bind(`unix://${inner}`);
  return serveCutter(addresses[0], inner);
};

await (mode.startsWith("rest") ? serveREST() : serveGRPC());
console.log(`listening on ${addresses[0]}`);
