// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package handlerchain has the rules of HandlerChains, and makes one answer of those that their steps give one after
// the other. It keeps the objects of a request as patched so far, from which it makes the request of the next step.
//
// It follows what Cluster API does with patches, in controllers/topology/cluster/patches and internal/util/patch: of
// what a patch makes of an object, only some members are kept. It calls nothing; package gateway does. The values that
// make answers are for one call, and belong to one goroutine.
package handlerchain
