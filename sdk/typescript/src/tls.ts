// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// TLS from files that are read again when they change.

import { readFileSync } from "node:fs";
import { createSecureContext } from "node:tls";
import { experimental, type ServerCredentials } from "@grpc/grpc-js";

import type { Logger } from "./log.js";

type Provider = experimental.CertificateProvider;

const interval = 1000;

/** Files are the files of a server's certificate, its key, and the certificate authority of its clients, if any. */
export interface Files {
  cert: string;
  key: string;
  clientCa: string | undefined;
}

/** Certificates are the credentials of a server. Close them with it. */
export class Certificates {
  readonly credentials: ServerCredentials;
  readonly #files: Files;
  readonly #log: Logger;
  readonly #timer: NodeJS.Timeout;
  readonly #changed: (() => void)[] = [];
  #current: { cert: Buffer; key: Buffer; ca: Buffer | undefined };
  #refused = "";

  /** It throws if the files are not a certificate and its key. */
  constructor(files: Files, log: Logger) {
    this.#files = files;
    this.#log = log;
    this.#current = this.#read();
    const ignore = () => {};
    const provider: Provider = {
      addIdentityCertificateListener: (listener) =>
        this.#announce(() => listener({ certificate: this.#current.cert, privateKey: this.#current.key })),
      addCaCertificateListener: (listener) => this.#announce(() => listener({ caCertificate: this.#current.ca! })),
      removeIdentityCertificateListener: ignore,
      removeCaCertificateListener: ignore,
    };
    this.credentials = experimental.createCertificateProviderServerCredentials(provider, files.clientCa ? provider : null, Boolean(files.clientCa));
    this.#timer = setInterval(() => this.#reload(), interval).unref();
  }

  close(): void {
    clearInterval(this.#timer);
  }

  #announce(listener: () => void): void {
    this.#changed.push(listener);
    process.nextTick(listener); // the server listens to the credentials only after these listen to their provider
  }

  #reload(): void {
    try {
      const found = this.#read();
      this.#refused = "";
      const same = (["cert", "key", "ca"] as const).every((name) => found[name]?.toString() === this.#current[name]?.toString());
      if (same) {
        return;
      }
      this.#current = found;
      this.#changed.forEach((listener) => listener());
      this.#log.info("certificate replaced", { file: this.#files.cert });
    } catch (error) {
      const text = (error as Error).message;
      if (text !== this.#refused) {
        this.#refused = text;
        this.#log.error("certificate refused: what was read last stays in use", { error: text });
      }
    }
  }

  #read() {
    const { cert, key, clientCa } = this.#files;
    const found = { cert: readFileSync(cert), key: readFileSync(key), ca: clientCa ? readFileSync(clientCa) : undefined };
    try {
      createSecureContext({ cert: found.cert, key: found.key, ...(found.ca && { ca: found.ca }) });
    } catch (error) {
      throw new Error(`${cert}, ${key}: not a certificate and its key in PEM: ${(error as Error).message}`);
    }
    return found;
  }
}
