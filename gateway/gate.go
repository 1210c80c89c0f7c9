// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"net"
	"net/http"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/calls/auth"
)

// gate decides who may call which hooks. It must be safe for concurrent use.
type gate interface {
	// Admit admits a call of h by the caller with these credentials, if it may call h. A nil h is a hook that does not
	// exist, which every caller may ask for that the gate knows. The caller is returned with an error, too, as far as
	// it is known.
	//
	// Errors are of the kinds Unauthenticated, Forbidden, Overloaded, and NotReady: the gate cannot tell at the moment.
	Admit(ctx context.Context, c auth.Credentials, h *catalog.Hook) (auth.Admission, error)
	// Challenge returns the value of WWW-Authenticate for a caller that was not authenticated.
	Challenge() string
}

var _ gate = (*auth.Gate)(nil)

// The results of admission, for metrics.
const (
	resultAdmitted = "admitted"
	resultError    = "error"
)

// admit returns an error unless the gate admits the caller. A nil gate admits everyone.
func (in *call) admit(g gate, c auth.Credentials, h *catalog.Hook) error {
	in.Host = c.Host
	if g == nil {
		return nil
	}
	admission, err := g.Admit(in.ctx, c, h)
	in.admission = admission
	result := resultAdmitted
	if err != nil {
		switch kind := hook.KindOf(err); kind {
		case hook.Unauthenticated, hook.Forbidden, hook.Overloaded:
			result = kind.String()
		default:
			result = resultError
		}
	}
	in.Admitted(admission.Caller, result, err)
	return err
}

// restCredentials returns what a REST caller shows.
func restCredentials(r *http.Request) auth.Credentials {
	return auth.Credentials{TLS: r.TLS, Authorization: r.Header.Values("Authorization"), Host: remoteHost(r.RemoteAddr)}
}

// grpcCredentials returns what a gRPC caller shows.
func grpcCredentials(ctx context.Context, md metadata.MD) auth.Credentials {
	c := auth.Credentials{Authorization: md.Get("authorization")}
	if p, ok := peer.FromContext(ctx); ok {
		if p.Addr != nil {
			c.Host = remoteHost(p.Addr.String())
		}
		if info, ok := p.AuthInfo.(credentials.TLSInfo); ok {
			c.TLS = &info.State
		}
	}
	return c
}

// remoteHost returns the address without its port.
func remoteHost(address string) string {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return address
	}
	return host
}
