// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package contract is a folder. Its packages know what Cluster API's hooks say: the JSON of requests and answers, the
// patches in them, the versions of the objects in them, what is secret in them, their OpenAPI documents, and tables of
// them for people.
package contract
