// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
)

// addresses are where this gateway is called. To register the gateway with itself makes every call an endless one.
type addresses []address

type address struct {
	host string
	port string // empty for any
}

func parseAddresses(list []string) (addresses, error) {
	var parsed addresses
	var errs []error
	for _, s := range list {
		u, err := url.Parse("https://" + s)
		if err != nil || u.Host != s || u.Hostname() == "" {
			errs = append(errs, fmt.Errorf("gateway address %q is neither host nor host:port", s))
			continue
		}
		parsed = append(parsed, address{host: canonicalHost(u.Hostname()), port: u.Port()})
	}
	return parsed, errors.Join(errs...)
}

// canonicalHost returns one spelling of the names that a host has.
func canonicalHost(host string) string {
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	if ip := net.ParseIP(host); ip != nil {
		return ip.String()
	}
	return strings.TrimSuffix(host, ".cluster.local")
}

// has tells whether a URL, which is valid, leads to this gateway.
func (a addresses) has(raw string) bool {
	u, err := url.Parse(raw)
	if err != nil {
		return false
	}
	host, port := canonicalHost(u.Hostname()), u.Port()
	if port == "" {
		port = "443"
	}
	for _, own := range a {
		if own.host == host && (own.port == "" || own.port == port) {
			return true
		}
	}
	return false
}
