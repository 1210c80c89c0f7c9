// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package release makes requests that an earlier release of Cluster API could have sent: it takes out what releases
// have added since, by the table of package catalog. What a handler answers about the objects that it saw is carried
// over to the whole ones. It adds nothing, and leaves the versions of objects to package convert.
package release
