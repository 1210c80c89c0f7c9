// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package provider tests the controllers of infrastructure against a real kube-apiserver and etcd, from the folder that
// KUBEBUILDER_ASSETS names, without Cluster API: the tests write what it would. The extension is a cloud in memory,
// behind real gRPC, that can be made to lie, to fail and to forget.
//
// All tests share one API server. Each has its own namespace, class and watch filter.
package provider
