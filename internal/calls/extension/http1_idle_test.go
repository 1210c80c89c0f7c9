// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"crypto/tls"
	"fmt"
	"net"
	"sync/atomic"
	"testing"
	"time"
)

// A connection that was dialed for a call which then took another one is idle without ever having had a call. It is not
// used either if the server has closed it.
func TestConnectionsThatCloseBeforeTheirFirstCall(t *testing.T) {
	var connections atomic.Int32
	cc := rawServer(t, newAuthority(t), func(c net.Conn) {
		if connections.Add(1) == 1 {
			_ = c.(*tls.Conn).Handshake()
			return // and closes it
		}
		for readRequest(c) == nil {
			_, _ = fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(success), success)
		}
	})
	r := newREST(t, Config{})
	rt, err := r.routes.get(cc)
	if err != nil {
		t.Fatal(err)
	}
	p := rt.host.acquire(r.now())
	defer p.release()
	dialed, err := p.http1.dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	c := newHTTP1Conn(dialed)
	for deadline := time.Now().Add(time.Minute); c.isAlive(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the connection is still alive")
		}
	}
	p.http1.put(c)
	mustCall(t, r, cc)
	if n := connections.Load(); n != 2 {
		t.Errorf("%d connections, want another one for the call", n)
	}
	if _, err := dialed.Write([]byte("x")); err == nil {
		t.Error("the dead connection is still open")
	}
}
