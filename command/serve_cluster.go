// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"net"
	"os"
	"time"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/controllers"
	"github.com/hookgate/hookgate/gateway"
	"github.com/hookgate/hookgate/internal/cli/cmdline"
	"github.com/hookgate/hookgate/internal/cli/target"
	"github.com/hookgate/hookgate/internal/kinds/extensionconfig"
	"github.com/hookgate/hookgate/internal/kinds/rollout"
	"github.com/hookgate/hookgate/internal/network/via"
	"github.com/hookgate/hookgate/internal/seeing/drift"
	"github.com/hookgate/hookgate/internal/seeing/observe"
	"github.com/hookgate/hookgate/internal/sources/directory"
	"github.com/hookgate/hookgate/internal/sources/discovery"
	"github.com/hookgate/hookgate/internal/sources/sidecar"
	"github.com/hookgate/hookgate/registry"
)

// leaseName returns the name of the Lease that the replicas of a gateway compete for. Gateways that watch different
// ExtensionConfigs may share a namespace. A watch filter may be any value of a label; the name of a Lease may not.
func leaseName(group, watchFilter string) string {
	name := "hookgate-leader-election-" + group
	if watchFilter != "" {
		name += fmt.Sprintf("-%.4x", sha256.Sum256([]byte(watchFilter)))
	}
	return name
}

// source fills the registry.
type source interface {
	Run(ctx context.Context) error
	NamespaceLabels(name string) (labels map[string]string, known bool)
}

// clustersOf returns what knows the labels of Clusters, or nil if the source does not.
func clustersOf(s source) gateway.Clusters {
	clusters, _ := s.(gateway.Clusters)
	return clusters
}

// blockedOf returns what writes events about updates in place that are blocked, or nil if the source writes none.
func blockedOf(s source) func(owner corev1.ObjectReference, chain, message string) {
	if cluster, ok := s.(*controllers.Source); ok {
		return cluster.Blocked
	}
	return nil
}

// auditedOf returns what writes events about what rules would have answered, or nil if the source writes none.
func auditedOf(s source) func(rule, namespace, cluster, message string) {
	if cluster, ok := s.(*controllers.Source); ok {
		return cluster.Audited
	}
	return nil
}

// liftedOf returns what writes events about holds that policies have lifted, or nil if the source writes none.
func liftedOf(s source) func(policy, handler, namespace, cluster, message string) {
	if cluster, ok := s.(*controllers.Source); ok {
		return cluster.Lifted
	}
	return nil
}

// rolloutsOf returns what knows which Clusters have moved, or nil if the source does not.
func rolloutsOf(s source) rollout.Moves {
	if cluster, ok := s.(*controllers.Source); ok {
		return cluster.RolloutEngine()
	}
	return nil
}

// changedOf returns what records answers that have changed: in the status, and as events if the source writes some.
func changedOf(o *observe.Observer, s source) func(drift.Change) {
	cluster, ok := s.(*controllers.Source)
	return func(c drift.Change) {
		if o.AnswerChanged(c); ok {
			cluster.Changed(c.Handler.Registration.Name, c.Namespace, c.Cluster, c.Handler.Name+": "+c.Message)
		}
	}
}

// clusterOptions are the flags about ExtensionConfigs in a cluster. Those that Cluster API's managers have, too, have
// the same names and defaults.
type clusterOptions struct {
	kubeconfig       string
	group            string
	readOnly         bool
	namespace        string
	watchFilter      string
	concurrency      int
	qps              float32
	burst            int
	gatewayAddresses []string
	hookJobs         hookJobOptions

	leaderElection leaderElectionOptions
}

// leaderElectionOptions are the flags about the Lease that replicas compete for.
type leaderElectionOptions struct {
	enabled       bool
	leaseDuration time.Duration
	renewDeadline time.Duration
	retryPeriod   time.Duration
}

func (o *leaderElectionOptions) addFlags(f *pflag.FlagSet, usage string) {
	f.BoolVar(&o.enabled, "leader-elect", false, usage)
	f.DurationVar(&o.leaseDuration, "leader-elect-lease-duration", 15*time.Second,
		"how long other replicas wait for a silent leader")
	f.DurationVar(&o.renewDeadline, "leader-elect-renew-deadline", 10*time.Second,
		"how long a leader tries to stay the leader before it gives up")
	f.DurationVar(&o.retryPeriod, "leader-elect-retry-period", 2*time.Second,
		"time between attempts to become, or to stay, the leader")
}

func (o *clusterOptions) addFlags(f *pflag.FlagSet) {
	f.StringVar(&o.kubeconfig, "kubeconfig", "",
		"kubeconfig of the cluster with the ExtensionConfigs; default in a Pod: the Pod's own credentials; $KUBECONFIG "+
			"has no effect")
	f.StringVar(&o.group, "extension-config-group", controllers.ClusterAPIGroup,
		"API group of the ExtensionConfigs: "+controllers.ClusterAPIGroup+", or "+controllers.HookgateGroup+
			" for ExtensionConfigs that Cluster API core must not call")
	f.BoolVar(&o.readOnly, "read-only", false,
		"serve the handlers that another program, such as Cluster API core, has discovered, and write nothing to the "+
			"cluster")
	f.StringVar(&o.namespace, "namespace", "",
		"namespace whose Secrets, EndpointSlices and, with --machines, Machines are watched; default: all "+
			"namespaces")
	f.StringVar(&o.watchFilter, "watch-filter", "",
		"watch only ExtensionConfigs, objects of hookgate.dev and Machines whose label cluster.x-k8s.io/watch-filter has "+
			"this value")
	f.IntVar(&o.concurrency, "extensionconfig-concurrency", controllers.DefaultConcurrency,
		"how many ExtensionConfigs are reconciled at the same time")
	f.Float32Var(&o.qps, "kube-api-qps", 100, "maximum number of requests per second to the API server")
	f.IntVar(&o.burst, "kube-api-burst", 200, "maximum number of requests to the API server in a burst")
	f.StringSliceVar(&o.gatewayAddresses, "gateway-address", nil,
		"host or host:port under which this gateway is called, for example hookgate.hookgate-system.svc; "+
			"ExtensionConfigs that point there are refused; may be repeated")
	o.hookJobs.addFlags(f)
	o.leaderElection.addFlags(f,
		"let only one of several replicas discover extensions and write to the cluster; needed with more than "+
			"one replica")
}

func (o *clusterOptions) check() error {
	if o.group != controllers.ClusterAPIGroup && o.group != controllers.HookgateGroup {
		return cmdline.Usagef("--extension-config-group: want %s or %s, got %q",
			controllers.ClusterAPIGroup, controllers.HookgateGroup, o.group)
	}
	if o.concurrency <= 0 {
		return cmdline.Usagef("--extensionconfig-concurrency: want more than 0, got %d", o.concurrency)
	}
	if o.qps <= 0 || o.burst <= 0 {
		return cmdline.Usagef("--kube-api-qps and --kube-api-burst: want more than 0, got %g and %d", o.qps, o.burst)
	}
	if o.readOnly && o.leaderElection.enabled {
		return cmdline.Usagef("--read-only and --leader-elect: a replica that only reads does not compete to write; give " +
			"only one of these flags")
	}
	return o.hookJobs.check(o.readOnly)
}

// connection says how to reach the cluster. Without a cluster, it is the zero value.
type connection struct {
	rest      *rest.Config
	namespace string                    // of the gateway
	own       extensionconfig.Addresses // of the gateway
}

// connect returns the connection to the cluster, if one is configured. It does no I/O beyond reading files.
func (o *serveOptions) connect() (connection, error) {
	if !o.wantsCluster() {
		return connection{}, nil
	}
	restConfig, namespace, err := loadKubeconfig(o.cluster.kubeconfig)
	if err != nil {
		return connection{}, err
	}
	own, err := extensionconfig.ParseAddresses(append(ownAddresses(o.httpAddress), o.cluster.gatewayAddresses...))
	if err != nil {
		return connection{}, cmdline.Usagef("--gateway-address: %w", err)
	}
	restConfig.QPS, restConfig.Burst = o.cluster.qps, o.cluster.burst
	return connection{rest: restConfig, namespace: namespace, own: own}, nil
}

// loadKubeconfig returns the configuration of the cluster in a file, or in a Pod of its own cluster, and the namespace.
func loadKubeconfig(path string) (*rest.Config, string, error) {
	rules := &clientcmd.ClientConfigLoadingRules{ExplicitPath: path}
	clientConfig := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{})
	restConfig, err := clientConfig.ClientConfig()
	if err != nil {
		return nil, "", fmt.Errorf("kubeconfig: %w", err)
	}
	namespace, _, err := clientConfig.Namespace()
	if err != nil {
		return nil, "", fmt.Errorf("kubeconfig: namespace: %w", err)
	}
	return rest.AddUserAgent(restConfig, "hookgate"), namespace, nil
}

// ownID returns the id by which the gateway recognizes what comes back to it. Unless a flag states one, the replicas
// that compete for one Lease share theirs, and without a cluster, every process has its own.
func (o *serveOptions) ownID(at connection) string {
	switch {
	case o.gatewayID != "":
		return o.gatewayID
	case at.rest == nil:
		return via.NewGateway()
	}
	ca := string(at.rest.CAData) + at.rest.CAFile
	if data, err := os.ReadFile(at.rest.CAFile); err == nil {
		ca = string(data)
	}
	// Clusters have CAs of their own; their addresses differ between the inside and the outside.
	if ca == "" {
		ca = at.rest.Host
	}
	return via.GatewayOf(ca, at.namespace, leaseName(o.cluster.group, o.cluster.watchFilter))
}

// newSource returns the source for the ExtensionConfigs of the cluster.
func (o *clusterOptions) newSource(at connection, c controllers.Config) (source, error) {
	c.REST, c.Own, c.OwnNamespace, c.HookJobs = at.rest, at.own, at.namespace, o.hookJobs.allowed()
	c.Group, c.ReadOnly, c.Namespace, c.WatchFilter, c.Concurrency = o.group, o.readOnly, o.namespace,
		o.watchFilter, o.concurrency
	c.LeaderElection = controllers.LeaderElection{
		Enabled: o.leaderElection.enabled, Namespace: at.namespace, Name: leaseName(o.group, o.watchFilter),
		LeaseDuration: o.leaderElection.leaseDuration, RenewDeadline: o.leaderElection.renewDeadline,
		RetryPeriod: o.leaderElection.retryPeriod,
	}
	found, err := controllers.New(c)
	if err != nil {
		return nil, cmdline.UsageError{Err: err}
	}
	return found, nil
}

// ownAddresses returns the addresses that lead to a listener on address, as far as its text says.
func ownAddresses(address string) []string {
	host, port, err := net.SplitHostPort(address)
	if err != nil || port == "0" {
		return nil
	}
	ip := net.ParseIP(host)
	switch {
	case host == "", ip != nil && ip.IsUnspecified(), ip != nil && ip.IsLoopback(), host == "localhost":
		return []string{"localhost:" + port, "127.0.0.1:" + port, "[::1]:" + port}
	}
	return []string{address}
}

// newRegistry returns the registry that the source fills.
func (o *serveOptions) newRegistry(hooks *catalog.Catalog) *registry.Registry {
	if o.sidecar != "" {
		return registry.NewSidecar()
	}
	return registry.New(hooks.Merged()...)
}

// newSource returns the source of registrations that the flags name.
func (o *serveOptions) newSource(
	at connection, hooks *catalog.Catalog, reg *registry.Registry, endpoints *controllers.Endpoints,
	observer discoveries, shared discovery.Shared, logger *slog.Logger,
) (source, error) {
	shared.Observer = observer
	switch {
	case o.sidecar != "":
		return sidecar.New(sidecar.Config{
			URL: o.sidecar, Registry: reg, Discoverer: shared.Discoverer, Logger: logger, Resync: o.resync, Observer: observer,
		})
	case o.extensionConfigs != "":
		d, err := directory.New(directory.Config{
			Dir: o.extensionConfigs, StateDir: o.stateDir, Catalog: hooks, Registry: reg, Logger: logger, Resync: o.resync,
			Discoverer: shared.Discoverer, References: shared.References, Losses: shared.Losses,
			Observer: observer, Compared: observer.Compared,
		})
		if err != nil {
			return nil, err
		}
		return d, d.Check() // before addresses are printed
	default:
		return o.cluster.newSource(at, controllers.Config{
			Catalog: hooks, Registry: reg, Endpoints: endpoints, Logger: logger, Resync: o.resync,
			RolloutCompared: observer.Compared, Shared: shared,
		})
	}
}

// wantsCluster reports whether registrations come from a cluster.
func (o *serveOptions) wantsCluster() bool {
	return o.extensionConfigs == "" && o.sidecar == "" && !o.dev.enabled
}

// checkSource returns an error of usage unless the flags name one source of registrations.
func (o *serveOptions) checkSource() error {
	switch {
	case len(o.cluster.hookJobs.namespaces) > 0 && !o.wantsCluster():
		return cmdline.Usagef("--hook-jobs-namespace: this gateway has no cluster to run Jobs in; leave the " +
			"flag out, or give --kubeconfig")
	case o.stateDir != "" && o.extensionConfigs == "":
		return cmdline.Usagef("--state-dir is for --extension-configs: leave it out with a cluster, where the status of " +
			"ExtensionConfigs holds the state, and with --sidecar, where the gateway waits for its extension")
	case o.sidecar != "" && o.extensionConfigs != "":
		return cmdline.Usagef("--sidecar and --extension-configs: a gateway serves the extension beside it or the " +
			"extensions of a directory; give only one of these flags")
	case o.sidecar != "" && o.cluster.kubeconfig != "":
		return cmdline.Usagef("--sidecar and --kubeconfig: a gateway serves the extension beside it or the extensions of a " +
			"cluster; give only one of these flags")
	case o.sidecar != "":
		if err := sidecar.CheckURL(o.sidecar); err != nil {
			return cmdline.Usagef("--sidecar: %w", err)
		}
		return nil
	case o.extensionConfigs != "" && o.cluster.kubeconfig != "":
		return cmdline.Usagef("--extension-configs and --kubeconfig: ExtensionConfigs come from a directory or from a " +
			"cluster; give only one of these flags")
	case o.dev.enabled:
		return nil
	case o.extensionConfigs == "" && o.cluster.kubeconfig == "" && !target.InCluster():
		return cmdline.Usagef("--extension-configs is required: a directory with manifests of ExtensionConfigs; " +
			"or use --kubeconfig for the ExtensionConfigs of a cluster, --sidecar for one extension beside the gateway, " +
			"or --dev")
	case o.extensionConfigs != "":
		return nil
	}
	return o.cluster.check()
}
