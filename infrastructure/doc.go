// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package infrastructure has the controllers of the kinds of infrastructure.hookgate.dev: they keep the contracts of a
// Cluster API infrastructure provider, and ask the extension of an InfrastructureClass to make the machines.
//
// A reconciliation has three steps. It observes the object and what surrounds it, calls the extension if that is due,
// and writes the difference that the answer makes, once. What an answer means is decided by functions without I/O.
//
// The rules that hold when something fails:
//
//   - Nothing is called before the finalizer and spec.externalID are stored.
//   - A failed call changes the condition Synced, and nothing else. It is repeated later and later.
//   - Only the answer GONE removes a finalizer, or the annotation infrastructure.hookgate.dev/abandon.
//   - A missing Cluster, owner or bootstrap Secret does not keep anything from being deleted.
//   - Paused and externally managed objects, and those that clusterctl move deletes, cause no call.
//   - What was provisioned stays so. The first endpoint and provider ID never change.
//   - A machine with a provider ID is never made again.
//   - Unchanged status is not written.
//
// Cluster API's main module is not a dependency. What the controllers need of it, such as the lookup of owners, is
// implemented here. deploy/infrastructure/rbac.yaml has the permissions that they need.
package infrastructure
