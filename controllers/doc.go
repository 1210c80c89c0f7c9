// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package controllers reads ExtensionConfigs, and Hookgate's own kinds, from a Kubernetes cluster.
//
// Every replica of the gateway fills its own registry from the status of the ExtensionConfigs that it watches. The
// leader also injects CAs, discovers extensions, and writes status and conditions, which the others follow. Packages
// extensionconfig and discovery interpret an ExtensionConfig and decide what to serve while its extension does not
// answer, as for any other source.
//
// The package observes an ExtensionConfig, computes its desired state with a pure function, and writes the difference:
// see Reconcile. The decision depends only on the ExtensionConfig, its surroundings and the answer of its extension, so
// nothing is written while nothing changes. The exception are losses of conversions in calls, which every replica adds
// to an annotation and a condition.
//
// Calls never wait for the API server. While it is away, everything stays served as it was; a leader that loses its
// lease becomes a follower.
//
// A Source may be used from any goroutine after Run was called. An ExtensionConfig is reconciled by one goroutine at a
// time.
package controllers
