// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// The gRPC statuses that a call may end with.

import { status } from "@grpc/grpc-js";

/** Code is gRPC's enumeration of statuses. */
export { status as Code };

/** StatusError ends a call with a gRPC status. */
export class StatusError extends Error {
  override readonly name = "StatusError";

  constructor(
    readonly code: status,
    message: string,
  ) {
    super(message);
  }
}
