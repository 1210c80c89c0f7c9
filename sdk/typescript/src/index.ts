// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package @hookgate/sdk makes Runtime Extensions of Cluster API out of handlers. README.md has its surface on one page.

export { done, fail, wait, Done, Failure, InvalidRequest, Wait, type Answer } from "./answers.js";
export { Extension, type ClusterApiVersion, type Context, type ExtensionOptions, type Handler, type HandlerOptions } from "./extension.js";
export { covers, type Covered } from "./inplace.js";
export { encode, load, type Json, type KubernetesObject, type RawPath } from "./json.js";
export type { Logger } from "./log.js";
export { items, Patches, type Item, type ItemFilter, type ItemsRequest } from "./patches.js";
export type { Listening, ServeOptions } from "./server.js";
export { Code, StatusError } from "./status.js";
export { setting, type SettingType, type Types } from "./values.js";
