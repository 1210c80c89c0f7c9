// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package helm has the tests of the chart in deploy/helm: they compare what it renders with the manifests of kustomize,
// object by object, and install, upgrade and uninstall it in a real API server. `make test-helm` runs them.
package helm
