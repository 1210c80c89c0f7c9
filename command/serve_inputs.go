// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net/http"

	"go.opentelemetry.io/otel/trace"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/internal/calls/auth"
	"github.com/hookgate/hookgate/internal/cli/cmdline"
	"github.com/hookgate/hookgate/internal/network/certs"
	"github.com/hookgate/hookgate/internal/network/connect"
	"github.com/hookgate/hookgate/internal/network/selfcert"
)

// inputs are the files and servers that the flags of hookgate serve name, opened.
type inputs struct {
	tls               certs.Settings
	issuer            *selfcert.Issuer // nil if others make the certificates
	certificates      *certs.Server
	clientCertificate *certs.Pair // nil if there is none
	cluster           connection
	allowed           *connect.Allowed
	gate              *auth.Gate
	callers           *auth.CallersFile // nil if there is none
	diagnosticsTLS    *tls.Config
	// guard wraps a handler so that it answers only callers who may see diagnostics.
	guard  func(http.Handler) (http.Handler, error)
	tracer trace.TracerProvider
	// stop sends the spans that are left.
	stop func() error
}

// open opens the inputs, or returns an error that names the flag.
func (o *serveOptions) open(ctx context.Context, hooks *catalog.Catalog, logger *slog.Logger) (*inputs, error) {
	in := &inputs{}
	var err error
	if in.tls, err = o.tls.settings(); err != nil {
		return nil, err
	}
	if in.issuer, err = o.startSelfCertificates(ctx, logger); err != nil {
		return nil, err
	}
	if in.certificates, err = certs.OpenServer(o.certDir, in.tls, logger); err != nil {
		return nil, fmt.Errorf("read --cert-dir: %w", err)
	}
	if in.clientCertificate, err = o.clientCertificate.open(logger); err != nil {
		return nil, err
	}
	if in.cluster, err = o.connect(); err != nil {
		return nil, err
	}
	if in.allowed, err = connect.ParseAllowed(o.allowedHosts); err != nil {
		return nil, cmdline.Usagef("--allowed-extension-hosts: %w", err)
	}
	in.gate, in.callers, err = o.callers.gate(in.certificates, in.cluster.rest, hooks, logger)
	if err != nil {
		return nil, err
	}
	if err := o.checkCallers(in.gate); err != nil {
		return nil, err
	}
	in.diagnosticsTLS, in.guard, err = o.diagnostics.serving(in.certificates, in.cluster.rest, logger)
	if err != nil {
		return nil, err
	}
	in.tracer, in.stop, err = o.tracing.start(ctx)
	return in, err
}

// frontTLS returns the settings of the addresses for calls. The gate decides about callers without a certificate if
// they may send a token instead.
func (in *inputs) frontTLS() *tls.Config {
	if in.gate.Tokens() {
		return in.certificates.TLSOrToken()
	}
	return in.certificates.TLS()
}
