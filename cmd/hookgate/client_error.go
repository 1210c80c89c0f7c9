// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"syscall"
)

// callError is an error that a server answered.
type callError struct {
	status  string // "HTTP 502 Bad Gateway" or "gRPC Unavailable"
	kind    string // the gateway's kind of error; empty if the server is no gateway
	message string
	callID  string
	hint    string
}

func (e *callError) Error() string {
	var b strings.Builder
	b.WriteString(e.status)
	if e.kind != "" {
		b.WriteString(", error kind " + e.kind)
	}
	b.WriteString(": " + printable(e.message))
	if e.callID != "" {
		b.WriteString(" (call id " + printable(e.callID) + ")")
	}
	return withHint(b.String(), e.hint)
}

func withHint(text, hint string) string {
	if hint == "" {
		return text
	}
	return text + "\n" + hint
}

// connectionError says why there was no answer at all, and what to do about it.
func connectionError(err error, t target, o *clientOptions) error {
	var (
		netErr    net.Error
		dns       *net.DNSError
		authority x509.UnknownAuthorityError
		hostname  x509.HostnameError
		invalid   x509.CertificateInvalidError
		record    tls.RecordHeaderError
	)
	explain := func(what, hint string) error { return errors.New(withHint("server "+t.text+": "+what, hint)) }
	switch {
	case errors.Is(err, context.Canceled):
		return explain("interrupted", "")
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &netErr) && netErr.Timeout():
		return explain(fmt.Sprintf("no answer within %s", o.timeout), "")
	case errors.As(err, &authority):
		if o.ca == "" {
			return explain("its certificate is not trusted: the system does not know who signed it", "Give the CA that signed it with --ca FILE.")
		}
		return explain("its certificate is not trusted: it is not signed by the CA in "+o.ca, "Give the CA that signed it with --ca FILE.")
	case errors.As(err, &hostname):
		return explain("its certificate is for another name: "+hostname.Error(), "")
	case errors.As(err, &invalid):
		return explain("its certificate is not valid: "+invalid.Error(), "")
	case errors.As(err, &record), errors.Is(err, http.ErrSchemeMismatch):
		hint := "Is it the port for metrics and health?"
		if t.scheme == "grpcs" {
			hint = "gRPC without TLS is --server grpc://" + t.host + "."
		}
		return explain("it does not speak TLS", hint)
	case errors.As(err, &dns):
		return explain(fmt.Sprintf("no address for host %q", dns.Name), "")
	case errors.Is(err, syscall.ECONNREFUSED):
		return explain("not reachable: connection refused", "Does it run? --server says where it is.")
	case o.certificateAsked.Load(): // how the connection then ends depends on timing
		return explain("it asked for a client certificate, and ended the connection without one", "Show one with --cert FILE and --key FILE.")
	case strings.Contains(err.Error(), "remote error: tls:"):
		return explain("it ended the TLS handshake: "+rootCause(err).Error(), "")
	case t.scheme == "grpc":
		return explain("not reachable: "+rootCause(err).Error(), "Does it want TLS? That is --server grpcs://"+t.host+".")
	default:
		return explain("not reachable: "+rootCause(err).Error(), "")
	}
}

// rootCause returns the innermost error: the outer ones say again what connectionError says.
func rootCause(err error) error {
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return err
		}
		err = inner
	}
}
