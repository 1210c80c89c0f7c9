// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package connlimit

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/hookgate/hookgate/internal/limits"
)

// dial connects from an address of the loopback network, and reports whether the server keeps the connection.
func dial(t *testing.T, l net.Listener, from string) (net.Conn, bool) {
	t.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	c, err := d.DialContext(t.Context(), "tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	_, err = c.Read(make([]byte, 1))
	return c, err == nil
}

func TestConnectionsAreBounded(t *testing.T) {
	plain, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	l := New(plain, "webhooks", slog.New(slog.NewTextHandler(&log, nil)))
	l.total, l.perHost = 5, 3
	ended := make(chan error, 1)
	closed := make(chan struct{}, 16)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				ended <- err
				return
			}
			_, _ = c.Write([]byte("x")) // it is kept until its peer closes it
			go func() {
				_, _ = io.Copy(io.Discard, c)
				_ = c.Close()
				_ = c.Close() // which gives back its place once
				closed <- struct{}{}
			}()
		}
	}()
	var kept []net.Conn
	for i, from := range []string{"127.0.0.1", "127.0.0.1", "127.0.0.1", "127.0.0.1", "127.0.0.2", "127.0.0.2", "127.0.0.3"} {
		c, ok := dial(t, l, from)
		if want := i != 3 && i != 6; ok != want {
			t.Errorf("connection %d from %s is kept: %t, want %t", i, from, ok, want)
		}
		if ok {
			kept = append(kept, c)
		}
	}
	_ = kept[0].Close()
	<-closed
	if _, ok := dial(t, l, "127.0.0.1"); !ok {
		t.Error("the place of a connection that has ended is not free")
	}
	_ = l.Close()
	if err := <-ended; !errors.Is(err, net.ErrClosed) {
		t.Errorf("a closed listener ends with %v", err)
	}
	if n := strings.Count(log.String(), "\n"); n != 1 || !strings.Contains(log.String(), "address=webhooks host=127.0.0.1") {
		t.Errorf("logged %d lines: %s", n, &log)
	}
}

func TestLimitsLeaveRoomForOthers(t *testing.T) {
	if limits.SideConnections < 4*limits.SideHostConnections {
		t.Error("a few hosts can have all connections")
	}
}

func TestHostOf(t *testing.T) {
	for address, want := range map[string]string{
		"10.0.0.1:99": "10.0.0.1", "[::ffff:10.0.0.1]:99": "10.0.0.1", "[fe80::1%lo]:99": "fe80::1",
	} {
		got := HostOf(net.TCPAddrFromAddrPort(netip.MustParseAddrPort(address)))
		if got.String() != want {
			t.Errorf("%s: got %s, want %s", address, got, want)
		}
	}
	if HostOf(&net.UnixAddr{}).IsValid() {
		t.Error("a socket has a host")
	}
}
