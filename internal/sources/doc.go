// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package sources is a folder. Its packages bring objects into the registry: they read manifests, follow a directory,
// and discover the handlers of extensions. The source for a cluster is package controllers.
package sources
