// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 holds the Kubernetes API of Hookgate itself, group hookgate.dev, version v1alpha1: ExtensionPolicy, with
// which an operator decides how the handlers of an extension are called.
//
// The types say what may be written; packages controllers and policy say what it means. Values are plain data: a value
// belongs to one goroutine while it is changed.
//
// +kubebuilder:object:generate=true
// +groupName=hookgate.dev
package v1alpha1
