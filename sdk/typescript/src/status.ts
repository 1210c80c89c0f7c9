// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// The gRPC statuses that a call may end with.

import { status } from "@grpc/grpc-js";

/** Code is gRPC's enumeration of statuses. */
export { status as Code };

/** Kind is what the log says about a failed call. docs/extensions.md has the list, which all packages share. */
export type Kind =
  | "Ambiguous"
  | "Canceled"
  | "Failure"
  | "Internal"
  | "InvalidRequest"
  | "Overloaded"
  | "Status"
  | "Timeout"
  | "UnknownHandler"
  | "UnknownHook";

/** StatusError ends a call with a gRPC status. A handler throws it. */
export class StatusError extends Error {
  override readonly name = "StatusError";

  constructor(
    readonly code: status,
    message: string,
    /** @internal */
    readonly kind: Kind = code === status.INVALID_ARGUMENT ? "InvalidRequest" : "Status",
  ) {
    super(message);
  }
}
