// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package connect

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"time"
)

const (
	// dialTimeout bounds the wait for one address: a system tries three times until then. Another attempt may lead to
	// another endpoint of a Service. While there are others to try, it is dialTimeoutOfSeveral.
	dialTimeout          = 4 * time.Second
	dialTimeoutOfSeveral = 3 * time.Second
	// lookupTimeout bounds a lookup: with a search list, the system's resolver would try each name for 10 s.
	lookupTimeout = 10 * time.Second
	keepAlive     = 15 * time.Second
)

// ErrNoAddress reports a host name that resolves to no address.
var ErrNoAddress = errors.New("host name has no address")

// Lookup returns the addresses of a host name.
type Lookup func(ctx context.Context, host string) ([]netip.Addr, error)

// Unresolved returns the error of a caller whose time is over while host is still being looked up.
func Unresolved(host string) error {
	return &net.DNSError{Err: "no answer yet", Name: host, IsTimeout: true}
}

// ForbiddenError is an address at which no extension may be.
type ForbiddenError struct {
	Address netip.Addr
	Reason  string
}

func (e *ForbiddenError) Error() string { return fmt.Sprintf("address %s is %s", e.Address, e.Reason) }

// Dial connects to addr, host:port, unless its address is forbidden, or not allowed. If the host has several addresses,
// turn selects the one to try first, and the others follow, those that have failed lately at the end. The address that
// is checked is the one that the connection is made to.
func Dial(
	ctx context.Context, lookup Lookup, allowed *Allowed, failing *Failing, addr string, turn uint32,
) (net.Conn, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	addresses, err := lookup.Resolve(ctx, host)
	if err != nil {
		return nil, err
	}
	var errs []error
	for i, a := range failing.last(rotate(addresses, turn)) {
		d := net.Dialer{Timeout: dialTimeout, KeepAlive: keepAlive, Control: allowed.Control(host)}
		if i < len(addresses)-1 {
			d.Timeout = dialTimeoutOfSeveral
		}
		c, err := d.DialContext(ctx, "tcp", net.JoinHostPort(a.String(), port))
		if ctx.Err() == nil {
			failing.record(a, err != nil)
		}
		if err == nil {
			return c, nil
		}
		errs = append(errs, err)
		if ctx.Err() != nil {
			break
		}
	}
	return nil, errors.Join(errs...)
}

// Resolve returns the addresses of a host, at least one. The host may be an address itself.
func (l Lookup) Resolve(ctx context.Context, host string) ([]netip.Addr, error) {
	if a, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{a}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	addresses, err := l(ctx, host)
	if err != nil {
		return nil, err
	}
	if len(addresses) == 0 {
		return nil, ErrNoAddress
	}
	return addresses, nil
}

// rotate returns the addresses in the order in which to try them: the family that the resolver put first, starting at
// the address whose turn it is, and then, as a fallback, the other family. The addresses are sorted before, because
// resolvers rotate as well, and the two could cancel each other out.
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

// nat64 holds IPv4 addresses in its last four bytes (RFC 6052).
var nat64 = netip.MustParsePrefix("64:ff9b::/96")

// Forbidden returns why no extension may have the address, or nothing if one may. A user who may register extensions
// could otherwise make the gateway call services that only its machine can reach, above all the metadata service of a
// cloud. Sidecars use loopback, and extensions private addresses.
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
