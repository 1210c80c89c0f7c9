// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package jsonpatch applies the patches in answers of handlers to objects, as Cluster API does, within bounds of memory
// and time.
package jsonpatch
