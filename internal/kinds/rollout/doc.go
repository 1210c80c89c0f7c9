// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rollout decides for which Clusters the candidate of an ExtensionRollout answers.
//
// An Engine has the records of all Clusters: what comparisons of answers have shown, and which Clusters have moved. A
// Rollout is a valid ExtensionRollout, the registry.Assignment of its members. Calls read whether their Cluster has
// moved, and leave their answers to be compared. Comparing, deciding and writing records happens behind them, in the
// goroutines of Engine.Run: a Cluster moves when its record has been stored, and not before.
//
// What comparisons have shown is kept as evidence, by question: one answer says nothing about others. Requests do not
// say which reconcile they are of, so that evidence tells reconciles by what is asked again, and holds what differs
// until it is compared anew.
//
// Where records are stored is up to others (Store), and so is asking the candidate and comparing its answer.
//
// All types are safe for concurrent use.
package rollout
