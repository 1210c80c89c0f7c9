// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package connect

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"syscall"
)

// Allowed are the hosts that may be called. A nil Allowed allows all. It is immutable.
type Allowed struct {
	hosts    map[string]bool
	suffixes []string
	prefixes []netip.Prefix
	sockets  []string
}

// ErrNotAllowed reports a host that is not allowed.
var ErrNotAllowed = errors.New("host is not among those that may be called")

// ParseAllowed reads a list of host names, suffixes of host names that begin with a dot, addresses, networks, such as
// 10.0.0.0/8, and Unix sockets, such as unix:///run/acme.sock, or unix:///run/acme/ for all in a directory. An empty
// list is nil.
func ParseAllowed(list []string) (*Allowed, error) {
	if len(list) == 0 {
		return nil, nil
	}
	a := &Allowed{hosts: map[string]bool{}}
	for _, item := range list {
		name := canonical(item)
		path, isSocket := strings.CutPrefix(item, "unix://")
		prefix, notPrefix := netip.ParsePrefix(item)
		address, notAddress := netip.ParseAddr(item)
		switch {
		case isSocket && (!strings.HasPrefix(path, "/") || strings.Contains(path, "/../")):
			return nil, fmt.Errorf("socket %q has no absolute path", item)
		case isSocket:
			a.sockets = append(a.sockets, path)
		case notPrefix == nil:
			a.prefixes = append(a.prefixes, prefix.Masked())
		case notAddress == nil:
			address = address.Unmap()
			a.prefixes = append(a.prefixes, netip.PrefixFrom(address, address.BitLen()))
		case strings.Trim(name, ".") == "", strings.ContainsAny(name, "/:*@ "):
			return nil, fmt.Errorf("%q is neither a host, nor a suffix such as .svc, nor a network such as 10.0.0.0/8, "+
				"nor a socket such as unix:///run/acme.sock", item)
		case strings.HasPrefix(name, "."):
			a.suffixes = append(a.suffixes, name)
		default:
			a.hosts[name] = true
		}
	}
	return a, nil
}

func canonical(host string) string { return strings.TrimSuffix(strings.ToLower(host), ".") }

// Host returns ErrNotAllowed unless the host is allowed whatever its address is, or is an allowed address itself.
func (a *Allowed) Host(host string) error {
	if a == nil {
		return nil
	}
	if address, err := netip.ParseAddr(host); err == nil {
		return a.address(address)
	}
	host = canonical(host)
	if a.hosts[host] {
		return nil
	}
	for _, suffix := range a.suffixes {
		if strings.HasSuffix(host, suffix) {
			return nil
		}
	}
	return ErrNotAllowed
}

func (a *Allowed) address(address netip.Addr) error {
	address = address.Unmap().WithZone("")
	for _, prefix := range a.prefixes {
		if prefix.Contains(address) {
			return nil
		}
	}
	return ErrNotAllowed
}

// Socket returns ErrNotAllowed unless the Unix socket is allowed.
func (a *Allowed) Socket(path string) error {
	if a == nil {
		return nil
	}
	for _, socket := range a.sockets {
		if path == socket || strings.HasSuffix(socket, "/") && strings.HasPrefix(path, socket) &&
			!strings.Contains(path, "/../") {
			return nil
		}
	}
	return ErrNotAllowed
}

// Control returns a net.Dialer.Control for connections to a host, which refuses forbidden addresses, and addresses that
// are not allowed unless the host is. It sees the address just before the connection is made.
func (a *Allowed) Control(host string) func(network, address string, c syscall.RawConn) error {
	named := a.Host(host) == nil
	return func(_, address string, _ syscall.RawConn) error {
		ap, err := netip.ParseAddrPort(address)
		if err != nil {
			return err
		}
		if reason := Forbidden(ap.Addr()); reason != "" {
			return &ForbiddenError{Address: ap.Addr(), Reason: reason}
		}
		if named {
			return nil
		}
		return a.address(ap.Addr())
	}
}
