// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package controllers fills the registry from ExtensionConfigs.
//
// The work is split so that every source of ExtensionConfigs shares all but the reading:
//
//   - Convert and LastKnownHandlers turn an ExtensionConfig into an Extension, with Cluster API's defaults and rules;
//   - Reconciler brings one Extension into the registry: it asks the extension for its handlers, applies them, and keeps
//     what was known when the extension does not answer;
//   - Directory is a source: it reads manifests, follows their changes, and reconciles each ExtensionConfig in a
//     goroutine of its own, again and again.
//
// How an extension is called is left to package extension, what a snapshot promises to package registry.
//
// Three rules hold for every source. One ExtensionConfig that is wrong or does not answer hurts only itself. What was
// served stays served until something that works replaces it. And nothing is final: discovery is tried again with a
// growing delay while it fails, and repeated from time to time while it succeeds, because an extension may be upgraded
// behind the same URL.
//
// A Reconciler may reconcile different ExtensionConfigs at the same time, and one ExtensionConfig once at a time.
// Directory.NamespaceLabels takes no lock and may be called from any goroutine.
package controllers
