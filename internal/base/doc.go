// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package base is a folder. Its packages know nothing of hooks, and import nothing of the project but each other:
// texts, files, YAML, tables for terminals, limits, and what tests share.
package base
