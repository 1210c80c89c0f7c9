// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package convert brings what requests and answers carry of Cluster API from one version to another, and remembers what
// could not be expressed.
package convert
