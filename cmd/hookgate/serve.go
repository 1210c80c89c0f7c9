// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc/grpclog"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/codec"
	"github.com/hookgate/hookgate/controllers/source/sidecar"
	"github.com/hookgate/hookgate/convert"
	"github.com/hookgate/hookgate/extension"
	"github.com/hookgate/hookgate/gateway"
	"github.com/hookgate/hookgate/hookversion"
	"github.com/hookgate/hookgate/openapi"
)

// serveOptions are the flags of hookgate serve.
type serveOptions struct {
	extensionConfigs string
	sidecar          string
	httpAddress      string
	grpcAddress      string
	certDir          string
	resync           time.Duration
	connectionAge    time.Duration
	preferHTTP2      bool
	shutdownDelay    time.Duration
	shutdownTimeout  time.Duration
	openapi          bool
	logFormat        string
	logLevel         string
	diagnostics      diagnosticsOptions
	tls              tlsOptions
	// clientCertificate is what extensions are shown.
	clientCertificate clientCertificateOptions
	webhooks          webhookOptions
	cluster           clusterOptions
	tracing           tracingOptions
}

func newServeCommand() *cobra.Command {
	var o serveOptions
	cmd := &cobra.Command{
		Use:   "serve {--extension-configs DIR | --kubeconfig FILE | --sidecar URL} --cert-dir DIR",
		Short: "Run the gateway",
		Long: "Run the gateway: read ExtensionConfigs, discover the handlers of their extensions, and answer hooks over HTTPS JSON and gRPC\n" +
			"until SIGTERM or Ctrl-C, then finish the calls in flight.\n\n" +
			"Once everything listens, one line on standard output tells the addresses. The log goes to standard error.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.settle(cmd.Flags().Changed)
			return o.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.extensionConfigs, "extension-configs", "", "directory with manifests of ExtensionConfigs (and of Namespaces and CustomResourceDefinitions, for their labels); followed while the gateway runs")
	f.StringVar(&o.sidecar, "sidecar", "", "answer for one extension alone, which is beside the gateway and speaks gRPC: grpc://127.0.0.1:9090, or unix:///run/extension.sock. Its handlers keep their names")
	f.StringVar(&o.httpAddress, "http-address", "127.0.0.1:9443", "address for HTTPS JSON; port 0 chooses one")
	f.StringVar(&o.grpcAddress, "grpc-address", "127.0.0.1:9090", "address for gRPC with TLS; port 0 chooses one, and an empty one serves no gRPC, which is the default with --sidecar")
	f.StringVar(&o.certDir, "cert-dir", "", "directory with tls.crt and tls.key; a ca.crt there makes callers show certificates that it signed. Followed while the gateway runs")
	f.DurationVar(&o.resync, "resync", time.Minute, "how often extensions are asked again which handlers they have; 5s by default with --sidecar")
	f.DurationVar(&o.connectionAge, "connection-max-age", 10*time.Minute, "how long a connection to an extension is used for new calls")
	f.BoolVar(&o.preferHTTP2, "prefer-http2", false, "call extensions with HTTP/2 where they can; by default only where they cannot do HTTP/1.1, which is faster here")
	f.DurationVar(&o.shutdownDelay, "shutdown-delay", 0, "how long calls are still taken after /readyz has turned, for load balancers to notice")
	f.DurationVar(&o.shutdownTimeout, "shutdown-timeout", 40*time.Second, "how long calls in flight may take when the gateway stops")
	f.BoolVar(&o.openapi, "openapi", true, "serve the OpenAPI document of the hooks on the HTTPS address, at "+openapi.DocumentPath+", and a page to read it and to try hooks on, at "+openapi.Prefix)
	f.StringVar(&o.logFormat, "log-format", "text", "format of the log: text or json")
	f.StringVar(&o.logLevel, "log-level", "info", "least level to log: debug, info, warn or error")
	o.diagnostics.addFlags(f)
	o.tls.addFlags(f)
	o.clientCertificate.addFlags(f)
	o.webhooks.addFlags(f)
	o.cluster.addFlags(f)
	o.tracing.addFlags(f)
	return cmd
}

// settle gives the flags that were not set the defaults that others ask for: a sidecar's extension usually has the port that
// gRPC has here, and speaks it anyway.
func (o *serveOptions) settle(changed func(flag string) bool) {
	if o.sidecar == "" {
		return
	}
	if !changed("grpc-address") {
		o.grpcAddress = ""
	}
	if !changed("resync") {
		o.resync = sidecar.DefaultResync
	}
}

// check finds mistakes in the flags before anything starts.
func (o *serveOptions) check() error {
	if err := o.checkSource(); err != nil {
		return err
	}
	if o.certDir == "" {
		return usagef("--cert-dir is required: a directory with tls.crt and tls.key")
	}
	for _, d := range []struct {
		flag  string
		value time.Duration
	}{
		{"--resync", o.resync}, {"--connection-max-age", o.connectionAge}, {"--shutdown-timeout", o.shutdownTimeout},
	} {
		if d.value <= 0 {
			return usagef("%s: want more than 0, got %s", d.flag, d.value)
		}
	}
	if o.shutdownDelay < 0 {
		return usagef("--shutdown-delay: want 0 or more, got %s", o.shutdownDelay)
	}
	if err := o.webhooks.check(!o.wantsCluster()); err != nil {
		return err
	}
	if err := o.clientCertificate.check(); err != nil {
		return err
	}
	return o.tracing.check()
}

func (o *serveOptions) run(ctx context.Context, out, errOut io.Writer) (err error) {
	if err := o.check(); err != nil {
		return err
	}
	logger, err := newLogger(errOut, o.logFormat, o.logLevel)
	if err != nil {
		return err
	}
	// grpc-go calls it an error that a server has no health service. What it says is for those who look for trouble.
	aside := slog.NewLogLogger(logger.Handler(), slog.LevelDebug).Writer()
	grpclog.SetLoggerV2(grpclog.NewLoggerV2(aside, aside, aside))
	settings, err := o.tls.settings()
	if err != nil {
		return err
	}
	certificates, err := newCertificates(o.certDir, settings, logger)
	if err != nil {
		return err
	}
	shown, err := o.clientCertificate.watch(logger)
	if err != nil {
		return err
	}
	cluster, err := o.connect(logger)
	if err != nil {
		return err
	}
	diagnosticsTLS, guard, err := o.diagnostics.serving(certificates, cluster.rest, logger)
	if err != nil {
		return err
	}
	tracerProvider, stopTracing, err := o.tracing.start(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stopTracing()) }()

	if o.sidecar == "" {
		tuneGC(os.LookupEnv)
	}
	cat := catalog.New()
	mandated := codec.New(cat)
	reg := o.newRegistry()
	prometheusRegistry := prometheus.NewRegistry()
	prometheusRegistry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	metrics := gateway.NewMetrics(prometheusRegistry, reg, cat, currentBuild().Version)
	losses, references := convert.NewLosses(nil), convert.NewReferences()
	objects := convert.NewObjects(references)
	observer := gateway.NewObserver(metrics, tracerProvider, logger, losses)

	endpoints := newEndpoints()
	transports := extension.NewProtocols(extension.Config{
		Catalog: cat, Codec: mandated, MaxBytes: gateway.MaxBodyBytes, MaxConnectionAge: o.connectionAge, PreferHTTP2: o.preferHTTP2,
		Propagator: gateway.Propagator(), ClientCertificate: shown.get(), Endpoints: endpoints,
	})
	defer transports.Close()
	source, err := o.newSource(cluster, cat, reg, transports, endpoints, references, losses, metrics, logger)
	if err != nil {
		return err
	}
	metricsHandler, err := guard(promhttp.HandlerFor(prometheusRegistry, promhttp.HandlerOpts{}))
	if err != nil {
		return err
	}
	services := gateway.NewServices(gateway.NewDispatcher(gateway.Config{
		Catalog: cat, Versions: hookversion.New(cat), Codec: mandated, Registry: reg, Namespaces: source, Transport: transports.Call, Objects: objects, Observer: observer,
	}))
	front, err := o.newFront(services, mandated, observer)
	if err != nil {
		return err
	}
	server := gateway.NewServer(gateway.ServerConfig{
		HTTPAddress: o.httpAddress, GRPCAddress: o.grpcAddress, DiagnosticsAddress: o.diagnostics.address, HealthAddress: o.diagnostics.health,
		TLS: certificates.frontConfig(), DiagnosticsTLS: diagnosticsTLS,
		REST:        front,
		GRPCOptions: gateway.GRPCOptions(services, mandated, observer),
		Register:    services.RegisterGRPC,
		Metrics:     metricsHandler,
		Ready:       reg.Ready(),
		Unready:     func() string { return reg.Snapshot().Unready() },
		Listening: func(http, grpc, diagnostics, health net.Addr) {
			line := "hookgate serving https=" + http.String()
			if grpc != nil {
				line += " grpc=" + grpc.String()
			}
			line += " diagnostics=" + diagnostics.String()
			if health != nil {
				line += " health=" + health.String()
			}
			_, _ = fmt.Fprintln(out, line)
		},
		Logger:          logger,
		ShutdownDelay:   o.shutdownDelay,
		ShutdownTimeout: o.shutdownTimeout,
	})
	feeds := []feed{source, certificates}
	if shown != nil {
		feeds = append(feeds, shown)
	}
	if o.sidecar != "" {
		feeds = append(feeds, thrift{ready: reg.Ready(), logger: logger})
	}
	if o.webhooks.port != 0 {
		webhooks, err := o.webhooks.newServer(ctx, cat, o.cluster.group, cluster.own, settings, logger)
		if err != nil {
			return err
		}
		feeds = append(feeds, webhooks)
	}
	if o.diagnostics.profiler != "" {
		feeds = append(feeds, profilerServer{o.diagnostics.profiler})
	}
	return serve(ctx, server, feeds...)
}

// newFront returns what answers on the HTTPS address.
func (o *serveOptions) newFront(services *gateway.Services, mandated *codec.Codec, observer *gateway.Observer) (http.Handler, error) {
	hooks, err := gateway.NewREST(services, mandated, observer)
	if err != nil || !o.openapi {
		return hooks, err
	}
	return openapi.New(hooks)
}

// feed is what runs as long as the server does.
type feed interface {
	Run(ctx context.Context) error
}

// serve runs the server until ctx is done and it has drained. What feeds it stops only after that, so that calls in flight
// still find what they need; if any part of it fails, everything stops.
func serve(ctx context.Context, server *gateway.Server, feeds ...feed) error {
	feedCtx, stopFeeds := context.WithCancel(context.WithoutCancel(ctx))
	defer stopFeeds()
	group, groupCtx := errgroup.WithContext(feedCtx)
	for _, f := range feeds {
		group.Go(func() error { return f.Run(groupCtx) })
	}
	serverCtx, stopServer := context.WithCancel(ctx)
	defer stopServer()
	defer context.AfterFunc(groupCtx, stopServer)()

	err := server.Run(serverCtx)
	stopFeeds()
	return errors.Join(err, group.Wait())
}

func newLogger(w io.Writer, format, level string) (*slog.Logger, error) {
	var l slog.Level
	if err := l.UnmarshalText([]byte(level)); err != nil {
		return nil, usagef("--log-level: want debug, info, warn or error, got %q", level)
	}
	options := &slog.HandlerOptions{Level: l}
	switch format {
	case "text":
		return slog.New(slog.NewTextHandler(w, options)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(w, options)), nil
	default:
		return nil, usagef("--log-format: want text or json, got %q", format)
	}
}
