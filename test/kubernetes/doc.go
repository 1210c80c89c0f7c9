// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package kubernetes tests the gateway against a real kube-apiserver and etcd, from the folder that KUBEBUILDER_ASSETS
// names: `make kubernetes-binaries` fills one, and `make test` uses it. Without it, the tests are skipped.
//
// All tests share one API server. ExtensionConfigs are cluster-scoped, so each test gives its own a watch-filter label,
// which only its replicas watch.
package kubernetes
