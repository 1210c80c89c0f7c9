// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package preflight tells what an upgrade means for the handlers that are registered: of Cluster API, of the gateway, or of
// both. Judge compares an Inventory with a Target, and says for each handler whether it would break, lose something, or
// deserves a word, and what to do about it, down to the ExtensionPolicy to apply.
//
// Judge is a function of its arguments alone: the order of the inventory makes no difference, and the same inventory gives the same
// text. Reading inventories is left to package controllers/survey, printing for people to the command. Everything here is
// immutable once made, and safe for concurrent use.
package preflight
