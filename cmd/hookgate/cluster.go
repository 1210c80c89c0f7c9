// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"net"
	"os"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/controllers/discovery"
	"github.com/hookgate/hookgate/controllers/extensionconfig"
	"github.com/hookgate/hookgate/controllers/source/cluster"
	"github.com/hookgate/hookgate/controllers/source/directory"
	"github.com/hookgate/hookgate/controllers/source/sidecar"
	"github.com/hookgate/hookgate/convert"
	"github.com/hookgate/hookgate/registry"
)

// leaseName returns the Lease that replicas of a gateway compete for. Gateways that watch different ExtensionConfigs may share
// a namespace. A watch filter is any value of a label, which the name of a Lease need not take.
func leaseName(group, watchFilter string) string {
	name := "hookgate-leader-election-" + group
	if watchFilter != "" {
		name += fmt.Sprintf("-%.4x", sha256.Sum256([]byte(watchFilter)))
	}
	return name
}

// source is where registrations come from.
type source interface {
	Run(ctx context.Context) error
	NamespaceLabels(name string) map[string]string
}

// clusterOptions are the flags about ExtensionConfigs in a cluster. Those that Cluster API's managers have, too, have
// their names and defaults.
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

	leaderElect   bool
	leaseDuration time.Duration
	renewDeadline time.Duration
	retryPeriod   time.Duration
}

func (o *clusterOptions) addFlags(f *pflag.FlagSet) {
	f.StringVar(&o.kubeconfig, "kubeconfig", "", "file that says how to reach the cluster with the ExtensionConfigs; not needed in a Pod")
	f.StringVar(&o.group, "extension-config-group", cluster.ClusterAPIGroup,
		"API group of the ExtensionConfigs: "+cluster.ClusterAPIGroup+", or "+cluster.HookgateGroup+" for those that Cluster API core shall not call")
	f.BoolVar(&o.readOnly, "read-only", false, "serve what somebody else, such as Cluster API core, has discovered, and write nothing to the cluster")
	f.StringVar(&o.namespace, "namespace", "", "the only namespace whose Secrets and EndpointSlices are watched; by default all")
	f.StringVar(&o.watchFilter, "watch-filter", "", "watch only ExtensionConfigs whose label cluster.x-k8s.io/watch-filter has this value")
	f.IntVar(&o.concurrency, "extensionconfig-concurrency", cluster.DefaultConcurrency, "how many ExtensionConfigs are worked on at the same time")
	f.Float32Var(&o.qps, "kube-api-qps", 100, "how many requests to the API server a second")
	f.IntVar(&o.burst, "kube-api-burst", 200, "how many requests to the API server in a burst")
	f.StringSliceVar(&o.gatewayAddresses, "gateway-address", nil,
		"host or host:port under which this gateway is called, for example hookgate.hookgate-system.svc; ExtensionConfigs that point there are refused. May be repeated")
	f.BoolVar(&o.leaderElect, "leader-elect", false, "let one of several replicas discover extensions and write to the cluster; needed with more than one")
	f.DurationVar(&o.leaseDuration, "leader-elect-lease-duration", 15*time.Second, "how long other replicas wait for a leader that is silent")
	f.DurationVar(&o.renewDeadline, "leader-elect-renew-deadline", 10*time.Second, "how long a leader tries to stay one before it gives up")
	f.DurationVar(&o.retryPeriod, "leader-elect-retry-period", 2*time.Second, "time between attempts to become leader, or to stay one")
}

// inCluster tells whether the process runs in a Pod.
func inCluster() bool { return os.Getenv("KUBERNETES_SERVICE_HOST") != "" }

func (o *clusterOptions) check() error {
	if o.group != cluster.ClusterAPIGroup && o.group != cluster.HookgateGroup {
		return usagef("--extension-config-group: want %s or %s, got %q", cluster.ClusterAPIGroup, cluster.HookgateGroup, o.group)
	}
	if o.concurrency <= 0 {
		return usagef("--extensionconfig-concurrency: want more than 0, got %d", o.concurrency)
	}
	if o.qps <= 0 || o.burst <= 0 {
		return usagef("--kube-api-qps and --kube-api-burst: want more than 0, got %g and %d", o.qps, o.burst)
	}
	if o.readOnly && o.leaderElect {
		return usagef("--read-only and --leader-elect: a replica that only reads does not compete to write; leave one of them out")
	}
	return nil
}

// connection is how to reach the cluster. Its zero value is for those who have none.
type connection struct {
	rest      *rest.Config
	namespace string                    // of the gateway
	own       extensionconfig.Addresses // where the gateway is called
}

// connect returns how to reach the cluster, if there is one. It does not reach for it yet.
func (o *serveOptions) connect(logger *slog.Logger) (connection, error) {
	if !o.wantsCluster() {
		return connection{}, nil
	}
	// Libraries log through these; what they say belongs into the one log.
	ctrllog.SetLogger(logr.FromSlogHandler(logger.Handler()))
	klog.SetSlogLogger(logger)

	restConfig, namespace, err := loadKubeconfig(o.cluster.kubeconfig)
	if err != nil {
		return connection{}, err
	}
	own, err := extensionconfig.ParseAddresses(append(ownAddresses(o.httpAddress), o.cluster.gatewayAddresses...))
	if err != nil {
		return connection{}, usagef("--gateway-address: %w", err)
	}
	restConfig.QPS, restConfig.Burst = o.cluster.qps, o.cluster.burst
	return connection{rest: restConfig, namespace: namespace, own: own}, nil
}

// loadKubeconfig returns what a file says of a cluster, or a Pod of its own, and the namespace.
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

// newSource returns the source of ExtensionConfigs in the cluster.
func (o *clusterOptions) newSource(at connection, c cluster.Config) (source, error) {
	c.REST, c.Own = at.rest, at.own
	c.Group, c.ReadOnly, c.Namespace, c.WatchFilter, c.Concurrency = o.group, o.readOnly, o.namespace, o.watchFilter, o.concurrency
	c.LeaderElection = cluster.LeaderElection{
		Enabled: o.leaderElect, Namespace: at.namespace, Name: leaseName(o.group, o.watchFilter),
		LeaseDuration: o.leaseDuration, RenewDeadline: o.renewDeadline, RetryPeriod: o.retryPeriod,
	}
	found, err := cluster.New(c)
	if err != nil {
		return nil, usageError{err}
	}
	return found, nil
}

// ownAddresses returns the addresses that lead to what listens on address, as far as that says.
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
func (o *serveOptions) newRegistry() *registry.Registry {
	if o.sidecar != "" {
		return registry.NewSole()
	}
	return registry.New()
}

// newEndpoints returns what knows the endpoints of Services: nothing, without a cluster.
func newEndpoints() *cluster.Endpoints { return cluster.NewEndpoints() }

// newSource returns where the flags say that registrations come from.
func (o *serveOptions) newSource(
	at connection, cat *catalog.Catalog, reg *registry.Registry, d discovery.Discoverer, endpoints *cluster.Endpoints,
	references *convert.References, losses *convert.Losses, observer directory.Observer, logger *slog.Logger,
) (source, error) {
	switch {
	case o.sidecar != "":
		return sidecar.New(sidecar.Config{
			URL: o.sidecar, Registry: reg, Discoverer: d, Logger: logger, Resync: o.resync, Observer: observer,
		})
	case o.extensionConfigs != "":
		return directory.New(directory.Config{
			Dir: o.extensionConfigs, Catalog: cat, Registry: reg, Discoverer: d, References: references, Losses: losses, Logger: logger, Resync: o.resync, Observer: observer,
		})
	default:
		return o.cluster.newSource(at, cluster.Config{
			Catalog: cat, Registry: reg, Discoverer: d, Endpoints: endpoints, References: references, Losses: losses, Logger: logger, Resync: o.resync, Observer: observer,
		})
	}
}

// wantsCluster tells whether registrations come from a cluster.
func (o *serveOptions) wantsCluster() bool { return o.extensionConfigs == "" && o.sidecar == "" }

// checkSource finds mistakes in the flags about where registrations come from.
func (o *serveOptions) checkSource() error {
	switch {
	case o.sidecar != "" && o.extensionConfigs != "":
		return usagef("--sidecar and --extension-configs: the gateway answers for the one extension beside it or for those of a directory; leave one of them out")
	case o.sidecar != "" && o.cluster.kubeconfig != "":
		return usagef("--sidecar and --kubeconfig: the gateway answers for the one extension beside it or for those of a cluster; leave one of them out")
	case o.sidecar != "":
		if err := sidecar.CheckURL(o.sidecar); err != nil {
			return usagef("--sidecar: %w", err)
		}
		return nil
	case o.extensionConfigs != "" && o.cluster.kubeconfig != "":
		return usagef("--extension-configs and --kubeconfig: ExtensionConfigs come from a directory or from a cluster; leave one of them out")
	case o.extensionConfigs == "" && o.cluster.kubeconfig == "" && !inCluster():
		return usagef("--extension-configs is required: a directory with manifests of ExtensionConfigs; or --kubeconfig, for those of a cluster; or --sidecar, for one extension beside the gateway")
	case o.extensionConfigs != "":
		return nil
	}
	return o.cluster.check()
}
