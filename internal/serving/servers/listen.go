// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package servers

import (
	"context"
	"errors"
	"fmt"
	"net"
	"syscall"
)

// listeners are the listeners of a Server. Those that are not configured are nil.
type listeners struct{ http, grpc, diagnostics, health net.Listener }

// listen opens all addresses, or none.
func (s *Server) listen(ctx context.Context) (listeners, error) {
	var opened listeners
	for _, l := range []struct {
		flag, address string
		optional      bool
		listener      *net.Listener
	}{
		{"--http-address", s.config.HTTPAddress, true, &opened.http},
		{"--grpc-address", s.config.GRPCAddress, true, &opened.grpc},
		{"--diagnostics-address", s.config.DiagnosticsAddress, false, &opened.diagnostics},
		{"--health-addr", s.config.HealthAddress, true, &opened.health},
	} {
		if l.optional && l.address == "" {
			continue
		}
		listener, err := new(net.ListenConfig).Listen(ctx, "tcp", l.address)
		if err != nil {
			for _, other := range []net.Listener{opened.http, opened.grpc, opened.diagnostics, opened.health} {
				if other != nil {
					_ = other.Close()
				}
			}
			if errors.Is(err, syscall.EADDRINUSE) {
				return listeners{}, fmt.Errorf(
					"listen on %s: the port is in use: stop the program that uses it, or choose another port with %s",
					l.address, l.flag)
			}
			return listeners{}, fmt.Errorf("listen on %s (%s): %w", l.address, l.flag, err)
		}
		*l.listener = listener
	}
	return opened, nil
}

// addressOf returns the address of l, or nil if l is nil.
func addressOf(l net.Listener) net.Addr {
	if l == nil {
		return nil
	}
	return l.Addr()
}
