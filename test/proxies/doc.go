// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package proxies tests gateways behind real proxies, with the configurations that docs/proxies.md shows.
// `make test-proxies` runs them.
package proxies
