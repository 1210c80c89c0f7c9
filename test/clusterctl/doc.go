// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package clusterctl holds a release against what clusterctl asks of a provider, with clusterctl itself: it generates,
// installs, upgrades, moves and deletes the gateway on real API servers, beside the providers of Cluster API.
//
// Everything comes from folders: the repository of providers is written by the test, Cluster API's providers are rendered
// from its module, and nothing reaches the network. No Pod runs and no controller: Deployments never become available, which
// clusterctl is not told to wait for, webhooks are asked by nobody, since the test removes their configurations where it
// says so, and a Namespace that is deleted stays, with its mark of deletion.
//
// The tests are skipped unless HOOKGATE_CLUSTERCTL, HOOKGATE_KUSTOMIZE, HOOKGATE_RELEASE and HOOKGATE_BIN name programs and
// KUBEBUILDER_ASSETS a folder with kube-apiserver, etcd and kubectl; `make test-clusterctl` builds them and sets that.
package clusterctl
