// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package convert converts the Cluster API objects in requests and answers from one version to another, and records the
// members that the other version cannot express.
//
// # What is converted
//
// The package converts the Cluster of the lifecycle hooks and of GenerateUpgradePlan, the Machines and MachineSets of
// the in-place hooks, and the Cluster, Machine and MachinePool in the subject of the hooks of infrastructure, between
// v1beta1 and v1beta2 of group cluster.x-k8s.io. An object states its version itself.
// The one exception are Clusters of v1beta1 without apiVersion and kind, which Cluster API v1.12 sends in lifecycle
// hooks. Objects of other groups (bootstrap configurations, infrastructure machines, the templates of GeneratePatches)
// are not converted, nor is an object that already has the wanted version: it is not decoded, and the same message is
// returned.
//
// Builtin variables and references to holders, in GeneratePatches and ValidateTopology, have the same members in
// Cluster API v1.12 and v1.14, so that there is nothing to convert; a test compares them with the members of v1.12.0.
//
// Answers are converted back: patches for a Machine or MachineSet that was converted, and the metadata of variables.
// See [Converted.Response].
//
// # How
//
// An object is decoded by sigs.k8s.io/json, as the API server does it, and written by encoding/json. Before that, a
// walker reads its text beside the Go type: it counts what decoding will allocate, collects the members that the type
// does not know, and names the place of a value that does not fit.
//
// The package uses the conversion functions that Cluster API generates in its module of types, and adds the steps that
// Cluster API leaves to the webhooks of its main module: references, which have no version in v1beta2, get one from
// [References], and a namespace; values that v1beta1 cannot distinguish from zero stay absent. The main module is not a
// dependency; test/extra/conversion compares both on random objects.
//
// The metadata of objects is the same in both versions and is passed on unchanged, except for the annotation
// cluster.x-k8s.io/conversion-data, in which Cluster API's converters keep the members that v1beta1 lacks. The package
// neither writes that annotation nor passes it on, because Cluster API v1.12 and v1.14 remove it from the requests of
// hooks. An object of v1beta1 that has it nevertheless is converted with it, as Cluster API would do. Removing it is
// not a loss.
//
// A member that the types do not know stays in its place, at any depth, if that place is the same thing in the other
// version and has no member of that name there. Numbers keep their digits. Names of members are case-sensitive.
//
// # Losses
//
// To find losses, the package converts the result back and compares it with the original, as Go values. Absent, zero,
// empty and null are equal. Times are written in whole seconds, as in Kubernetes, and durations in Go's format. A loss
// is named by its path without indices and keys, so that the number of losses is bounded; [Lossy] lists the possible
// ones.
//
// The package does not decide which version a handler understands, and does not report losses. All types are safe for
// concurrent use.
package convert
