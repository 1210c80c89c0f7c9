// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package webhook serves the admission webhooks of infrastructure.hookgate.dev.
//
// The schemas of the kinds refuse what is wrong by itself. The webhooks add what needs another object, or the request:
//
//   - The spec of a template is immutable, except under the dry run of Cluster API's topology controller.
//   - Parameters match the schema that the extension announces in the status of the InfrastructureClass. They are
//     checked where an update changes them, so that a new schema does not block objects that exist.
//   - Credentials are in the namespace of their HookgateCluster.
//   - Selectors of namespaces can be parsed.
//   - The annotation that makes a HookgateCluster externally managed stays.
//
// What may still appear, such as an InfrastructureClass that is applied later, causes a warning: the order in which
// objects are applied does not matter, and conditions report what is missing. Parameters of a template that a user
// applies cause warnings as well, because patches of a ClusterClass may complete them. An object that is being deleted
// passes.
//
// There is one version of each kind, and so no conversion webhook: the definitions have no conversion, which is None.
// A second version would add one here, as package controllers/webhook has for ExtensionConfigs.
//
// Every replica answers, whether it leads or not. All types are safe for concurrent use.
package webhook
