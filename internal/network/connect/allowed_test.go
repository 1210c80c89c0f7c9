// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package connect

import (
	"errors"
	"strings"
	"testing"
)

// TestAllowed tests each form of an item with the hosts and addresses that it allows, and those that are close.
func TestAllowed(t *testing.T) {
	for name, tt := range map[string]struct {
		item    string
		allowed []string // host address
		refused []string
	}{
		"Host":     {"acme.example", []string{"acme.example 192.0.2.1", "ACME.example. 10.0.0.1"}, []string{"x.acme.example 192.0.2.1", "acme.example.org 192.0.2.1", "192.0.2.1 192.0.2.1"}},
		"Suffix":   {".svc", []string{"a.b.svc 10.0.0.1"}, []string{"svc 10.0.0.1", "a.b.svc.cluster.local 10.0.0.1", "xsvc 10.0.0.1"}},
		"Network":  {"10.1.0.0/16", []string{"any.example 10.1.255.255", "10.1.0.0 10.1.0.0", "any.example ::ffff:10.1.0.1"}, []string{"any.example 10.2.0.0", "any.example 10.0.255.255"}},
		"Address":  {"192.0.2.1", []string{"192.0.2.1 192.0.2.1", "rebound.example 192.0.2.1"}, []string{"192.0.2.2 192.0.2.2"}},
		"IPv6":     {"2001:db8::/32", []string{"any.example 2001:db8::1"}, []string{"any.example 2001:db9::1"}},
		"Metadata": {"0.0.0.0/0", []string{"any.example 192.0.2.1"}, []string{"any.example 169.254.169.254", "any.example ::ffff:169.254.169.254"}},
		"Named":    {"metadata.example", nil, []string{"metadata.example 169.254.169.254"}},
	} {
		a, err := ParseAllowed([]string{tt.item})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for want, cases := range map[bool][]string{true: tt.allowed, false: tt.refused} {
			for _, c := range cases {
				host, address, _ := strings.Cut(c, " ")
				if strings.Contains(address, ":") {
					address = "[" + address + "]"
				}
				if err := a.Control(host)("tcp", address+":443", nil); (err == nil) != want {
					t.Errorf("%s: %s: %v, want it allowed: %v", name, c, err, want)
				}
			}
		}
	}
	var all *Allowed
	if err := all.Control("any.example")("tcp", "192.0.2.1:443", nil); err != nil {
		t.Errorf("without a list: %v", err)
	}
	if err := all.Control("any.example")("tcp", "169.254.169.254:80", nil); err == nil {
		t.Error("without a list, link-local addresses are allowed")
	}
}

func TestAllowedSockets(t *testing.T) {
	a, err := ParseAllowed([]string{"unix:///run/acme.sock", "unix:///run/extensions/"})
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]bool{
		"/run/acme.sock": true, "/run/extensions/a.sock": true, "/run/docker.sock": false, "/run/acme.sock2": false,
		"/run/extensions/../docker.sock": false, "/run/extensions": false,
	} {
		if err := a.Socket(path); (err == nil) != want || err != nil && !errors.Is(err, ErrNotAllowed) {
			t.Errorf("%s: %v, want it allowed: %v", path, err, want)
		}
	}
	for _, wrong := range []string{"", ".", "https://acme.example", "acme.example:443", "*.example", "10.0.0.0/33", "unix://run/acme.sock", "a b"} {
		if _, err := ParseAllowed([]string{wrong}); err == nil {
			t.Errorf("%q is taken for a host", wrong)
		}
	}
}
