// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package handlerchain makes one answer of those that the steps of a chain of handlers give one after the other. It
// keeps the objects of a request as patched so far, from which it makes the request of the next step.
//
// It follows what Cluster API does with patches, in controllers/topology/cluster/patches and internal/util/patch: of
// what a patch makes of an object, only some members are kept. It calls nothing; package gateway does. Values are for
// one call, and belong to one goroutine.
package handlerchain
