// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"log/slog"
	"net"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/infrastructure"
	"github.com/hookgate/hookgate/internal/cli/cmdline"
	"github.com/hookgate/hookgate/internal/cli/target"
	"github.com/hookgate/hookgate/internal/network/endpoint"
)

// infrastructureOptions are the flags of hookgate infrastructure. Those that Cluster API's managers have, too, have the
// same names.
type infrastructureOptions struct {
	target.ClientOptions
	kubeconfig     string
	namespace      string
	watchFilter    string
	qps            float32
	burst          int
	syncPeriod     time.Duration
	classes        int
	clusters       int
	machines       int
	pools          int
	calls          int
	callsPerClass  int
	logFormat      string
	logLevel       string
	leaderElection leaderElectionOptions
	diagnostics    diagnosticsOptions
	tls            tlsOptions
	webhooks       webhookOptions
}

func newInfrastructureCommand(hooks *catalog.Catalog) *cobra.Command {
	var o infrastructureOptions
	cmd := &cobra.Command{
		Use:   "infrastructure --gateway grpcs://HOST:PORT",
		Short: "Run the controllers of an infrastructure provider whose backend is an extension",
		Long: "Run the controllers of InfrastructureClass, HookgateClusterIdentity, HookgateCluster,\n" +
			"HookgateMachine and HookgateMachinePool: they keep the contracts of a Cluster API infrastructure\n" +
			"provider, and ask the extension of a class, through a gateway, to make the machines. They run until\n" +
			"SIGTERM or Ctrl-C.\n\n" +
			"The log goes to standard error.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return o.run(cmd.Context(), hooks, cmd.ErrOrStderr())
		},
	}
	f := cmd.Flags()
	o.ServerFlag = "--gateway"
	f.StringVar(&o.Server, "gateway", "",
		"gateway to call: grpcs://HOST:PORT, grpc://HOST:PORT on loopback for gRPC without TLS, or unix:///PATH")
	o.AddCredentialFlags(f)
	o.addControllerFlags(f)
	o.leaderElection.addFlags(f, "let only one of several replicas work; needed with more than one")
	o.diagnostics.addFlags(f)
	f.Lookup("diagnostics-address").Usage = "address for /metrics: plain HTTP on loopback; anywhere else HTTPS, for " +
		"callers with a token that the cluster allows to get /metrics"
	f.Lookup("health-addr").Usage = "address for /healthz and /readyz in plain HTTP; empty serves none"
	o.tls.addFlags(f)
	o.webhooks.addFlagsFor(f, "port where the API server asks for the validation of the kinds; 0 for none")
	f.StringVar(&o.logFormat, "log-format", "text", "format of the log: text or json")
	f.StringVar(&o.logLevel, "log-level", "info", "least level to log: debug, info, warn or error")
	return cmd
}

func (o *infrastructureOptions) addControllerFlags(f *pflag.FlagSet) {
	f.StringVar(&o.kubeconfig, "kubeconfig", "", "kubeconfig of the management cluster; not needed in a Pod")
	f.StringVar(&o.namespace, "namespace", "", "the only namespace whose objects are watched; all by default")
	f.StringVar(&o.watchFilter, "watch-filter", "",
		"watch only objects, classes and identities among them, whose label cluster.x-k8s.io/watch-filter has this value")
	f.Float32Var(&o.qps, "kube-api-qps", 100, "how many requests per second to the API server")
	f.IntVar(&o.burst, "kube-api-burst", 200, "how many requests to the API server in a burst")
	f.DurationVar(&o.syncPeriod, "sync-period", 10*time.Minute, "how often every object is looked at, at least")
	f.IntVar(&o.classes, "infrastructureclass-concurrency", infrastructure.DefaultClassConcurrency,
		"how many InfrastructureClasses are reconciled at the same time")
	f.IntVar(&o.clusters, "hookgatecluster-concurrency", infrastructure.DefaultClusterConcurrency,
		"how many HookgateClusters are reconciled at the same time")
	f.IntVar(&o.machines, "hookgatemachine-concurrency", infrastructure.DefaultMachineConcurrency,
		"how many HookgateMachines are reconciled at the same time")
	f.IntVar(&o.pools, "hookgatemachinepool-concurrency", infrastructure.DefaultPoolConcurrency,
		"how many HookgateMachinePools are reconciled at the same time")
	f.IntVar(&o.calls, "max-calls", infrastructure.DefaultCalls, "how many calls to the gateway are in flight at the same time")
	f.IntVar(&o.callsPerClass, "max-calls-per-class", infrastructure.DefaultCallsPerClass,
		"how many of them may be for one InfrastructureClass")
}

func (o *infrastructureOptions) check() error {
	if o.Server == "" {
		return cmdline.Usagef("--gateway is required: the gateway that calls the extensions, for example " +
			"grpcs://hookgate.hookgate-system.svc:9090")
	}
	if _, err := o.Parse(endpoint.GRPCS, endpoint.GRPC, endpoint.Unix); err != nil {
		return err
	}
	if o.kubeconfig == "" && !target.InCluster() {
		return cmdline.Usagef("--kubeconfig is required outside a Pod: the kubeconfig of the management cluster")
	}
	for _, n := range []struct {
		flag  string
		value int
	}{
		{"--infrastructureclass-concurrency", o.classes}, {"--hookgatecluster-concurrency", o.clusters},
		{"--hookgatemachine-concurrency", o.machines}, {"--hookgatemachinepool-concurrency", o.pools},
		{"--max-calls", o.calls}, {"--max-calls-per-class", o.callsPerClass}, {"--kube-api-burst", o.burst},
	} {
		if n.value <= 0 {
			return cmdline.Usagef("%s: want more than 0, got %d", n.flag, n.value)
		}
	}
	if o.qps <= 0 {
		return cmdline.Usagef("--kube-api-qps: want more than 0, got %g", o.qps)
	}
	if o.syncPeriod <= 0 {
		return cmdline.Usagef("--sync-period: want more than 0, got %s", o.syncPeriod)
	}
	if _, _, err := net.SplitHostPort(o.diagnostics.address); err != nil {
		return cmdline.Usagef("--diagnostics-address: %w", err)
	}
	return o.webhooks.check(false)
}

// run runs the controllers until ctx is done.
func (o *infrastructureOptions) run(ctx context.Context, hooks *catalog.Catalog, errOut io.Writer) error {
	if err := o.check(); err != nil {
		return err
	}
	logger, err := newLogger(errOut, o.logFormat, o.logLevel)
	if err != nil {
		return err
	}
	logLibraries(logger)
	settings, err := o.tls.settings()
	if err != nil {
		return err
	}
	restConfig, namespace, err := loadKubeconfig(o.kubeconfig)
	if err != nil {
		return err
	}
	restConfig.QPS, restConfig.Burst = o.qps, o.burst
	mgr, err := o.newManager(restConfig, namespace, logger)
	if err != nil {
		return fmt.Errorf("infrastructure: %w", err)
	}
	gateway, err := o.OpenCaller(hooks, logger)
	if err != nil {
		return err
	}
	defer gateway.Close()
	if err := infrastructure.Setup(ctx, mgr, infrastructure.Config{
		Gateway: gateway, Calls: o.calls, CallsPerClass: o.callsPerClass,
		Metrics: infrastructure.NewMetrics(metrics.Registry), Logger: logger, WatchFilter: o.watchFilter, Namespace: namespace,
		ClassConcurrency: o.classes, ClusterConcurrency: o.clusters, MachineConcurrency: o.machines,
		PoolConcurrency: o.pools,
	}); err != nil {
		return err
	}
	background, err := o.diagnosticsServers(ctx, mgr, settings, logger)
	if err != nil {
		return fmt.Errorf("infrastructure: %w", err)
	}
	if o.webhooks.port != 0 {
		webhooks, err := o.webhooks.listenWith(ctx, infrastructure.Webhooks(mgr.GetClient(), logger), settings, logger)
		if err != nil {
			return err
		}
		background = append(background, webhooks)
	}
	return runAll(ctx, managed{mgr}, background...)
}

// managed is a manager as a runner.
type managed struct{ manager.Manager }

// Run runs the manager until ctx is done.
func (m managed) Run(ctx context.Context) error {
	if err := m.Start(ctx); err != nil {
		return fmt.Errorf("infrastructure: %w", err)
	}
	return nil
}

// newManager returns the manager of the controllers.
func (o *infrastructureOptions) newManager(
	config *rest.Config, namespace string, logger *slog.Logger,
) (manager.Manager, error) {
	scheme := runtime.NewScheme()
	if err := infrastructure.AddToScheme(scheme); err != nil {
		return nil, err
	}
	var only map[string]cache.Config
	if o.namespace != "" {
		only = map[string]cache.Config{o.namespace: {}}
	}
	return manager.New(config, manager.Options{
		Scheme: scheme, Logger: logr.FromSlogHandler(quietEnd{logger.Handler()}),
		Cache: cache.Options{
			DefaultNamespaces: only, SyncPeriod: &o.syncPeriod, DefaultTransform: cache.TransformStripManagedFields(),
		},
		Metrics:        metricsserver.Options{BindAddress: "0"}, // diagnosticsServers serves them
		LeaderElection: o.leaderElection.enabled, LeaderElectionNamespace: namespace,
		LeaderElectionID: infrastructureLease(o.namespace, o.watchFilter), LeaderElectionReleaseOnCancel: true,
		LeaseDuration: &o.leaderElection.leaseDuration, RenewDeadline: &o.leaderElection.renewDeadline,
		RetryPeriod: &o.leaderElection.retryPeriod,
	})
}

// infrastructureLease returns the name of the Lease of controllers, which those of other namespaces and filters do not
// compete for.
func infrastructureLease(namespace, watchFilter string) string {
	name := "hookgate-infrastructure"
	if namespace+watchFilter != "" {
		name += fmt.Sprintf("-%.4x", sha256.Sum256([]byte(namespace+"/"+watchFilter)))
	}
	return name
}
