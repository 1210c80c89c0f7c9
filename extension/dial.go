// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"syscall"
	"time"
)

const (
	// dialTimeout bounds the wait for one address. While there are others to try, it is dialTimeoutOfSeveral.
	dialTimeout          = 10 * time.Second
	dialTimeoutOfSeveral = 3 * time.Second
	keepAlive            = 15 * time.Second
)

// errNoAddress is what a resolver reports that knows the name but no address.
var errNoAddress = errors.New("host name has no address")

// forbiddenError is an address that an extension must not have.
type forbiddenError struct {
	address netip.Addr
	reason  string
}

func (e *forbiddenError) Error() string { return fmt.Sprintf("address %s is %s", e.address, e.reason) }

// dial connects to addr, host:port. Where the host has several addresses, turn says which one is tried first, and the
// others follow. The address that a connection is really made to is the one that is checked.
func dial(ctx context.Context, lookup func(context.Context, string) ([]netip.Addr, error), addr string, turn uint32) (*connection, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	addresses, err := resolve(ctx, lookup, host)
	if err != nil {
		return nil, err
	}
	var errs []error
	for i, a := range rotate(addresses, turn) {
		d := net.Dialer{Timeout: dialTimeout, KeepAlive: keepAlive, Control: control}
		if i < len(addresses)-1 {
			d.Timeout = dialTimeoutOfSeveral
		}
		c, err := d.DialContext(ctx, "tcp", net.JoinHostPort(a.String(), port))
		if err == nil {
			return &connection{Conn: c}, nil
		}
		errs = append(errs, err)
		if ctx.Err() != nil {
			break
		}
	}
	return nil, errors.Join(errs...)
}

func resolve(ctx context.Context, lookup func(context.Context, string) ([]netip.Addr, error), host string) ([]netip.Addr, error) {
	if a, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{a}, nil
	}
	addresses, err := lookup(ctx, host)
	if err != nil {
		return nil, err
	}
	if len(addresses) == 0 {
		return nil, errNoAddress
	}
	return addresses, nil
}

// rotate returns the addresses in the order to try them. Those of the family that the resolver has put first come first,
// starting at the one whose turn it is; they are sorted before, because resolvers rotate as well, and the two
// could cancel each other out. The other family is there for when all of these fail.
func rotate(addresses []netip.Addr, turn uint32) []netip.Addr {
	var first, second []netip.Addr
	for _, a := range addresses {
		a = a.Unmap()
		if a.Is4() == addresses[0].Unmap().Is4() {
			first = append(first, a)
		} else {
			second = append(second, a)
		}
	}
	slices.SortFunc(first, netip.Addr.Compare)
	start := int(turn % uint32(len(first)))
	return slices.Concat(first[start:], first[:start], second)
}

// control is net.Dialer.Control: it sees the address just before the connection is made.
func control(_, address string, _ syscall.RawConn) error {
	ap, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	if reason := Forbidden(ap.Addr()); reason != "" {
		return &forbiddenError{address: ap.Addr(), reason: reason}
	}
	return nil
}

// nat64 holds IPv4 addresses in its last four bytes (RFC 6052).
var nat64 = netip.MustParsePrefix("64:ff9b::/96")

// Forbidden tells why an extension must not have the address, or nothing if it may. Whoever may register an extension
// could otherwise make the gateway call what only this machine can reach: above all, the metadata of a cloud. Loopback
// is for sidecars, and private addresses are where extensions are.
func Forbidden(a netip.Addr) string {
	a = a.Unmap().WithZone("")
	if nat64.Contains(a) {
		b := a.As16()
		a = netip.AddrFrom4([4]byte(b[12:]))
	}
	switch {
	case a.IsLinkLocalUnicast():
		return "link-local"
	case a.IsMulticast():
		return "multicast"
	case a.IsUnspecified():
		return "unspecified"
	}
	return ""
}
