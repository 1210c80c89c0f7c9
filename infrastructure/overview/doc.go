// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package overview says how the objects of the infrastructure provider are: who waits for what and since when, whose
// last call failed, and whether the backend has what the objects say. The command line and the page of the gateway show
// it, and a Collector makes metrics of it.
package overview
