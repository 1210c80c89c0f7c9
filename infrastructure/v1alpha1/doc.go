// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 is the Kubernetes API infrastructure.hookgate.dev/v1alpha1: the kinds of Hookgate as an
// infrastructure provider of Cluster API.
//
// An InfrastructureClass names the extension that makes the infrastructure. HookgateCluster, HookgateMachine and
// HookgateMachinePool keep the contracts InfraCluster, InfraMachine and InfraMachinePool of Cluster API, version
// v1beta2, and each has a template. Their status can be found again from the spec and the extension: a move to
// another management cluster and a restored backup drop it.
//
// The types define the schema; package provider defines its meaning. No field has a default in
// the schema: what is not set stays unset, so that server-side apply, and the topology controller of Cluster API, find
// what they wrote. Values are plain data and not safe for concurrent changes.
//
// +kubebuilder:object:generate=true
// +groupName=infrastructure.hookgate.dev
package v1alpha1
