// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package extension calls Runtime Extensions: it asks one which handlers it has, and sends one request to one handler.
//
// It trusts nothing that comes back. Every answer is capped, checked and decoded into a fresh message, and every failure
// becomes one hook.Error with a text that stays the same; what varies goes into its cause. Connections are kept, shared
// by all handlers behind one host, and replaced without harm to the calls that are under way.
//
// It leaves to others: which handlers are called and in what order, settings, conversion, limits, circuits and failure
// policies (package gateway), and when discovery runs (package controllers).
//
// REST, GRPC and Protocols are safe for concurrent use. A Call belongs to one goroutine.
package extension
