// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package openapi tests the OpenAPI document of the hooks: that it is one, that it says what Cluster API's own types
// say and what the golden vectors have, that an extension can be written by it alone, and that the gateway serves it
// with a page on which hooks can be tried, in a real browser. It tests the page about the extensions in that browser, too.
//
// It is a module of its own, because what it reads the document with is heavy. `make test-openapi` runs it.
package openapi
