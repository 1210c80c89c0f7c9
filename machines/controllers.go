// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package machines

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/protobuf/proto"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/hookgate/hookgate/api/v1alpha1"
	"github.com/hookgate/hookgate/catalog"
	remediationv1 "github.com/hookgate/hookgate/machines/v1alpha1"
	"github.com/hookgate/hookgate/registry"
)

// DefaultConcurrency is the default number of Machines that are reconciled at the same time, most of which wait for
// handlers.
const DefaultConcurrency = 100

// Hooks is what the controllers ask the gateway. *gateway.InProcess has it.
type Hooks interface {
	// Call calls the handlers of a hook, and returns their merged answer, and the names of those that do not let go. An
	// error is a *hook.Error.
	Call(ctx context.Context, h *catalog.Hook, request proto.Message) (answer proto.Message, holders []string, err error)
	// Targets returns the names of the handlers that Call would call, without a call. An error means that they are not
	// known.
	Targets(ctx context.Context, h *catalog.Hook, request proto.Message) ([]string, error)
}

// Config configures Controllers. REST, Catalog, Hooks, Registry, Metrics and Logger are required.
type Config struct {
	// REST connects to the management cluster.
	REST    *rest.Config
	Catalog *catalog.Catalog // it has the hooks of Machines
	Hooks   Hooks
	// Registry is the gateway's. What handlers match is looked at again when it has changed.
	Registry registry.Snapshots
	Metrics  prometheus.Registerer
	Logger   *slog.Logger

	// Clusters means that the controllers call AfterClusterDelete, in place of the hooks of Machines. What they keep is in
	// the namespace of LeaderElection.
	Clusters bool
	// Namespace limits the controllers to the Machines or Clusters of one namespace, and WatchFilter to those with this
	// value of the label cluster.x-k8s.io/watch-filter. Empty means all.
	Namespace, WatchFilter string
	// MaxHold is how long handlers may hold a Machine that is being deleted; it is let go then, whatever they say. Zero
	// means forever.
	MaxHold time.Duration
	// Concurrency is the number of objects of each kind that are reconciled at the same time. Zero means
	// DefaultConcurrency.
	Concurrency int
	// LeaderElection lets one of several replicas work.
	LeaderElection LeaderElection
}

// LeaderElection configures the Lease that replicas compete for. Its zero value means that there is one replica.
type LeaderElection struct {
	Enabled   bool
	Namespace string // of the Lease

	LeaseDuration, RenewDeadline, RetryPeriod time.Duration
}

// leasePrefix is the beginning of the names of Leases of controllers of Machines, and clustersPrefix of Clusters.
const (
	leasePrefix    = "hookgate-machines"
	clustersPrefix = "hookgate-clusters"
)

// leaseName returns the name of a Lease that controllers of other namespaces and filters do not compete for.
func leaseName(name, namespace, watchFilter string) string {
	if namespace+watchFilter != "" {
		name += fmt.Sprintf("-%.4x", sha256.Sum256([]byte(namespace+"/"+watchFilter)))
	}
	return name
}

// Controllers call the hooks of Machines, or AfterClusterDelete. Call Run once.
type Controllers struct {
	config  Config
	metrics *metrics
}

// New returns Controllers, or an error if c is wrong. It does not connect to the API server.
func New(c Config) (*Controllers, error) {
	if c.REST == nil || c.Catalog == nil || c.Hooks == nil || c.Registry == nil || c.Metrics == nil || c.Logger == nil {
		return nil, errors.New("machines: REST, Catalog, Hooks, Registry, Metrics and Logger are required")
	}
	if c.MaxHold < 0 || c.Concurrency < 0 {
		return nil, errors.New("machines: MaxHold and Concurrency must not be negative")
	}
	c.Concurrency = cmp.Or(c.Concurrency, DefaultConcurrency)
	if c.Clusters && c.LeaderElection.Namespace == "" {
		return nil, errors.New("machines: Clusters requires LeaderElection.Namespace")
	}
	of := documented
	if c.Clusters {
		of = documentedClusters
	}
	m, err := newMetrics(c.Metrics, of)
	if err != nil {
		return nil, fmt.Errorf("machines: %w", err)
	}
	return &Controllers{config: c, metrics: m}, nil
}

// Run runs the controllers until ctx is done. Serving goes on without them: when they fail, as those do that lose their
// Lease, they are started again after a while.
func (c *Controllers) Run(ctx context.Context) error {
	pace := backoff.NewExponentialBackOff(backoff.WithMaxInterval(time.Minute), backoff.WithMaxElapsedTime(0))
	for {
		began := time.Now()
		err := c.runOnce(ctx)
		if ctx.Err() != nil {
			return nil //nolint:nilerr // it was stopped
		}
		if time.Since(began) > 2*time.Minute {
			pace.Reset()
		}
		wait := pace.NextBackOff()
		c.config.Logger.Error("the controllers of hooks have ended, and are started again", "error", err,
			"after", wait.Round(time.Second), "clusters", c.config.Clusters)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		}
	}
}

// runOnce runs the controllers until ctx is done or one of them fails.
func (c *Controllers) runOnce(ctx context.Context) error {
	scheme := runtime.NewScheme()
	if err := AddToScheme(scheme); err != nil {
		return err
	}
	var only map[string]cache.Config
	if c.config.Namespace != "" {
		only = map[string]cache.Config{c.config.Namespace: {}}
	}
	l := &c.config.LeaderElection
	name, byObject := leasePrefix, map[client.Object]cache.ByObject{}
	if c.config.Clusters {
		records := cache.ByObject{Label: labels.SelectorFromSet(labels.Set{AfterDeleteLabel: ""})}
		if only != nil {
			records.Namespaces = map[string]cache.Config{c.config.Namespace: {}, l.Namespace: {}}
		}
		name, byObject[&v1alpha1.ClusterRecord{}] = clustersPrefix, records
	}
	mgr, err := manager.New(c.config.REST, manager.Options{
		Scheme: scheme, Logger: logr.FromSlogHandler(c.config.Logger.Handler()),
		Cache: cache.Options{
			DefaultNamespaces: only, ByObject: byObject, DefaultTransform: cache.TransformStripManagedFields(),
		},
		Client:         client.Options{Cache: &client.CacheOptions{Unstructured: true}},
		Metrics:        metricsserver.Options{BindAddress: "0"}, // the gateway serves them
		LeaderElection: l.Enabled, LeaderElectionNamespace: l.Namespace,
		LeaderElectionID: leaseName(name, c.config.Namespace, c.config.WatchFilter), LeaderElectionReleaseOnCancel: true,
		LeaseDuration: &l.LeaseDuration, RenewDeadline: &l.RenewDeadline, RetryPeriod: &l.RetryPeriod,
	})
	if err != nil {
		return err
	}
	var synced atomic.Bool
	if err := mgr.Add(unelected(func() { synced.Store(true) })); err != nil {
		return err
	}
	b := &base{
		client: mgr.GetClient(), live: mgr.GetAPIReader(), events: mgr.GetEventRecorder(name),
		config: &c.config, metrics: c.metrics, now: time.Now,
	}
	if err := b.setUp(ctx, mgr); err != nil {
		return err
	}
	c.metrics.reset()
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	if !synced.Load() {
		// A manager that is stopped while it waits for its caches never returns, and spins meanwhile (controller-runtime
		// v0.24). It has started nothing, and ends with the process.
		return nil
	}
	return <-ended
}

// unelected is called once the caches of a manager have synced, whether it leads or not.
type unelected func()

// Start implements manager.Runnable.
func (f unelected) Start(context.Context) error { f(); return nil }

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (unelected) NeedLeaderElection() bool { return false }

// AddToScheme adds the kinds that the controllers use.
func AddToScheme(s *runtime.Scheme) error {
	return errors.Join(clusterv1.AddToScheme(s), remediationv1.AddToScheme(s), v1alpha1.AddToScheme(s))
}
