// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 is the Kubernetes API machines.hookgate.dev/v1alpha1: the kinds for external remediation. A
// MachineHealthCheck of Cluster API that names a HookgateRemediationTemplate makes a HookgateRemediation for each
// unhealthy Machine, and deletes it when the Machine is healthy again.
//
// The types define the schema; package machines defines its meaning. No field has a default in the schema: what is not
// set stays unset. Values are plain data and not safe for concurrent changes.
//
// +kubebuilder:object:generate=true
// +groupName=machines.hookgate.dev
package v1alpha1
