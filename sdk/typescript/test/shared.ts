// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// What the tests share.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Logger } from "@hookgate/sdk";

/** repository is the folder of Hookgate's repository, whose vectors are tested with. */
export const repository = process.env["HOOKGATE_REPOSITORY"] ?? join(import.meta.dirname, "../../../..");

/** read reads a file of the repository. */
export function read(...path: string[]): Buffer {
  return readFileSync(join(repository, ...path));
}

/** Lines is a logger that keeps its lines. */
export class Lines implements Logger {
  readonly lines: ({ level: string; text: string } & { [field: string]: any })[] = [];
  readonly debug = this.#writer("debug");
  readonly info = this.#writer("info");
  readonly error = this.#writer("error");

  #writer(level: string) {
    return (text: string, fields?: object) => void this.lines.push({ level, text, ...fields });
  }
}

/** cluster is a request about a Cluster. */
export function cluster(metadata: object = { name: "c" }): { cluster: object } {
  return { cluster: { apiVersion: "cluster.x-k8s.io/v1beta2", kind: "Cluster", metadata } };
}
