// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"crypto/tls"
	"fmt"
	"log/slog"

	"github.com/spf13/pflag"

	"github.com/hookgate/hookgate/internal/cli/cmdline"
	"github.com/hookgate/hookgate/internal/network/certs"
)

// clientCertificateOptions are the flags about the certificate that the gateway shows to extensions. Cluster API core
// has them, too.
type clientCertificateOptions struct{ certFile, keyFile string }

func (o *clientCertificateOptions) addFlags(f *pflag.FlagSet) {
	f.StringVar(&o.certFile, "runtime-extension-client-cert-file", "",
		"client certificate for extensions that require one, in PEM; reloaded when it changes")
	f.StringVar(&o.keyFile, "runtime-extension-client-key-file", "",
		"key of --runtime-extension-client-cert-file, in PEM")
}

func (o *clientCertificateOptions) check() error {
	if (o.certFile == "") != (o.keyFile == "") {
		return cmdline.Usagef("--runtime-extension-client-cert-file and --runtime-extension-client-key-file: " +
			"a certificate and its key belong together; give both or none")
	}
	return nil
}

// open reads the certificate; it returns nil if no certificate is configured.
func (o *clientCertificateOptions) open(logger *slog.Logger) (*certs.Pair, error) {
	if o.certFile == "" {
		return nil, nil
	}
	pair, err := certs.Open(o.certFile, o.keyFile, logger)
	if err != nil {
		return nil, fmt.Errorf("read --runtime-extension-client-cert-file: %w", err)
	}
	return pair, nil
}

// certificateOf returns a function that returns the current certificate, or nil if pair is nil.
func certificateOf(pair *certs.Pair) func() (*tls.Certificate, error) {
	if pair == nil {
		return nil
	}
	return pair.Certificate
}
