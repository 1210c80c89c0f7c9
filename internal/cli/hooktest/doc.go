// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package hooktest runs the cases of HandlerChainTests and HookRuleTests: files beside a HandlerChain or a HookRule,
// with requests and what is wanted of the answers. It reads no files of requests and makes no calls itself: the caller
// passes functions for both. Values belong to one goroutine.
package hooktest
