// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package cmdline

import "net"

// IsLoopback reports whether only programs on this machine can reach the address, as far as its text says.
func IsLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	ip := net.ParseIP(host)
	return err == nil && (host == "localhost" || ip != nil && ip.IsLoopback())
}
