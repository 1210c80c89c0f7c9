// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package extensionconfig

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
)

// Addresses are the addresses of this gateway, which must not be registered with itself: a call would never end. They
// are immutable.
type Addresses []address

type address struct {
	host string
	port string // empty for any
}

// ParseAddresses reads addresses of the form host or host:port.
func ParseAddresses(list []string) (Addresses, error) {
	var parsed Addresses
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

// canonicalHost returns the canonical spelling of a host.
func canonicalHost(host string) string {
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	if ip := net.ParseIP(host); ip != nil {
		return ip.String()
	}
	return strings.TrimSuffix(host, ".cluster.local")
}

// Services returns the hosts that are Services of a cluster: name.namespace.svc.
func (a Addresses) Services() []string {
	var hosts []string
	for _, own := range a {
		if strings.HasSuffix(own.host, ".svc") {
			hosts = append(hosts, own.host)
		}
	}
	return hosts
}

// Check returns an error if a valid URL leads to this gateway.
func (a Addresses) Check(raw string) error {
	if a.has(raw) {
		return fmt.Errorf("%s is this gateway, which would call itself endlessly; give the address of the extension "+
			"instead", raw)
	}
	return nil
}

func (a Addresses) has(raw string) bool {
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
