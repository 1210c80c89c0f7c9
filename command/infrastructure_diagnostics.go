// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/hookgate/hookgate/internal/cli/cmdline"
	"github.com/hookgate/hookgate/internal/network/certs"
	"github.com/hookgate/hookgate/internal/serving/servers"
)

// diagnosticsServers returns what serves the health, the metrics and the profiler of the controllers. They listen
// already. The manager's own servers would take any number of connections.
func (o *infrastructureOptions) diagnosticsServers(
	ctx context.Context, mgr manager.Manager, settings certs.Settings, logger *slog.Logger,
) ([]runner, error) {
	var running []runner
	listen := func(flag string, c servers.SideConfig) error {
		c.Logger = logger
		server := servers.NewSide(c)
		if err := server.Listen(ctx); err != nil {
			return fmt.Errorf("listen on %s (%s): %w", c.Address, flag, err)
		}
		running = append(running, server)
		return nil
	}
	if o.diagnostics.health != "" {
		if err := listen("--health-addr", servers.SideConfig{
			Name: "health", Address: o.diagnostics.health, Handler: healthOf(mgr),
		}); err != nil {
			return nil, err
		}
	}
	handler, secured, err := o.metrics(mgr, settings, logger)
	if err != nil {
		return nil, err
	}
	if err := listen("--diagnostics-address", servers.SideConfig{
		Name: "diagnostics", Address: o.diagnostics.address, Handler: handler, TLS: secured,
	}); err != nil {
		return nil, err
	}
	if o.diagnostics.profiler != "" {
		running = append(running, profilerServer{o.diagnostics.profiler})
	}
	return running, nil
}

// healthOf returns the handler of /healthz and /readyz: ready is who has read the objects of the cluster.
func healthOf(mgr manager.Manager) http.Handler {
	synced := func(r *http.Request) error {
		ctx, cancel := context.WithTimeout(r.Context(), 100*time.Millisecond)
		defer cancel()
		if !mgr.GetCache().WaitForCacheSync(ctx) {
			return errors.New("the objects of the cluster have not been read yet")
		}
		return nil
	}
	mux := http.NewServeMux()
	for path, checks := range map[string]map[string]healthz.Checker{
		"/healthz": {"ping": healthz.Ping}, "/readyz": {"caches": synced},
	} {
		handler := http.StripPrefix(path, &healthz.Handler{Checks: checks})
		mux.Handle(path, handler)
		mux.Handle(path+"/", handler) // of one of the checks
	}
	return mux
}

// metrics returns the handler of /metrics and its TLS, nil for plain HTTP. Over TLS, callers have a token that the
// cluster allows to get it.
func (o *infrastructureOptions) metrics(
	mgr manager.Manager, settings certs.Settings, logger *slog.Logger,
) (http.Handler, *tls.Config, error) {
	all := promhttp.HandlerFor(metrics.Registry, promhttp.HandlerOpts{ErrorHandling: promhttp.HTTPErrorOnError})
	mux := http.NewServeMux()
	mux.Handle("/metrics", all)
	if o.diagnostics.insecure || cmdline.IsLoopback(o.diagnostics.address) {
		return mux, nil, nil
	}
	tokens, err := withTokens(mgr.GetConfig(), logger)
	if err != nil {
		return nil, nil, err
	}
	guarded, err := tokens(mux)
	if err != nil {
		return nil, nil, fmt.Errorf("diagnostics: %w", err)
	}
	// What reads metrics of Pods checks no certificate; the token is what is checked.
	certificate, key, err := cert.GenerateSelfSignedCertKey("localhost", []net.IP{net.IPv4(127, 0, 0, 1)}, nil)
	if err != nil {
		return nil, nil, fmt.Errorf("diagnostics: %w", err)
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return nil, nil, fmt.Errorf("diagnostics: %w", err)
	}
	return guarded, &tls.Config{
		Certificates: []tls.Certificate{pair},
		MinVersion:   max(tls.VersionTLS12, settings.MinVersion), CipherSuites: settings.CipherSuites,
	}, nil
}
