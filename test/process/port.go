// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"testing"
)

// The range of FreePort. Systems take the ports of outgoing connections from above it, and the suites that run beside
// others take theirs from other ranges.
const firstPort, ports = 12000, 4000

// lastPort counts the ports that FreePort has tried, from a place that differs from process to process.
var lastPort = sync.OnceValue(func() *atomic.Int64 {
	var n atomic.Int64
	n.Store(rand.Int64N(ports))
	return &n
})

// FreePort returns a port of 127.0.0.1 on which nothing listens, for a program that cannot choose one itself. No outgoing
// connection takes it before the program listens, and FreePort does not return it again.
func FreePort(t testing.TB) int {
	t.Helper()
	for range ports {
		port := firstPort + int(lastPort().Add(1))%ports
		if l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port)); err == nil {
			_ = l.Close()
			return port
		}
	}
	t.Fatalf("no port from %d to %d is free", firstPort, firstPort+ports-1)
	return 0
}
