// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package conversion compares package convert with the converters of Cluster API itself, on random objects: in this
// process, and through a running gateway, the program that HOOKGATE_BIN names. It also compares what judges variables,
// and the patches of rules, with what Cluster API does itself. Its module is not that of the product, because all this
// is in Cluster API's main module, which is not a dependency of the product. It has tests only.
package conversion
