// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package gateway is the one place where a call is decided: which handlers answer it, with which settings, for how long,
// and what their failures mean. Two fronts, HTTPS JSON and gRPC, turn a request into the same message and hand it to the
// Dispatcher.
//
// Each step of a call that concerns one handler is a Caller around the next: observe, apply the failure policy, convert,
// bound the time, and last the transport, from the package extension. What is registered comes from the package
// registry; where that comes from is the concern of the package controllers.
//
// A Dispatcher and both fronts are safe for concurrent use. The call path takes no lock.
package gateway
