// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package openapi tests the OpenAPI documents of the hooks: that they are valid, that they say what Cluster API's own
// types say and what the golden vectors have, that an extension can be written by a document alone, and that the
// gateway serves them with pages on which hooks can be tried, in a real browser. It tests the gateway's
// page and the site of the documentation in that browser, too.
//
// It is a module of its own, because it reads the documents with heavy libraries. `make test-openapi` and
// `make test-docs` run it.
package openapi
