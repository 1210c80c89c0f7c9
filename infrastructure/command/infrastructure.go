// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/hookgate/hookgate/caller"
	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/infrastructure"
	"github.com/hookgate/hookgate/internal/cli/cmdline"
	"github.com/hookgate/hookgate/internal/cli/target"
	"github.com/hookgate/hookgate/internal/network/endpoint"
)

// Options are the flags of hookgate infrastructure about the controllers. Those that Cluster API's managers have, too,
// have the same names.
type Options struct {
	Kubeconfig string

	gateway       target.ClientOptions
	namespace     string
	watchFilter   string
	qps           float32
	burst         int
	syncPeriod    time.Duration
	classes       int
	clusters      int
	machines      int
	pools         int
	calls         int
	callsPerClass int
}

// New returns hookgate infrastructure, with the flags of o. Those that all processes have are added by what runs it.
func New(o *Options, run func(cmd *cobra.Command) error) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "infrastructure --gateway grpcs://HOST:PORT",
		Short: "Run the controllers of an infrastructure provider whose backend is an extension",
		Long: "Run the controllers of InfrastructureClass, HookgateClusterIdentity, HookgateCluster,\n" +
			"HookgateMachine and HookgateMachinePool: they implement the contracts of a Cluster API\n" +
			"infrastructure provider, and call the extension of a class, through a gateway, to make the machines. They run\n" +
			"until SIGTERM or Ctrl-C.\n\n" +
			"The log goes to standard error.",
		Example: "  hookgate infrastructure --gateway grpcs://hookgate.example:9090 --ca ca.crt " +
			"--kubeconfig ~/.kube/config\n" +
			"  hookgate infrastructure --gateway grpc://127.0.0.1:9090 --kubeconfig ~/.kube/config --namespace team-a",
		Args: cmdline.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return run(cmd) },
	}
	f := cmd.Flags()
	o.gateway.ServerFlag = "--gateway"
	f.StringVar(&o.gateway.Server, "gateway", "",
		"gateway to call: grpcs://HOST:PORT, grpc://HOST:PORT on loopback for gRPC without TLS, or unix:///PATH")
	o.gateway.AddCredentialFlags(f)
	o.addFlags(f)
	return cmd
}

func (o *Options) addFlags(f *pflag.FlagSet) {
	f.StringVar(&o.Kubeconfig, "kubeconfig", "", "kubeconfig of the management cluster; default in a Pod: the Pod's own "+
		"credentials; $KUBECONFIG has no effect")
	f.StringVar(&o.namespace, "namespace", "", "the only namespace whose objects are watched; default: all namespaces")
	f.StringVar(&o.watchFilter, "watch-filter", "",
		"watch only objects, including classes and identities, whose label cluster.x-k8s.io/watch-filter has this value")
	f.Float32Var(&o.qps, "kube-api-qps", 100, "maximum number of requests per second to the API server")
	f.IntVar(&o.burst, "kube-api-burst", 200, "maximum number of requests to the API server in a burst")
	f.DurationVar(&o.syncPeriod, "sync-period", 10*time.Minute, "how often every object is reconciled, at least")
	f.IntVar(&o.classes, "infrastructureclass-concurrency", infrastructure.DefaultClassConcurrency,
		"how many InfrastructureClasses are reconciled at the same time")
	f.IntVar(&o.clusters, "hookgatecluster-concurrency", infrastructure.DefaultClusterConcurrency,
		"how many HookgateClusters are reconciled at the same time")
	f.IntVar(&o.machines, "hookgatemachine-concurrency", infrastructure.DefaultMachineConcurrency,
		"how many HookgateMachines are reconciled at the same time")
	f.IntVar(&o.pools, "hookgatemachinepool-concurrency", infrastructure.DefaultPoolConcurrency,
		"how many HookgateMachinePools are reconciled at the same time")
	f.IntVar(&o.calls, "max-calls", infrastructure.DefaultCalls,
		"how many calls to the gateway are in flight at the same time")
	f.IntVar(&o.callsPerClass, "max-calls-per-class", infrastructure.DefaultCallsPerClass,
		"how many of these calls may be for one InfrastructureClass")
}

// Check returns an error of usage unless the flags are right.
func (o *Options) Check() error {
	if o.gateway.Server == "" {
		return cmdline.Usagef("--gateway is required: give the gateway that calls the extensions, for example " +
			"grpcs://hookgate.hookgate-system.svc:9090")
	}
	if _, err := o.gateway.Parse(endpoint.GRPCS, endpoint.GRPC, endpoint.Unix); err != nil {
		return err
	}
	if o.Kubeconfig == "" && !target.InCluster() {
		return cmdline.Usagef("--kubeconfig is required outside a Pod: give the kubeconfig of the management cluster")
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
	return nil
}

// NewManager returns the manager of the controllers, with the log and the leader election of the options.
func (o *Options) NewManager(config *rest.Config, options manager.Options) (manager.Manager, error) {
	scheme := runtime.NewScheme()
	if err := infrastructure.AddToScheme(scheme); err != nil {
		return nil, err
	}
	var only map[string]cache.Config
	if o.namespace != "" {
		only = map[string]cache.Config{o.namespace: {}}
	}
	config.QPS, config.Burst = o.qps, o.burst
	options.Scheme, options.Cache = scheme, cache.Options{
		DefaultNamespaces: only, SyncPeriod: &o.syncPeriod, DefaultTransform: cache.TransformStripManagedFields(),
	}
	options.Metrics = metricsserver.Options{BindAddress: "0"} // another server has them
	options.LeaderElectionID, options.LeaderElectionReleaseOnCancel = lease(o.namespace, o.watchFilter), true
	return manager.New(config, options)
}

// SetUp adds the controllers to a manager, and returns their client, which is to be closed. own is their namespace.
func (o *Options) SetUp(
	ctx context.Context, mgr manager.Manager, hooks *catalog.Catalog, own string, logger *slog.Logger,
) (*caller.Client, error) {
	gateway, err := o.gateway.OpenCaller(hooks, logger)
	if err != nil {
		return nil, err
	}
	if err := infrastructure.Setup(ctx, mgr, infrastructure.Config{
		Gateway: gateway, Calls: o.calls, CallsPerClass: o.callsPerClass,
		Metrics: infrastructure.NewMetrics(metrics.Registry), Logger: logger, WatchFilter: o.watchFilter, Namespace: own,
		ClassConcurrency: o.classes, ClusterConcurrency: o.clusters, MachineConcurrency: o.machines,
		PoolConcurrency: o.pools,
	}); err != nil {
		gateway.Close()
		return nil, err
	}
	return gateway, nil
}

// lease returns the name of the Lease of controllers, which those of other namespaces and filters do not
// compete for.
func lease(namespace, watchFilter string) string {
	name := "hookgate-infrastructure"
	if namespace+watchFilter != "" {
		name += fmt.Sprintf("-%.4x", sha256.Sum256([]byte(namespace+"/"+watchFilter)))
	}
	return name
}
