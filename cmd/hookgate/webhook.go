// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/tls"
	"os"
	"path/filepath"

	"github.com/spf13/pflag"

	"github.com/hookgate/hookgate/controllers"
	"github.com/hookgate/hookgate/controllers/webhook"
)

// webhookOptions are the flags about what the API server asks. Cluster API's managers have them, too.
type webhookOptions struct {
	port              int
	dir               string
	certName, keyName string
}

func (o *webhookOptions) addFlags(f *pflag.FlagSet) {
	f.IntVar(&o.port, "webhook-port", 0, "port where the API server asks for defaults, validation and conversion of ExtensionConfigs and ExtensionPolicies; 0 for none")
	f.StringVar(&o.dir, "webhook-cert-dir", "/tmp/k8s-webhook-server/serving-certs/", "directory with the certificate and key of --webhook-port. Followed while the gateway runs")
	f.StringVar(&o.certName, "webhook-cert-name", "tls.crt", "name of the certificate in --webhook-cert-dir")
	f.StringVar(&o.keyName, "webhook-key-name", "tls.key", "name of the key in --webhook-cert-dir")
}

func (o *webhookOptions) check(directory bool) error {
	switch {
	case o.port < 0 || o.port > 65535:
		return usagef("--webhook-port: want 0 to 65535, got %d", o.port)
	case o.port == 0:
		return nil
	case directory:
		return usagef("--webhook-port: no API server asks about ExtensionConfigs in a directory; leave it out")
	}
	for _, name := range []string{o.certName, o.keyName} {
		if _, err := os.Stat(filepath.Join(o.dir, name)); err != nil {
			return usagef("--webhook-cert-dir: %w: the directory needs certificate and key of the webhooks in PEM", err)
		}
	}
	return nil
}

func (o *webhookOptions) newServer(group string, own controllers.Addresses, settings func(*tls.Config)) (*webhook.Server, error) {
	return webhook.New(webhook.Config{
		Group: group, Own: own, Port: o.port, CertDir: o.dir, CertName: o.certName, KeyName: o.keyName, TLS: settings,
	})
}
