// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package helm tests the charts in deploy/helm: it compares what they render with the manifests of kustomize, object by
// object, and installs, upgrades and uninstalls them in a real API server. `make test-helm` runs them.
package helm
