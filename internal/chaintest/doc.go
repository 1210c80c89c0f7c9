// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package chaintest runs the cases of HandlerChainTests: files beside a HandlerChain, with requests and what the chain
// is to make of them. It reads no files of requests and makes no calls itself: the caller passes functions for both.
// Values belong to one goroutine.
package chaintest
