// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package parameters checks the parameters of objects of infrastructure.hookgate.dev against the schemas that an
// extension announces, and adds defaults to those that a request has.
//
// A schema is what a CustomResourceDefinition can have: structural OpenAPI v3 with defaults and rules in CEL, checked
// by the code of the API server. A schema that passes Compile could stand in a CustomResourceDefinition.
//
// Everything is bounded before it is built: bytes, nesting, the costs of rules, and the number and length of the
// problems in an answer. The texts of problems depend on the schema and the parameters alone, because conditions have
// them. Nothing here writes an object.
//
// A Schema is immutable and safe for concurrent use.
package parameters
