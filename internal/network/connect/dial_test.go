// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package connect

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"
)

// Addresses are tried in turn, beginning with the family that the resolver listed first.
func TestRotate(t *testing.T) {
	parse := func(list ...string) []netip.Addr {
		var addresses []netip.Addr
		for _, a := range list {
			addresses = append(addresses, netip.MustParseAddr(a))
		}
		return addresses
	}
	// The resolver's own order turns as well; ours must not depend on it.
	answers := [][]netip.Addr{
		parse("10.0.0.1", "fd00::1", "10.0.0.2", "::ffff:10.0.0.3"), parse("10.0.0.2", "10.0.0.3", "10.0.0.1", "fd00::1"),
	}
	for turn, want := range []string{
		"[10.0.0.1 10.0.0.2 10.0.0.3 fd00::1]", "[10.0.0.2 10.0.0.3 10.0.0.1 fd00::1]",
		"[10.0.0.3 10.0.0.1 10.0.0.2 fd00::1]", "[10.0.0.1 10.0.0.2 10.0.0.3 fd00::1]",
	} {
		for _, addresses := range answers {
			if got := fmt.Sprint(rotate(slices.Clone(addresses), uint32(turn))); got != want {
				t.Errorf("turn %d: got %s, want %s", turn, got, want)
			}
		}
	}
}
