// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package servers

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/hookgate/hookgate/internal/base/limits"
)

// Connections beyond the limit of a host are closed at once, and a closed one makes room for another.
func TestConnectionsOfAHostAreLimited(t *testing.T) {
	inner, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer inner.Close()
	log := &bytes.Buffer{}
	l := forFront(inner, "REST", 1<<20, slog.New(slog.NewTextHandler(log, nil)))
	l.perHost = 2
	accepted := make(chan net.Conn)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			accepted <- c
		}
	}()
	dial := func() net.Conn {
		c, err := net.Dial("tcp", inner.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	dial()
	first := <-accepted
	dial()
	<-accepted
	for range 3 {
		beyond := dial()
		_ = beyond.SetReadDeadline(time.Now().Add(time.Minute))
		if _, err := beyond.Read(make([]byte, 1)); !errors.Is(err, io.EOF) && !strings.Contains(err.Error(), "reset") {
			t.Errorf("a connection beyond the limit: got %v, want it closed", err)
		}
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	_ = first.Close() // gives its place back once
	dial()
	select {
	case <-accepted:
	case <-time.After(time.Minute):
		t.Fatal("a closed connection made no room")
	}
	if got := strings.Count(log.String(), "connections refused"); got != 1 {
		t.Errorf("3 refused connections made %d lines, want 1 a minute:\n%s", got, log)
	}
}

func TestAdmit(t *testing.T) {
	l := forFront(nil, "gRPC", 1<<20, slog.New(slog.DiscardHandler))
	if l.total != limits.Connections || l.perHost != limits.HostConnections {
		t.Fatalf("limits are %d and %d", l.total, l.perHost)
	}
	if few := forFront(nil, "gRPC", 256, slog.New(slog.DiscardHandler)); few.total != 64 || few.perHost != 32 {
		t.Errorf("with 256 descriptors, limits are %d and %d", few.total, few.perHost)
	}
	l.total, l.perHost = 3, 2
	a, b, c := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2"), netip.MustParseAddr("10.0.0.3")
	var admitted []*conn
	admit := func(host netip.Addr) bool {
		x := &conn{of: l, host: host}
		if !l.admit(x) {
			return false
		}
		admitted = append(admitted, x)
		return true
	}
	for i, step := range []struct {
		host netip.Addr
		want bool
	}{{a, true}, {a, true}, {a, false}, {b, true}, {c, false}} {
		if got := admit(step.host); got != step.want {
			t.Errorf("step %d: got %t", i, got)
		}
	}
	l.release(admitted[0])
	l.release(admitted[0]) // does nothing
	if !admit(c) {
		t.Error("there is room again")
	}
	if admit(a) {
		t.Error("there is room for one more connection only")
	}
	for _, x := range admitted {
		l.release(x)
	}
	if len(l.open) != 0 || len(l.hosts) != 0 {
		t.Errorf("%d connections of %v are left", len(l.open), l.hosts)
	}
}

func TestLimitsLeaveRoomForOthers(t *testing.T) {
	if limits.SideConnections < 4*limits.SideHostConnections {
		t.Error("a few hosts can have all connections")
	}
}

func TestHostOfAddr(t *testing.T) {
	for address, want := range map[string]string{
		"10.0.0.1:99": "10.0.0.1", "[::ffff:10.0.0.1]:99": "10.0.0.1", "[fe80::1%lo]:99": "fe80::1",
	} {
		got := hostOfAddr(net.TCPAddrFromAddrPort(netip.MustParseAddrPort(address)))
		if got.String() != want {
			t.Errorf("%s: got %s, want %s", address, got, want)
		}
	}
	if hostOfAddr(&net.UnixAddr{}).IsValid() {
		t.Error("a socket has a host")
	}
}
