// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"errors"

	"github.com/hookgate/hookgate/internal/network/connect"
	"github.com/hookgate/hookgate/internal/network/endpoint"
)

// Options names the user's settings in hints.
type Options struct {
	URL         string // the prefix of a URL: "--server "
	CA          string // "--ca FILE"
	Certificate string // "--cert FILE and --key FILE"
}

// Hint returns advice about a failure, or "".
func (o *Options) Hint(e *endpoint.Endpoint, f *connect.Failure) string {
	switch f.Reason {
	case connect.Refused:
		return "Does it run, and is the port right?"
	case connect.NoSocket:
		return "Does it run, and is the path right?"
	case connect.NoPermission:
		return "The permissions of the socket's file decide who may connect."
	case connect.UnknownAuthority:
		return "Give the CA that signed it: " + o.CA + "."
	case connect.BadCertificate:
		return innermost(f.Cause).Error()
	case connect.CertificateRequired:
		return "Show one: " + o.Certificate + "."
	case connect.HandshakeRefused:
		return "Does it ask for a certificate? Show one: " + o.Certificate + "."
	case connect.NoTLS:
		return "For gRPC without TLS, use " + o.URL + "grpc://" + e.Authority +
			". Or is the port for metrics or health?"
	case connect.NoPlaintext:
		return "With TLS, use " + o.URL + "grpcs://" + e.Authority + "."
	case connect.NoHTTP2, connect.NotGRPC:
		if e.HasTLS() {
			return "Does it speak JSON over HTTPS? Then use " + o.URL + "https://" + e.Authority + "."
		}
		return "Does it speak JSON over HTTP?"
	}
	return ""
}

// innermost returns the innermost cause, without the context of its wrappers.
func innermost(err error) error {
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return err
		}
		err = inner
	}
}
