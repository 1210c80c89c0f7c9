// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package certs

// Settings are the operator's choices for the TLS of servers. The zero value is Go's choice, from TLS 1.2 on.
type Settings struct {
	MinVersion   uint16
	CipherSuites []uint16 // of TLS 1.2
}
