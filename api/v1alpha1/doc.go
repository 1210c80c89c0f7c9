// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 is the Kubernetes API hookgate.dev/v1alpha1. Its kind ExtensionPolicy lets an operator decide how
// the handlers of an extension are called, and HandlerChain makes one handler of several.
//
// The types define the schema; package controllers defines its meaning. Values are plain data and not safe for
// concurrent changes.
//
// +kubebuilder:object:generate=true
// +groupName=hookgate.dev
package v1alpha1
