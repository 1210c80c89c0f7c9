// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package endpoint reads the URLs at which servers of hooks are called: gateways and extensions. Callers decide which
// schemes they accept, and apply further rules.
package endpoint

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
)

// The schemes. HTTPS and HTTP are for JSON, the others for gRPC.
const (
	HTTPS = "https"
	HTTP  = "http"
	GRPCS = "grpcs"
	GRPC  = "grpc"
	Unix  = "unix"
)

// socketBytes is the length of the longest path of a socket: sun_path of Linux has room for a NUL, too, and that of
// other systems is four bytes shorter.
const socketBytes = 107

// ErrPath reports a URL of gRPC that has a path.
var ErrPath = errors.New("must not have a path: gRPC derives the paths from its services")

// Endpoint is a parsed URL.
type Endpoint struct {
	Scheme  string
	Network string // "tcp" or "unix"
	Address string // host:port, where 443 and 80 are the defaults of HTTPS and HTTP; or the path of a socket
	// Authority is the host and port as the URL has them, and "localhost" for a socket, whose path servers would
	// refuse.
	Authority string
	Host      string // the name or address that a certificate must be for
	Port      string // empty if the URL has none
	Prefix    string // the path before the paths of hooks: empty, or begins with a slash and does not end with one
}

// Parse reads a URL with one of the schemes. Its errors complete a sentence that begins with the URL or with "url".
func Parse(text string, schemes ...string) (*Endpoint, error) {
	u, err := url.Parse(text)
	switch {
	case text == "":
		return nil, errors.New("must not be empty")
	case err != nil && !strings.Contains(text, "://"):
		return nil, fmt.Errorf("must begin with %s://", strings.Join(schemes, "://, "))
	case err != nil && strings.Contains(text, "@"):
		return nil, errors.New("is not a URL: check the host, and leave out the user") // the cause may repeat the password
	case err != nil:
		// The cause repeats the whole text, which may hold a password.
		if parse, ok := errors.AsType[*url.Error](err); ok {
			err = parse.Err
		}
		return nil, fmt.Errorf("is not a URL: %w", err)
	case !slices.Contains(schemes, u.Scheme):
		return nil, fmt.Errorf("must begin with %s://, not with %q", strings.Join(schemes, "://, "), u.Scheme)
	case u.User != nil:
		return nil, errors.New("must not have a user")
	case u.RawQuery != "" || u.ForceQuery:
		return nil, errors.New("must not have a query")
	case u.Fragment != "" || strings.Contains(text, "#"):
		return nil, errors.New("must not have a fragment")
	case u.Scheme == Unix:
		if u.Host != "" || u.Opaque != "" || u.Path == "" || u.Path == "/" {
			return nil, errors.New("must be unix:// and the absolute path of a socket, " +
				"for example unix:///run/extension.sock")
		}
		if len(u.Path) > socketBytes {
			return nil, fmt.Errorf("must have a path of at most %d bytes: a socket cannot have a longer one", socketBytes)
		}
		return &Endpoint{Scheme: Unix, Network: "unix", Address: u.Path, Authority: "localhost", Host: "localhost"}, nil
	case u.Hostname() == "" || u.Opaque != "":
		return nil, errors.New("must have a host")
	case u.Port() != "" && !validPort(u.Port()):
		return nil, fmt.Errorf("port %s is not between 1 and 65535", u.Port())
	}
	e := &Endpoint{
		Scheme: u.Scheme, Network: "tcp", Address: u.Host, Authority: u.Host, Host: u.Hostname(), Port: u.Port(),
		Prefix: strings.TrimSuffix(path.Join("/", u.Path), "/"),
	}
	if e.IsGRPC() && e.Prefix != "" {
		return nil, ErrPath
	}
	if port := map[string]string{HTTPS: "443", HTTP: "80", GRPCS: "443"}[e.Scheme]; e.Port == "" && port != "" {
		e.Address = net.JoinHostPort(e.Host, port)
	}
	return e, nil
}

func validPort(port string) bool {
	n, err := strconv.ParseUint(port, 10, 16)
	return err == nil && n > 0
}

// IsGRPC reports whether the scheme is one of gRPC's own.
func (e *Endpoint) IsGRPC() bool { return e.Scheme == GRPCS || e.Scheme == GRPC || e.Scheme == Unix }

// HasTLS reports whether connections have TLS.
func (e *Endpoint) HasTLS() bool { return e.Scheme == HTTPS || e.Scheme == GRPCS }

// IsLocal reports whether the endpoint is on this machine, by its URL alone: no name but localhost is looked up.
func (e *Endpoint) IsLocal() bool {
	ip, err := netip.ParseAddr(e.Host)
	return err == nil && ip.IsLoopback() || e.Host == "localhost"
}
