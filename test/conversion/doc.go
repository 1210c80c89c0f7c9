// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package conversion compares package convert with the converters of Cluster API itself, on random objects. It is a module of its
// own, because those are in Cluster API's main module, which is not a dependency of the product. It has tests only.
package conversion
