// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package preflight predicts the effects of an upgrade of Cluster API, of the gateway, or of both on the registered
// handlers. Judge compares an Inventory with a Target: it reports which handlers would break, lose members or need
// attention, and proposes remedies, down to the ExtensionPolicy to apply. A Report can be written as a table, as JSON
// and as SARIF.
//
// Judge is a pure function: neither the order of the inventory nor the time matters. Package controllers/survey reads
// inventories. A Report is immutable and safe for concurrent use.
package preflight
