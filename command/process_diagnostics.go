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
	"net/http/pprof"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"

	"github.com/hookgate/hookgate/infrastructure"
	"github.com/hookgate/hookgate/infrastructure/overview"
	"github.com/hookgate/hookgate/internal/base/status"
	"github.com/hookgate/hookgate/internal/calls/recording"
	"github.com/hookgate/hookgate/internal/cli/cmdline"
	"github.com/hookgate/hookgate/internal/network/certs"
	"github.com/hookgate/hookgate/internal/seeing/console"
	"github.com/hookgate/hookgate/internal/seeing/observe"
	"github.com/hookgate/hookgate/internal/serving/servers"
)

// diagnosticsOptions are the flags about health, metrics and profiles. Cluster API's managers have them, too.
type diagnosticsOptions struct {
	address  string
	insecure bool
	health   string
	profiler string
	ui       bool
	uiLink   string
}

func (o *diagnosticsOptions) addFlags(f *pflag.FlagSet) {
	f.StringVar(&o.address, "diagnostics-address", "127.0.0.1:8443",
		"address for /healthz, /readyz and /metrics: plain HTTP on loopback; HTTPS on any other address, for "+
			"clients with a certificate signed by ca.crt in --cert-dir, or with a token whose user may get "+
			"/metrics in the cluster")
	f.BoolVar(&o.insecure, "insecure-diagnostics", false,
		"serve the diagnostics in plain HTTP to everyone, even if --diagnostics-address is not on loopback")
	f.StringVar(&o.health, "health-addr", "",
		"address for /healthz and /readyz in plain HTTP, for probes that have no client certificate, in "+
			"addition to --diagnostics-address; without this flag, only --diagnostics-address serves them")
	f.StringVar(&o.profiler, "profiler-address", "",
		"address for Go's profiler, /debug/pprof, in plain HTTP, for example 127.0.0.1:6060; without this "+
			"flag, the profiler is off")
}

// addPageFlags adds the flags of a process whose diagnostics have the page about the extensions.
func (o *diagnosticsOptions) addPageFlags(f *pflag.FlagSet) {
	f.BoolVar(&o.ui, "ui", true,
		"serve a page about the extensions to clients that may read the metrics, at the path / of "+
			"--diagnostics-address")
	f.StringVar(&o.uiLink, "ui-dashboard", "",
		"URL of a dashboard of the metrics, for example in Grafana; the page of --ui links to it")
}

// diagnosticsHandlers is what the address of diagnostics serves. page is nil without --ui.
type diagnosticsHandlers struct {
	metrics, status, recording, page http.Handler
}

// diagnosticsHandlers returns what the address of diagnostics serves. callers holds the address for callers, once it is
// known.
func (o *serveOptions) diagnosticsHandlers(
	metrics prometheus.Gatherer, r *observe.Reporter, calls *recording.Recorder, callers *atomic.Pointer[net.Addr],
	in *inputs,
) (h diagnosticsHandlers, err error) {
	if h.metrics, err = in.guard(observe.Scrapes(metrics)); err != nil {
		return h, err
	}
	h.status, h.page, err = o.diagnostics.statusHandlers(r, o.hooksPage(callers), in.cluster.rest, in.guard)
	if err != nil {
		return h, err
	}
	h.recording, err = o.diagnostics.recordings(calls, in.guard)
	return h, err
}

// statusHandlers returns what serves the status to programs and to people; page is nil without --ui. hooks returns the
// address that has the page of the hooks, and nil if there is none. cluster is nil without one.
func (o *diagnosticsOptions) statusHandlers(
	r *observe.Reporter, hooks func() net.Addr, cluster *rest.Config, guard func(http.Handler) (http.Handler, error),
) (programs, page http.Handler, err error) {
	if u, err := url.Parse(o.uiLink); o.uiLink != "" &&
		(err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https") {
		return nil, nil, cmdline.Usagef("--ui-dashboard %q: want a URL with http or https, such as "+
			"https://grafana.example.com/d/hookgate", o.uiLink)
	}
	if programs, err = guard(r.InTurn()); err != nil || !o.ui {
		return programs, nil, err
	}
	var objects console.Infrastructure
	if cluster != nil {
		reader, err := infrastructure.NewReader(cluster)
		if err != nil {
			return nil, nil, err
		}
		objects = func(ctx context.Context) (*status.Infrastructure, error) {
			return overview.Summarize(ctx, reader)
		}
	}
	pages := console.New(r, hooks, objects)
	pages.Dashboard = o.uiLink
	page, err = guard(pages)
	return programs, page, err
}

// serving returns the TLS of the diagnostics, nil for plain HTTP, and a function that puts the metrics behind
// authentication. cluster says how to reach the API server; it is nil without a cluster.
func (o *diagnosticsOptions) serving(certificates *certs.Server, cluster *rest.Config, logger *slog.Logger) (
	*tls.Config, func(http.Handler) (http.Handler, error), error,
) {
	open := func(h http.Handler) (http.Handler, error) { return h, nil }
	if _, _, err := net.SplitHostPort(o.address); err != nil {
		return nil, nil, cmdline.Usagef("--diagnostics-address: %w", err)
	}
	switch {
	case o.insecure, cmdline.IsLoopback(o.address):
		return nil, open, nil
	case certificates.AsksForCertificates() && cluster == nil:
		return certificates.TLS(), open, nil
	case cluster == nil:
		return nil, nil, cmdline.Usagef("--diagnostics-address %s is not on loopback, so clients must show a "+
			"certificate, but --cert-dir has no ca.crt to check certificates with; put one there, or use "+
			"--insecure-diagnostics", o.address)
	}
	tokens, err := withTokens(cluster, logger)
	if err != nil {
		return nil, nil, err
	}
	return certificates.TLSOrToken(), func(h http.Handler) (http.Handler, error) {
		withToken, err := tokens(h)
		if err != nil {
			return nil, err
		}
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.TLS != nil && certificates.Trusts(r.TLS) {
				h.ServeHTTP(w, r)
				return
			}
			withToken.ServeHTTP(w, r)
		}), nil
	}, nil
}

// withTokens returns a function that lets only callers with a token that the cluster allows to get the path reach a
// handler.
func withTokens(cluster *rest.Config, logger *slog.Logger) (func(http.Handler) (http.Handler, error), error) {
	client, err := rest.HTTPClientFor(cluster)
	if err != nil {
		return nil, fmt.Errorf("diagnostics: %w", err)
	}
	filter, err := filters.WithAuthenticationAndAuthorization(cluster, client)
	if err != nil {
		return nil, fmt.Errorf("diagnostics: %w", err)
	}
	log := logr.FromSlogHandler(logger.Handler())
	return func(h http.Handler) (http.Handler, error) { return filter(log, h) }, nil
}

// profilerServer serves Go's profiler.
type profilerServer struct{ address string }

// Run serves until ctx is done.
func (p profilerServer) Run(ctx context.Context) error {
	mux := http.NewServeMux()
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", p.address)
	if err != nil {
		return fmt.Errorf("listen on %s (--profiler-address): %w", p.address, err)
	}
	server := &http.Server{
		Handler: servers.LocalHosts(servers.SameSite(mux), p.address, listener.Addr()), ReadHeaderTimeout: 10 * time.Second,
	}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve profiler: %w", err)
	}
	return nil
}
