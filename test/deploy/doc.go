// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package deploy renders deploy/ as docs/deploy.md says, and checks what comes out: every object against the Go types of its
// API, that the objects fit together, that the gateway takes the arguments, and what an installation promises about its
// security. It does not apply them; that is for a test with an API server.
//
// The tests are skipped unless HOOKGATE_KUSTOMIZE names kustomize; `make test` builds it and sets that.
package deploy
