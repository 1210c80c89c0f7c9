// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/rest"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/hookgate/hookgate/api/v1alpha1"
	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/base/notify"
	"github.com/hookgate/hookgate/internal/base/status"
	"github.com/hookgate/hookgate/internal/calls/extension"
	"github.com/hookgate/hookgate/internal/calls/policy"
	"github.com/hookgate/hookgate/internal/contract/codec"
	"github.com/hookgate/hookgate/internal/kinds/allkinds"
	"github.com/hookgate/hookgate/internal/kinds/extensionconfig"
	"github.com/hookgate/hookgate/internal/kinds/hookjob"
	"github.com/hookgate/hookgate/internal/kinds/hookrule"
	"github.com/hookgate/hookgate/internal/kinds/rollout"
	"github.com/hookgate/hookgate/internal/sources/discovery"
	"github.com/hookgate/hookgate/registry"
)

// The groups of ExtensionConfigs that a Source can watch. Both have the same schema.
const (
	// ClusterAPIGroup is Cluster API's own. Cluster API core calls every ExtensionConfig in it, too.
	ClusterAPIGroup = "runtime.cluster.x-k8s.io"
	// HookgateGroup is for ExtensionConfigs that only the gateway calls.
	HookgateGroup = extensionconfig.HookgateGroup
)

// DefaultConcurrency is the default number of ExtensionConfigs that are reconciled at the same time. An extension that
// hangs takes one place for ten seconds of every minute or so.
const DefaultConcurrency = 250

// longWait is the time after which a log line says that the API server has not been read yet.
const longWait = 10 * time.Second

// Config configures a Source.
type Config struct {
	// REST connects to the API server.
	REST     *rest.Config
	Catalog  *catalog.Catalog
	Registry *registry.Registry
	Logger   *slog.Logger

	// Group is the API group of the ExtensionConfigs. Empty means ClusterAPIGroup.
	Group string
	// ReadOnly makes the Source only follow the status that other replicas write, and write nothing.
	ReadOnly bool
	// Namespace limits the Secrets that are read and the EndpointSlices that are watched to one namespace. Empty means
	// all.
	Namespace string
	// SecretInterval is the least time between two looks at the same Secret. Zero means 10 s.
	SecretInterval time.Duration
	// WatchFilter limits the ExtensionConfigs, ExtensionPolicies, HandlerChains, HookRules and HookJobs to those with this
	// value of the label cluster.x-k8s.io/watch-filter. Empty means all.
	WatchFilter string
	// LeaderElection decides which replica discovers extensions and writes.
	LeaderElection LeaderElection
	// Endpoints, which may be nil, receives the endpoints of Services, unless ReadOnly is set.
	Endpoints *Endpoints
	// HookJobs is what HookJobs may do. Without namespaces, none is valid, and calls that they should answer fail.
	HookJobs hookjob.Allowed
	// RolloutCompared, which may be nil, counts the comparisons of ExtensionRollouts by their results.
	RolloutCompared func(rollout, result string)
	// OwnNamespace is the namespace of the gateway, where the successes of HookJobs are recorded, and the last valid specs
	// of Hookgate's own objects. Empty means that the latter are not.
	OwnNamespace string
	// Resync is the time between two discoveries of an extension that answers. Zero means discovery.DefaultResync.
	Resync time.Duration
	// Concurrency is the number of ExtensionConfigs that are reconciled at the same time. Zero means
	// DefaultConcurrency.
	Concurrency int

	// Shared is made by package command, and optional.
	discovery.Shared

	// lag is how long the cache may lack the last write of this process. Zero means conflictDelay.
	lag time.Duration
}

// Source fills a registry from the ExtensionConfigs of a cluster.
type Source struct {
	config     Config
	served     *discovery.TrackingRegistry // in front of the registry, for the ExtensionConfigs
	core       *discovery.Reconciler
	compiler   *policy.Compiler
	types      *policy.Types
	namespaces namespaces
	leadership *leadership
	sets       allkinds.Sets
	exists     func(extensionConfig string) bool // set by Run
	clusters   *clusters
	params     *ruleParams
	places     *rulePlaces
	inCluster  rulesInCluster
	rollouts   *rollouts
	blocks     blocks
	closed     func() // closes a Discoverer of its own
	alone      alone
}

// New returns a Source, or an error if c is wrong. It does not connect to the API server.
func New(c Config) (*Source, error) {
	if c.REST == nil {
		return nil, errors.New("cluster source: REST is required")
	}
	c.Group = cmp.Or(c.Group, ClusterAPIGroup)
	if c.Group != ClusterAPIGroup && c.Group != HookgateGroup {
		return nil, fmt.Errorf("cluster source: Group %q is neither %s nor %s", c.Group, ClusterAPIGroup, HookgateGroup)
	}
	c.Resync = cmp.Or(c.Resync, discovery.DefaultResync)
	c.Concurrency = cmp.Or(c.Concurrency, DefaultConcurrency)
	c.SecretInterval = cmp.Or(c.SecretInterval, limits.SecretInterval)
	c.lag = cmp.Or(c.lag, conflictDelay)
	if c.ReadOnly && len(c.HookJobs.Namespaces) > 0 {
		return nil, errors.New("cluster source: HookJobs need a Source without ReadOnly")
	}
	if c.Resync < 0 || c.Concurrency < 0 || c.SecretInterval < 0 {
		return nil, errors.New("cluster source: Resync, Concurrency and SecretInterval must be more than 0")
	}
	if c.Backoff == (discovery.Backoff{}) {
		c.Backoff = discovery.DefaultBackoff()
	}
	if c.Catalog == nil || c.Registry == nil {
		return nil, errors.New("cluster source: Catalog and Registry are required")
	}
	closed := func() {}
	if c.Discoverer == nil {
		own := extension.NewProtocols(extension.Config{Catalog: c.Catalog, Codec: codec.New(c.Catalog)})
		c.Discoverer, closed = own, own.Close
	}
	served := discovery.NewTrackingRegistry(c.Registry)
	core, coreErr := discovery.NewReconciler(discovery.ReconcilerConfig{
		Registry: served, Discoverer: c.Discoverer, Logger: c.Logger, Observer: c.Observer, Losses: c.Losses,
	})
	ofClusters, clustersErr := newClusters(c.REST, c.Logger)
	params, paramsErr := newRuleParams(c.REST, c.Logger)
	compiler, compilerErr := policy.NewCompiler()
	types, typesErr := policy.NewTypes(c.Catalog)
	err := errors.Join(c.Backoff.Check(), c.LeaderElection.check(), coreErr, clustersErr, paramsErr, compilerErr, typesErr)
	if err != nil {
		return nil, fmt.Errorf("cluster source: %w", err)
	}
	elected := newLeadership(c.LeaderElection, c.REST, c.Logger)
	s := &Source{
		config: c, served: served, core: core, compiler: compiler, types: types,
		leadership: elected,
		closed:     closed,
		clusters:   ofClusters,
		params:     params,
		places:     newRulePlaces(params, c.ReadOnly, c.Logger),
		rollouts:   newRollouts(ofClusters, func() bool { return elected.term() != nil }, &c),
		blocks:     newBlocks(),
	}
	s.inCluster = rulesInCluster{params: params, places: s.places}
	s.sets = allkinds.NewSets(allkinds.SetConfig{
		Registry: served, Hooks: c.Catalog, Types: types, Logger: c.Logger, Engine: s.rollouts.engine,
		Exists: func(name string) bool { return s.exists(name) }, NeedClusters: ofClusters.need, OfRules: &s.inCluster,
	})
	return s, nil
}

// Leads reports whether this replica discovers extensions and writes status now.
func (s *Source) Leads() bool { return s.leadership.term() != nil }

// Objects puts the objects of Hookgate's own kinds into g, with the verdicts of this replica.
func (s *Source) Objects(g *status.Gateway) {
	for _, of := range s.sets {
		of.List(g)
	}
}

// RolloutEngine returns what decides for which Clusters the candidates of ExtensionRollouts answer.
func (s *Source) RolloutEngine() *rollout.Engine { return s.rollouts.engine }

// NamespaceLabels returns the labels of a namespace from the cache, and always kubernetes.io/metadata.name. It reports
// whether the cache has the namespace. Callers must not change the map.
func (s *Source) NamespaceLabels(name string) (labels map[string]string, known bool) {
	return s.namespaces.labelsOf(name)
}

// ClusterLabels returns the labels of a Cluster, and reports whether they are known: they are read once a HandlerChain
// of an in-place hook or an ExtensionRollout needs them. Callers must not change the map.
func (s *Source) ClusterLabels(namespace, name string) (labels map[string]string, known bool) {
	labels, _, known = s.clusters.ClusterMetadata(namespace, name)
	return labels, known
}

// ClusterGone reports whether it is known that there is no such Cluster: the Clusters are watched, and all are known.
func (s *Source) ClusterGone(namespace, name string) bool {
	select {
	case <-s.clusters.needed:
		_, _, known := s.clusters.ClusterMetadata(namespace, name)
		return !known && s.clusters.synced()
	default:
		return false
	}
}

// Run fills the registry, makes it ready once it has the handlers in the status of every ExtensionConfig, and keeps it
// up to date until ctx is done. It waits for an API server that is away and for a kind that is not installed. Call it
// once.
func (s *Source) Run(ctx context.Context) error {
	defer s.closed()
	problems := &watchProblems{logger: s.config.Logger, group: s.config.Group}
	mgr, err := s.newManager(problems)
	if err != nil {
		return fmt.Errorf("cluster source: %w", err)
	}
	// The manager starts this once its caches have synced.
	synced := make(chan struct{})
	if err := mgr.Add(manager.RunnableFunc(func(context.Context) error { close(synced); return nil })); err != nil {
		return fmt.Errorf("cluster source: %w", err)
	}
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	if err := s.setUp(running, mgr, problems); err != nil {
		stop()
		return fmt.Errorf("cluster source: %w", err)
	}
	ended := make(chan error, 1)
	go func() {
		defer stop()
		ended <- mgr.Start(running)
	}()
	defer s.complain(synced).Stop()
	if s.mayBeAlone() {
		go s.lookForConversion(ctx)
	}
	select {
	case err = <-ended:
	case <-ctx.Done():
		select {
		case <-synced:
			stop()
			err = <-ended
		default:
			// A manager that is stopped while it waits for its caches never returns, and spins meanwhile
			// (controller-runtime v0.24). It has started nothing, and ends with the process.
		}
	}
	if err != nil {
		return fmt.Errorf("cluster source: %w", err)
	}
	return nil
}

// complain logs after a while that the API server has not been read. watchProblems does not see every reason, because
// clients retry refused connections by themselves.
func (s *Source) complain(synced <-chan struct{}) *time.Timer {
	return time.AfterFunc(longWait, func() {
		select {
		case <-synced:
		default:
			s.config.Logger.Warn(
				"still waiting for the API server: the gateway is not ready until it has read everything that it watches",
				"server", s.config.REST.Host,
				"advice", "check that it is running, that the kubeconfig is right, and what was logged before")
		}
	})
}

// newManager returns a manager without leader election, because a manager that loses its lease stops, and serving must
// not.
func (s *Source) newManager(problems *watchProblems) (manager.Manager, error) {
	byObject := map[client.Object]cache.ByObject{
		&runtimev1.ExtensionConfig{}: {Label: s.watchFilter(), Transform: cache.TransformStripManagedFields()},
		namespaceMetadata():          {Transform: keepLabels},
	}
	if !s.config.ReadOnly {
		var only map[string]cache.Config
		if s.config.Namespace != "" {
			only = map[string]cache.Config{s.config.Namespace: {}}
		}
		byObject[&discoveryv1.EndpointSlice{}] = cache.ByObject{Namespaces: only, Transform: keepAddresses}
	}
	return manager.New(s.config.REST, manager.Options{
		Scheme: newScheme(s.config.Group),
		MapperProvider: func(*rest.Config, *http.Client) (meta.RESTMapper, error) {
			return newMapper(s.config.Group), nil
		},
		Cache:   cache.Options{ByObject: byObject, DefaultWatchErrorHandler: problems.handle},
		Logger:  logr.FromSlogHandler(s.config.Logger.Handler()),
		Metrics: metricsserver.Options{BindAddress: "0"},
	})
}

func (s *Source) watchFilter() labels.Selector {
	if s.config.WatchFilter == "" {
		return nil
	}
	return labels.SelectorFromSet(labels.Set{clusterv1.WatchLabel: s.config.WatchFilter})
}

// setUp adds everything that runs to the manager.
func (s *Source) setUp(ctx context.Context, mgr manager.Manager, problems *watchProblems) error {
	synced, err := s.namespaces.follow(ctx, mgr.GetCache())
	if err != nil {
		return fmt.Errorf("watch Namespaces: %w", err)
	}
	r := &reconciler{
		core:       s.core,
		registry:   s.config.Registry,
		hooks:      s.config.Catalog,
		client:     mgr.GetClient(),
		secrets:    newSecrets(mgr.GetAPIReader(), s.config.SecretInterval),
		namespace:  s.config.Namespace,
		logger:     s.config.Logger,
		own:        s.config.Own,
		resync:     s.config.Resync,
		backoff:    s.config.Backoff,
		lag:        s.config.lag,
		leadership: s.leadership,
		losses:     s.config.Losses,
		circuits:   s.config.Circuits,
		readOnly:   s.config.ReadOnly,
		warm:       make(chan struct{}),
		requests:   make(chan event.GenericEvent),
	}
	r.policies, s.inCluster.ctx = s.sets.Policies(), ctx
	s.exists = func(name string) bool { return r.exists(ctx, name) }
	jobs, err := s.newJobCluster(ctx, problems)
	if err != nil {
		return fmt.Errorf("watch Jobs: %w", err)
	}
	o, err := s.newOwn(mgr, r, jobs.jobs, problems)
	if err != nil {
		return err
	}
	if err := o.follow(ctx, mgr.GetCache()); err != nil {
		return err
	}
	if err := s.clusters.follow(ctx); err != nil {
		return fmt.Errorf("watch Clusters: %w", err)
	}
	if s.config.Endpoints != nil && !s.config.ReadOnly {
		if err := s.config.Endpoints.follow(ctx, mgr.GetCache()); err != nil {
			return fmt.Errorf("watch EndpointSlices: %w", err)
		}
	}
	if !s.config.ReadOnly {
		r.events = mgr.GetEventRecorder("hookgate")
	}
	if err := r.watch(ctx, mgr, s.config.Concurrency, s.config.ReadOnly); err != nil {
		return err
	}
	for _, run := range []manager.RunnableFunc{o.cache.Start, s.clusters.run, jobs.run} {
		if err := mgr.Add(run); err != nil {
			return err
		}
	}
	noted := notify.NewSet[string]() // what calls, or looks for servers, have shown something about
	if s.config.Losses != nil {
		s.config.Losses.Notify(noted.Add)
	}
	if s.config.Circuits != nil {
		s.config.Circuits.Notify(noted.Add)
	}
	d, err := s.definitions(ctx, mgr)
	if err != nil {
		return fmt.Errorf("watch CustomResourceDefinitions: %w", err)
	}
	return mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		if !synced(ctx) || !o.start(ctx) || !s.clusters.start(ctx) || !s.params.start(ctx) || !d.start(ctx) {
			return nil
		}
		if err := r.warmUp(ctx); err != nil {
			return err
		}
		var following sync.WaitGroup
		defer following.Wait()
		following.Go(func() { o.run(ctx) })
		following.Go(func() { d.run(ctx) })
		following.Go(func() { r.reconcileAdded(ctx, noted) })
		following.Go(func() { r.core.Watch(ctx, noted.Add) })
		if s.config.ReadOnly {
			<-ctx.Done()
			return nil
		}
		following.Go(func() { r.followSecrets(ctx) })
		following.Go(func() { o.records.run(ctx) })
		following.Go(func() { s.places.run(ctx, s.Leads) })
		following.Go(func() { s.places.record(ctx, r.events) })
		following.Go(func() { jobs.sweep(ctx, s.Leads) })
		following.Go(func() { _ = s.rollouts.engine.Run(ctx) }) // ends with ctx, without an error
		following.Go(func() { s.rollouts.sweep(ctx, o.cache) })
		following.Go(func() { s.rollouts.collect(ctx) })
		following.Go(func() { s.rollouts.record(ctx, o.cache, r.events) })
		following.Go(func() { s.blocks.record(ctx, mgr.GetAPIReader(), o.cache, r.events, s.config.Logger) })
		return r.leadership.run(ctx, func(ctx context.Context) {
			o.changed.Notify()
			s.rollouts.gone.began.Notify()
			r.lead(ctx)
		})
	}))
}

// newOwn returns what follows the kinds of Hookgate's own.
func (s *Source) newOwn(
	mgr manager.Manager, r *reconciler, jobs *hookjob.Cluster, problems *watchProblems,
) (*own, error) {
	// What gateways write has not the filter's label.
	byObject := map[client.Object]cache.ByObject{
		&v1alpha1.ExtensionRolloutRecord{}: {Label: labels.Everything()},
		&v1alpha1.ClusterRecord{}:          {Label: labels.Everything()},
	}
	if s.config.OwnNamespace != "" {
		byObject[&appsv1.ControllerRevision{}] = lastValidIn(s.config.OwnNamespace)
	}
	objects, err := cache.New(s.config.REST, cache.Options{
		Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(), DefaultWatchErrorHandler: problems.handle,
		DefaultLabelSelector: s.watchFilter(), DefaultTransform: cache.TransformStripManagedFields(),
		ByObject: byObject,
	})
	if err != nil {
		return nil, err
	}
	o := &own{
		hooks: s.config.Catalog, reconcile: r.reconcileNamed, served: s.served, client: mgr.GetClient(), cache: objects,
		leadership: s.leadership, logger: s.config.Logger, readOnly: s.config.ReadOnly, changed: notify.NewSignal(),
	}
	if s.config.OwnNamespace != "" {
		o.records = newLastValid(s.config.OwnNamespace, o)
		o.kinds = []followed{o.records} // before the kinds that they are of
	}
	s.params.changed = o.changed.Notify
	s.places.live, s.places.client = mgr.GetAPIReader(), mgr.GetClient()
	s.rollouts.live, s.rollouts.client = mgr.GetAPIReader(), mgr.GetClient()
	rules := allkinds.Rules(allkinds.Config{
		Hooks: s.config.Catalog, Conditions: s.compiler, Types: s.types, Rollout: s.rollouts.engine.Compile,
		Rules: hookrule.NewCompiler(s.config.Catalog, s.compiler, s.types, time.Now).
			WithParams(ruleReads{s.params, s.places}).WithPlaces(s.places),
		Jobs: hookjob.NewCompiler(s.config.Catalog, s.compiler, s.types, &s.config.HookJobs, jobs),
	})
	ofClusters := newRecords(clusterRecordKind, o)
	s.places.use(ofClusters)
	o.kinds = append(o.kinds, newRolloutRecords(s.rollouts.engine, o), ofClusters)
	for i, of := range s.sets {
		f := newFollower(o, rules[i], of.Set)
		f.yields = f.isKind(hookjob.Kind) && len(s.config.HookJobs.Namespaces) == 0
		o.kinds = append(o.kinds, f)
	}
	problems.missing = o.setAbsent
	return o, nil
}

// definitions returns the definitions for the configured References, which the manager runs, or nil without References.
func (s *Source) definitions(ctx context.Context, mgr manager.Manager) (*definitions, error) {
	if s.config.References == nil {
		return nil, nil
	}
	d, err := newDefinitions(s.config.REST, s.config.References, s.config.Logger)
	if err != nil {
		return nil, err
	}
	if err := d.follow(ctx); err != nil {
		return nil, err
	}
	return d, mgr.Add(manager.RunnableFunc(d.cache.Start))
}
