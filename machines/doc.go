// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package machines has the controllers that call the hooks of hooks.machines.hookgate.dev for the Machines of a
// cluster: before a Machine is drained, terminated and remediated, once it has been provisioned, and to remediate it.
// Others call AfterClusterDelete for its Clusters, once they are gone.
// They run in the process of a gateway, whose registry says, without a call, which Machines have handlers.
package machines
