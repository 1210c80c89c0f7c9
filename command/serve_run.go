// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"k8s.io/klog/v2"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/command/internal/grpclogs"
	"github.com/hookgate/hookgate/controllers"
	"github.com/hookgate/hookgate/gateway"
	"github.com/hookgate/hookgate/internal/base/logs"
	"github.com/hookgate/hookgate/internal/base/memory"
	"github.com/hookgate/hookgate/internal/base/status"
	"github.com/hookgate/hookgate/internal/calls/extension"
	"github.com/hookgate/hookgate/internal/cli/cmdline"
	"github.com/hookgate/hookgate/internal/contract/codec"
	"github.com/hookgate/hookgate/internal/contract/convert"
	"github.com/hookgate/hookgate/internal/contract/redact"
	"github.com/hookgate/hookgate/internal/seeing/drift"
	"github.com/hookgate/hookgate/internal/seeing/observe"
	"github.com/hookgate/hookgate/internal/serving/servers"
	"github.com/hookgate/hookgate/internal/serving/shared"
	"github.com/hookgate/hookgate/internal/serving/webhook"
	"github.com/hookgate/hookgate/internal/sources/discovery"
	"github.com/hookgate/hookgate/registry"
)

// run serves until ctx is done: it opens the inputs, wires the gateway from the registry outwards, and runs the server
// with its background tasks.
func (o *serveOptions) run(ctx context.Context, hooks *catalog.Catalog, out, errOut io.Writer) (err error) {
	if err := o.check(); err != nil {
		return err
	}
	removeDev, err := o.openDev()
	if err != nil {
		return err
	}
	defer removeDev()
	lines, logger, err := o.openLog(errOut)
	if err != nil {
		return err
	}
	defer func() { _ = lines.Close() }()
	files := newFollowed(logger)
	in, err := o.open(ctx, hooks, logger)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.stop()) }()

	// Registrations and their observers.
	mandated := codec.New(hooks)
	reg := o.newRegistry(hooks)
	prometheusRegistry := prometheus.NewRegistry()
	prometheusRegistry.MustRegister(collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	metrics := observe.NewMetrics(prometheusRegistry, reg, hooks, cmdline.CurrentBuild().Version)
	losses, references := convert.NewLosses(nil), convert.NewReferences()
	observer := observe.NewObserver(metrics, in.tracer, logger, losses)
	calls := o.memory.budget(logger, o.dev.enabled)
	metrics.ObserveMemory(calls)
	endpoints := controllers.NewEndpoints()
	self := o.ownID(in.cluster)
	transports := extension.NewProtocols(extension.Config{
		Catalog: hooks, Codec: mandated, Memory: calls,
		MaxConnectionAge: o.connectionAge, PreferHTTP2: o.preferHTTP2, Allowed: in.allowed, Endpoints: endpoints,
		MaxIdleConnections: idleConnections(calls.Usage().Limit),
		ClientCertificate:  certificateOf(in.clientCertificate), Propagator: gateway.Propagator(), Gateway: self,
	})
	defer transports.Close()
	source, err := o.newSource(in.cluster, hooks, reg, endpoints, discoveries{metrics, observer}, discovery.Shared{
		Discoverer: transports, References: references, Losses: losses, Circuits: observer.Extensions(),
	}, logger)
	if err != nil {
		return err
	}

	// Calls.
	recorder, err := o.recording.open(mandated, reg, metrics, logger)
	if err != nil {
		return err
	}
	changes := drift.New(mandated, changedOf(observer, source), observer.AnswerNotCompared, logger)
	dispatcher := gateway.NewDispatcher(gateway.Config{
		Catalog: hooks, Versions: o.versions, Registry: reg, Namespaces: source, Clusters: clustersOf(source),
		Gate: in.gate, Gateway: self, Want: transports.Want,
		Blocked: blockedOf(source), Audited: auditedOf(source), Lifted: liftedOf(source),
		Parts: shared.Parts{Codec: mandated, Transport: transports.Call, Objects: convert.NewObjects(references),
			Observer: observer, Memory: calls, Recorder: recorder, Drift: changes},
	})
	services := gateway.NewServices(dispatcher)
	front, err := o.newFront(hooks, dispatcher, services)
	if err != nil {
		return err
	}
	files.notices = append(files.notices, func() status.Notice { return observe.Closed(reg.Snapshot()) })
	reporter := &observe.Reporter{
		ID: self, Version: cmdline.CurrentBuild().Version, Started: time.Now(), Catalog: hooks, Registry: reg,
		Observer: observer, Namespaces: source, Notices: files.all, Certificates: transports.Certificates,
	}
	o.report(metrics, reporter, source)
	var callers atomic.Pointer[net.Addr] // the address for them, which has the page of the hooks
	diagnostics, err := o.diagnosticsHandlers(prometheusRegistry, reporter, recorder, &callers, in)
	if err != nil {
		return err
	}
	dev := newDevHints(o, out, hooks, reg)
	server := servers.NewServer(servers.Config{
		HTTPAddress: o.httpAddress, GRPCAddress: o.grpcAddress,
		DiagnosticsAddress: o.diagnostics.address, HealthAddress: o.diagnostics.health,
		TLS: in.frontTLS(), DiagnosticsTLS: in.diagnosticsTLS, Renew: in.certificates.Changed(),
		REST: front, GRPCOptions: gateway.GRPCOptions(),
		Register: func(server grpc.ServiceRegistrar) {
			gateway.RegisterGRPC(server, dispatcher, services)
		},
		Metrics: diagnostics.metrics, Status: diagnostics.status, Recording: diagnostics.recording,
		Console: diagnostics.page, Ready: reg.Ready(), Notices: files.all,
		Unready: o.unready(reg, source),
		Listening: func(http, grpc, diagnostics, health net.Addr) {
			callers.Store(&http)
			printAddresses(out, http, grpc, diagnostics, health)
			dev.listen(http, diagnostics)
		},
		Logger: logger, MaxConnectionAge: o.callerAge, ShutdownDelay: o.shutdownDelay, ShutdownTimeout: o.shutdownTimeout,
	})

	files.add(in, source, metrics)
	background, err := o.background(ctx, in, files, hooks, reg, source, metrics, logger)
	if err != nil {
		return err
	}
	ofMachines, err := o.machinesControllers(in.cluster, hooks, dispatcher, reg, prometheusRegistry, logger)
	if err != nil {
		return err
	}
	more := []runner{recorder, changes, source, dev, reporter}
	return runAll(ctx, server, slices.Concat(background, ofMachines, more)...)
}

// unready returns why the gateway is not ready. If the API server needs its webhook before it can list what makes it
// ready, and no other gateway has one that is ready, nothing keeps it from being ready: see controllers.Source.Alone.
func (o *serveOptions) unready(reg registry.Snapshots, of source) func() string {
	return func() string {
		if cluster, ok := of.(*controllers.Source); ok && o.webhooks.port != 0 && cluster.Alone() {
			return ""
		}
		return reg.Snapshot().Unready()
	}
}

// hooksPage returns a function that returns the address with the page of the hooks, or nil if there is none yet.
func (o *serveOptions) hooksPage(callers *atomic.Pointer[net.Addr]) func() net.Addr {
	return func() net.Addr {
		if address := callers.Load(); address != nil && o.openapi {
			return *address
		}
		return nil
	}
}

// openLog returns the log, also of libraries, and what writes its lines, which is to be closed.
func (o *serveOptions) openLog(errOut io.Writer) (*logs.Writer, *slog.Logger, error) {
	lines := logs.New(errOut)
	logger, err := newLogger(lines, o.logFormat, o.logLevel)
	if err != nil {
		return nil, nil, errors.Join(err, lines.Close())
	}
	lines.OnDropped(func(n int) {
		logger.Error("lines of the log were dropped: the reader of the log had stopped, or is too slow", "lines", n)
	})
	logLibraries(logger)
	return lines, logger, nil
}

// report lets a Reporter list what a source has, and metrics show both.
func (o *serveOptions) report(metrics *observe.Metrics, reporter *observe.Reporter, source source) {
	listOwn(reporter, source)
	metrics.Report(reporter)
	if leader, ok := source.(interface{ Leads() bool }); ok && !o.cluster.readOnly {
		metrics.Leading(leader.Leads)
	}
}

// listOwn lets a Reporter list the objects of Hookgate's own kinds that a source has, and ask it for Clusters.
func listOwn(reporter *observe.Reporter, source source) {
	if clusters := clustersOf(source); clusters != nil {
		reporter.HasCluster = func(namespace, name string) bool {
			_, known := clusters.ClusterLabels(namespace, name)
			return known
		}
	}
	if s, ok := source.(interface {
		ClusterGone(namespace, name string) bool
	}); ok {
		reporter.ClusterGone = s.ClusterGone
	}
	if s, ok := source.(interface{ Objects(g *status.Gateway) }); ok {
		reporter.Objects = s.Objects
	}
}

// background returns the tasks that run beside the server and the source. It also sets how the process uses memory.
func (o *serveOptions) background(
	ctx context.Context, in *inputs, files *followed, hooks *catalog.Catalog, reg registry.Snapshots, of source,
	metrics *observe.Metrics, logger *slog.Logger,
) ([]runner, error) {
	background := []runner{in.certificates, files, &memory.Releaser{}}
	if in.clientCertificate != nil {
		background = append(background, in.clientCertificate)
	}
	if in.callers != nil {
		background = append(background, in.callers)
	}
	if in.issuer != nil {
		background = append(background, in.issuer)
	}
	memory.SetLimit()
	if o.sidecar == "" { // which stays small
		memory.SetPace(os.LookupEnv)
	}
	if o.webhooks.port != 0 {
		webhooks, err := o.webhooks.listen(ctx, webhook.Config{
			Group: o.cluster.group, Own: in.cluster.own, Logger: logger, Catalog: hooks, Registry: reg,
			HookJobs: o.cluster.hookJobs.allowed(), Rollouts: rolloutsOf(of),
		}, in.tls)
		if err != nil {
			return nil, err
		}
		files.certificate("webhook", webhooks.pair, metrics)
		background = append(background, webhooks)
	}
	if o.diagnostics.profiler != "" {
		background = append(background, profilerServer{o.diagnostics.profiler})
	}
	return background, nil
}

// discoveries records the discoveries of extensions in the metrics, the status, and their circuits.
type discoveries struct {
	*observe.Metrics
	observer *observe.Observer
}

// Discovery implements discovery.Observer.
func (d discoveries) Discovery(a discovery.Attempt) {
	d.Metrics.Discovery(a.ExtensionConfig, a.Outcome, a.Took)
	d.observer.Discovered(a.ExtensionConfig, a.URL, a.Outcome, a.HealthUnchecked, a.Err)
	d.observer.Misspelt(a.ExtensionConfig, a.Misspelt)
	if a.Err == nil {
		d.observer.Extensions().Answered(a.ExtensionConfig)
	}
}

// Server implements discovery.ServerObserver.
func (d discoveries) Server(extensionConfig, url string, err error) {
	d.observer.Server(extensionConfig, url, err)
}

// Gone implements discovery.ServerObserver.
func (d discoveries) Gone(extensionConfig string) bool { return d.observer.Gone(extensionConfig) }

// Forget implements discovery.Forgetter.
func (d discoveries) Forget(extensionConfig string) {
	d.Metrics.Forget(extensionConfig)
	d.observer.Forget(extensionConfig)
}

// newFront returns the handler of the HTTPS address.
func (o *serveOptions) newFront(
	hooks *catalog.Catalog, dispatcher *gateway.Dispatcher, services *gateway.Services,
) (http.Handler, error) {
	front, err := gateway.NewREST(dispatcher, services)
	if err != nil || !o.openapi {
		return front, err
	}
	return newOpenAPI(front, hooks)
}

// runner works until its context is done.
type runner interface {
	Run(ctx context.Context) error
}

// runAll runs the server until ctx is done and it has drained. The background tasks stop only after that, because calls
// in flight still need them; if any part fails, everything stops.
func runAll(ctx context.Context, server runner, background ...runner) error {
	backgroundCtx, stopBackground := context.WithCancel(context.WithoutCancel(ctx))
	defer stopBackground()
	group, groupCtx := errgroup.WithContext(backgroundCtx)
	for _, r := range background {
		group.Go(func() error { return r.Run(groupCtx) })
	}
	serverCtx, stopServer := context.WithCancel(ctx)
	defer stopServer()
	defer context.AfterFunc(groupCtx, stopServer)()

	err := server.Run(serverCtx)
	stopBackground()
	return errors.Join(err, group.Wait())
}

// printAddresses prints the addresses that listen, on one line; all but diagnostics may be nil.
func printAddresses(w io.Writer, http, grpc, diagnostics, health net.Addr) {
	line := "hookgate serving"
	if http != nil {
		line += " https=" + http.String()
	}
	if grpc != nil {
		line += " grpc=" + grpc.String()
	}
	line += " diagnostics=" + diagnostics.String()
	if health != nil {
		line += " health=" + health.String()
	}
	_, _ = fmt.Fprintln(w, line)
}

func newLogger(w io.Writer, format, level string) (*slog.Logger, error) {
	var l slog.Level
	if err := l.UnmarshalText([]byte(level)); err != nil {
		return nil, cmdline.Usagef("--log-level: want debug, info, warn or error, got %q", level)
	}
	options := &slog.HandlerOptions{Level: l, ReplaceAttr: redact.LogAttr}
	switch format {
	case "text":
		return slog.New(slog.NewTextHandler(w, options)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(w, options)), nil
	default:
		return nil, cmdline.Usagef("--log-format: want text or json, got %q", format)
	}
}

// logLibraries makes the global loggers of libraries write to logger.
func logLibraries(logger *slog.Logger) {
	grpclogs.Install(logger)
	// net/http writes a line here for each frame of HTTP/2 that it does not know.
	log.SetFlags(0)
	log.SetOutput(slog.NewLogLogger(logger.Handler(), slog.LevelDebug).Writer())
	ctrllog.SetLogger(logr.FromSlogHandler(logger.Handler()))
	klog.SetSlogLogger(logger)
}
