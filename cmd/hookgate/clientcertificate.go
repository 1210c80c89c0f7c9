// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"

	"github.com/spf13/pflag"
	"sigs.k8s.io/controller-runtime/pkg/certwatcher"
)

// clientCertificateOptions are the flags about the certificate that extensions are shown. Cluster API core has them, too.
type clientCertificateOptions struct{ certFile, keyFile string }

func (o *clientCertificateOptions) addFlags(f *pflag.FlagSet) {
	f.StringVar(&o.certFile, "runtime-extension-client-cert-file", "", "certificate for extensions that ask their callers for one, in PEM. Followed while the gateway runs")
	f.StringVar(&o.keyFile, "runtime-extension-client-key-file", "", "key of --runtime-extension-client-cert-file, in PEM")
}

func (o *clientCertificateOptions) check() error {
	if (o.certFile == "") != (o.keyFile == "") {
		return usagef("--runtime-extension-client-cert-file and --runtime-extension-client-key-file: a certificate needs its key, and the other way round; give both or none")
	}
	return nil
}

// watch returns what follows the certificate; nil if there is none.
func (o *clientCertificateOptions) watch(logger *slog.Logger) (*clientCertificate, error) {
	if o.certFile == "" {
		return nil, nil
	}
	watcher, err := watchFiles(o.certFile, o.keyFile, logger)
	if err != nil {
		return nil, fmt.Errorf("--runtime-extension-client-cert-file: %w", err)
	}
	return &clientCertificate{watcher}, nil
}

// clientCertificate is the certificate that extensions are shown, as it is at the time.
type clientCertificate struct{ watcher *certwatcher.CertWatcher }

// Run follows the files until ctx is done.
func (c *clientCertificate) Run(ctx context.Context) error { return c.watcher.Start(ctx) }

// get returns what returns the certificate; nil if there is none.
func (c *clientCertificate) get() func() (*tls.Certificate, error) {
	if c == nil {
		return nil
	}
	return func() (*tls.Certificate, error) { return c.watcher.GetCertificate(nil) }
}
