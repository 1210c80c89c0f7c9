// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package extension calls Runtime Extensions: it discovers the handlers of one, and sends one request to one handler.
//
// It trusts no answer. Every answer is limited in size, checked and decoded into a fresh message, and every failure
// becomes one hook.Error with a text that is the same for the same failure; what varies goes into its cause.
// Connections are kept, shared by all handlers behind one host, and replaced without harm to the calls that are under
// way. Package connect makes them and classifies their failures.
//
// It leaves to others: which handlers are called and in what order, settings, conversion, limits, circuits and failure
// policies (package gateway), and when discovery runs (package controllers).
//
// REST, GRPC and Protocols are safe for concurrent use, and only read a Call.
package extension
