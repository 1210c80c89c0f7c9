// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// An extension with one handler, on the package.
import { done, Extension } from "@hookgate/sdk";
import { LifecycleHooksService } from "@hookgate/sdk/hooks/v1alpha1";

const extension = new Extension();
extension.handle(LifecycleHooksService.method.beforeClusterUpgrade, "hello", () => done());
await extension.serve({ address: process.argv[2] });
