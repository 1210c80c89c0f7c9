// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package clusterctl checks a release against clusterctl's provider contract, with clusterctl itself: it generates,
// installs, upgrades, moves and deletes the gateway on real API servers, beside the providers of Cluster API.
//
// Everything comes from folders: the repository of providers is written by the test, Cluster API's providers are
// rendered from its module, and nothing reaches the network. No Pod and no controller runs: Deployments never become
// available, so clusterctl does not wait for them; webhooks have no server, so the test removes their configurations;
// and a deleted Namespace stays, marked as deleted.
//
// The tests are skipped unless HOOKGATE_CLUSTERCTL, HOOKGATE_KUSTOMIZE, HOOKGATE_RELEASE and HOOKGATE_BIN name programs
// and KUBEBUILDER_ASSETS a folder with kube-apiserver, etcd and kubectl; `make test-clusterctl` builds them and sets
// the variables.
package clusterctl
