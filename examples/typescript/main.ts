// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// A Runtime Extension over gRPC. hooks.ts has its handlers.

import { extension } from "./hooks.js";

await extension.serve({ address: process.argv[2] });
