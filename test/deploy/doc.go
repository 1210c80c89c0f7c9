// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package deploy renders deploy/ as docs/deploy.md describes, and checks the result: every object against the Go types
// of its API, that the objects fit together, that the gateway accepts the arguments, and the security of the
// installation. With an API server, it also applies the objects.
//
// The tests are skipped unless HOOKGATE_KUSTOMIZE names kustomize; `make test` builds it and sets that.
package deploy
