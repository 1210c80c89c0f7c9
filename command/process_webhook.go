// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"syscall"

	"github.com/spf13/pflag"
	"golang.org/x/sync/errgroup"

	"github.com/hookgate/hookgate/internal/cli/cmdline"
	"github.com/hookgate/hookgate/internal/network/certs"
	"github.com/hookgate/hookgate/internal/serving/servers"
	"github.com/hookgate/hookgate/internal/serving/webhook"
)

// webhookOptions are the flags about the webhooks that the API server calls. Cluster API's managers have them, too.
type webhookOptions struct {
	port              int
	dir               string
	certName, keyName string
}

func (o *webhookOptions) addFlags(f *pflag.FlagSet) {
	o.addFlagsFor(f, "port of the webhooks for defaults, validation and conversion of ExtensionConfigs, "+
		"ExtensionPolicies, ExtensionRollouts, HandlerChains, HookRules and HookJobs; 0 for none")
}

func (o *webhookOptions) addFlagsFor(f *pflag.FlagSet, port string) {
	f.IntVar(&o.port, "webhook-port", 0, port)
	f.StringVar(&o.dir, "webhook-cert-dir", "/tmp/k8s-webhook-server/serving-certs/",
		"directory with the certificate and key of --webhook-port; reloaded when they change")
	f.StringVar(&o.certName, "webhook-cert-name", "tls.crt", "name of the certificate in --webhook-cert-dir")
	f.StringVar(&o.keyName, "webhook-key-name", "tls.key", "name of the key in --webhook-cert-dir")
}

// check returns an error of usage unless the flags fit the source of registrations, which may be no cluster.
func (o *webhookOptions) check(noCluster bool) error {
	switch {
	case o.port < 0 || o.port > 65535:
		return cmdline.Usagef("--webhook-port: want 0 to 65535, got %d", o.port)
	case o.port == 0:
		return nil
	case noCluster:
		return cmdline.Usagef("--webhook-port: no API server calls webhooks for ExtensionConfigs in a directory; leave " +
			"the flag out")
	}
	return nil
}

// webhooks answer the API server.
type webhooks struct {
	server *servers.Side
	pair   *certs.Pair
}

// listen returns webhooks that listen already, so that mistakes in their flags end the start.
func (o *webhookOptions) listen(ctx context.Context, c webhook.Config, settings certs.Settings) (*webhooks, error) {
	handler, err := webhook.New(c)
	if err != nil {
		return nil, err
	}
	return o.listenWith(ctx, handler, settings, c.Logger)
}

// listenWith returns webhooks with a handler, which listen already. Once ctx is done, callers make new connections for
// each request, and thus to others.
func (o *webhookOptions) listenWith(
	ctx context.Context, handler http.Handler, settings certs.Settings, logger *slog.Logger,
) (*webhooks, error) {
	pair, err := certs.OpenDir(o.dir, o.certName, o.keyName, logger)
	if err != nil {
		return nil, fmt.Errorf("read --webhook-cert-dir: %w", err)
	}
	server := servers.NewSide(servers.SideConfig{
		Name: "webhooks", Address: net.JoinHostPort("", strconv.Itoa(o.port)), TLS: pair.ServerTLS(settings),
		Handler: handler, Logger: logger, Ending: func() bool { return ctx.Err() != nil },
	})
	if err := server.Listen(ctx); err != nil {
		if errors.Is(err, syscall.EADDRINUSE) {
			return nil, fmt.Errorf("listen on port %d: the port is in use: stop the program that uses it, or "+
				"choose another port with --webhook-port", o.port)
		}
		return nil, fmt.Errorf("listen on port %d (--webhook-port): %w", o.port, err)
	}
	return &webhooks{server: server, pair: pair}, nil
}

// Run answers until ctx is done, and follows the certificate.
func (w *webhooks) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return w.pair.Run(ctx) })
	group.Go(func() error { return w.server.Run(ctx) })
	return group.Wait()
}
