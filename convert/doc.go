// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package convert brings what requests and answers carry of Cluster API from one version to another, and remembers what
// could not be expressed.
//
// # What is converted
//
// The Cluster of the lifecycle hooks and of GenerateUpgradePlan, and the Machines and MachineSets of the in-place hooks, between
// v1beta1 and v1beta2 of group cluster.x-k8s.io. An object says itself which version it has. The one exception is what Cluster API
// v1.12 sends in lifecycle hooks: Clusters without apiVersion and kind, which are of v1beta1. Objects of other groups (bootstrap
// configurations, infrastructure machines, the templates of GeneratePatches) are left alone, and so is every object that has the
// wanted version: nothing is decoded, and the very message comes back.
//
// Builtin variables and references to holders, in GeneratePatches and ValidateTopology, have the same members in Cluster API v1.12
// and v1.14, so that there is nothing to convert; a test holds them against the members of v1.12.0.
//
// Answers go the other way: patches for a Machine or MachineSet that was converted, and the metadata of variables. See
// [Converted.Response].
//
// # How
//
// Conversions are the functions that Cluster API generates, in its module of types, and a part of its own for what they leave to the
// webhooks of the main module: references, which have no version in v1beta2, get it back from [References], and a namespace; intents
// that v1beta1 cannot tell from zero stay absent. The main module is no dependency: test/conversion, a module of its own, compares
// both on random objects.
//
// The metadata of objects is the same in both versions and goes through as it is written, but for the annotation
// cluster.x-k8s.io/conversion-data, in which Cluster API's converters keep for the way back what v1beta1 has no room for. It is not
// written, and not handed on: Cluster API v1.12 and v1.14 remove it from the requests of hooks. An object of v1beta1 that has
// it all the same is converted with it, as Cluster API would do. It is no member of the object, so that its removal is no loss.
//
// Members that the types do not know stay where they are, at any depth, if that place is the same thing in the other version and has
// no member of that name. Numbers are as they were written. Names of members are taken only as they are spelled in the types.
//
// # Losses
//
// What the other version cannot express is found by converting the result back and comparing it with what came in, as Go values.
// Absent, zero, empty and null are the same. Times are written in whole seconds, as Kubernetes writes them, and durations in the form
// of Go. A loss is named by its path without indices and keys, so that there is a bounded number of them; [Lossy] lists those that can
// happen at all.
//
// It leaves to others which version a handler understands, and whom to tell of losses. All types are safe for concurrent use.
package convert
