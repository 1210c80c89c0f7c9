// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package auth decides who may call which hooks: by client certificates, by static tokens in a file, and by tokens that
// a Reviewer, such as the API server of a cluster, checks. Both fronts of the gateway ask one Gate, so that a caller is
// treated alike whichever way it calls.
//
// A bearer token decides alone if the gate checks tokens and the caller sends one; otherwise, the client certificate
// decides. Nothing that the gate does not know is admitted, and a check that cannot be made admits no caller.
//
// The TLS handshake verifies certificates, with the settings of package internal/network/certs. Package
// internal/calls/auth/tokenreview asks an API server.
//
// All types are safe for concurrent use; call each Run once.
package auth
