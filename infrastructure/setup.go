// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package infrastructure

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/hookgate/hookgate/caller"
	"github.com/hookgate/hookgate/infrastructure/internal/calls"
	"github.com/hookgate/hookgate/infrastructure/internal/webhook"
	"github.com/hookgate/hookgate/infrastructure/parameters"
	infrav1 "github.com/hookgate/hookgate/infrastructure/v1alpha1"
	"github.com/hookgate/hookgate/internal/base/limits"
)

// The defaults of a Config: how many objects of each kind are reconciled at the same time, most of which wait for
// extensions, and how many calls are in flight, in all and for one InfrastructureClass.
const (
	DefaultClassConcurrency   = 10
	DefaultClusterConcurrency = 50
	DefaultMachineConcurrency = 100
	DefaultPoolConcurrency    = 50

	DefaultCalls         = limits.DefaultInfrastructureCalls
	DefaultCallsPerClass = limits.DefaultClassCalls
)

// Config configures the controllers. Gateway, Metrics, Logger and Namespace are required.
type Config struct {
	Gateway *caller.Client
	Metrics *Metrics
	Logger  *slog.Logger
	// Calls and CallsPerClass bound the calls in flight. Zero means the defaults.
	Calls, CallsPerClass int
	// WatchFilter limits the objects to those with this value of the label cluster.x-k8s.io/watch-filter. Empty means all.
	WatchFilter string
	// Namespace is the namespace of the controllers, which has the Secrets of HookgateClusterIdentities. The controllers
	// watch their metadata.
	Namespace string
	// The numbers of objects that are reconciled at the same time. Zero means the defaults.
	ClassConcurrency, ClusterConcurrency, MachineConcurrency, PoolConcurrency int
}

// classIndex is the name of the indexes of objects by their class, identityIndex that of HookgateClusters by their
// identity, and clusterIndex that of templates by their Cluster.
const (
	classIndex    = "infrastructureClass"
	identityIndex = "identity"
	clusterIndex  = "cluster"
)

// Webhooks returns the handler of the webhooks that validate the kinds of the provider. The reader needs their classes,
// HookgateClusterIdentities, HookgateClusters, Clusters and Namespaces; a cache is enough.
func Webhooks(reader client.Reader, logger *slog.Logger) http.Handler {
	return webhook.New(webhook.Config{Reader: reader, Schemas: parameters.NewCache(), Logger: logger})
}

// Setup adds the controllers to a manager, whose scheme needs AddToScheme.
func Setup(ctx context.Context, mgr manager.Manager, c Config) error {
	if c.Gateway == nil || c.Metrics == nil || c.Logger == nil || c.Namespace == "" {
		return errors.New("infrastructure: Gateway, Metrics, Logger and Namespace are required")
	}
	gateway, err := calls.New(calls.Config{
		Gateway: c.Gateway, Calls: c.Calls, CallsPerClass: c.CallsPerClass, Observer: c.Metrics,
	})
	if err != nil {
		return err
	}
	if err := index(ctx, mgr.GetFieldIndexer()); err != nil {
		return fmt.Errorf("infrastructure: index: %w", err)
	}
	b := &base{
		client: mgr.GetClient(), live: mgr.GetAPIReader(), calls: gateway, schemas: parameters.NewCache(),
		secrets: newSecrets(mgr.GetAPIReader(), mgr.GetClient(), time.Now),
		ids:     newProviderIDs(mgr.GetClient()), metrics: c.Metrics,
		events: newRecorder(mgr.GetEventRecorder("hookgate-infrastructure"), time.Now),
		logger: c.Logger, now: time.Now, watchFilter: c.WatchFilter, namespace: c.Namespace,
	}
	var watched []client.ListOption
	if c.WatchFilter != "" {
		watched = append(watched, client.MatchingLabels{clusterv1.WatchLabel: c.WatchFilter})
	}
	c.Metrics.observe(mgr.GetClient(), watched...)
	if err := b.watchSecrets(mgr); err != nil {
		return fmt.Errorf("infrastructure: %w", err)
	}
	if err := errors.Join(
		b.setUpIdentities(mgr, cmp.Or(c.ClassConcurrency, DefaultClassConcurrency)),
		b.setUpClasses(mgr, cmp.Or(c.ClassConcurrency, DefaultClassConcurrency)),
		b.setUpClusters(mgr, cmp.Or(c.ClusterConcurrency, DefaultClusterConcurrency)),
		b.setUpMachines(mgr, cmp.Or(c.MachineConcurrency, DefaultMachineConcurrency)),
		b.setUpPools(mgr, cmp.Or(c.PoolConcurrency, DefaultPoolConcurrency)),
		b.setUpTemplates(mgr, cmp.Or(c.ClassConcurrency, DefaultClassConcurrency)),
	); err != nil {
		return fmt.Errorf("infrastructure: %w", err)
	}
	return nil
}

// index adds the indexes to the cache.
func index(ctx context.Context, indexer client.FieldIndexer) error {
	recorded := func(o client.Object) []string { return present(o.GetAnnotations()[infrav1.ClassAnnotation]) }
	return errors.Join(
		indexer.IndexField(ctx, &infrav1.HookgateCluster{}, externalIDIndex, func(o client.Object) []string {
			return present(o.(*infrav1.HookgateCluster).Spec.ExternalID)
		}),
		indexer.IndexField(ctx, &infrav1.HookgateMachine{}, externalIDIndex, func(o client.Object) []string {
			return present(o.(*infrav1.HookgateMachine).Spec.ExternalID)
		}),
		indexer.IndexField(ctx, &infrav1.HookgateMachinePool{}, externalIDIndex, func(o client.Object) []string {
			return present(o.(*infrav1.HookgateMachinePool).Spec.ExternalID)
		}),
		indexer.IndexField(ctx, &infrav1.HookgateCluster{}, classIndex, func(o client.Object) []string {
			return present(o.(*infrav1.HookgateCluster).Spec.InfrastructureClassName)
		}),
		indexer.IndexField(ctx, &infrav1.HookgateCluster{}, identityIndex, func(o client.Object) []string {
			return present(identityOf(o.(*infrav1.HookgateCluster)))
		}),
		indexer.IndexField(ctx, &infrav1.HookgateMachineTemplate{}, clusterIndex, templateCluster),
		indexer.IndexField(ctx, &infrav1.HookgateMachine{}, classIndex, recorded),
		indexer.IndexField(ctx, &infrav1.HookgateMachinePool{}, classIndex, recorded),
		indexer.IndexField(ctx, &infrav1.HookgateMachine{}, providerIDIndex, func(o client.Object) []string {
			return present(o.(*infrav1.HookgateMachine).Spec.ProviderID)
		}),
		indexer.IndexField(ctx, &infrav1.HookgateMachinePool{}, providerIDIndex, func(o client.Object) []string {
			spec := &o.(*infrav1.HookgateMachinePool).Spec
			return append(present(spec.ProviderID), spec.ProviderIDList...)
		}),
	)
}

func present(s string) []string {
	if s == "" {
		return nil
	}
	return []string{s}
}

func options(concurrency int) controller.Options {
	// Managers of one process, as in tests, have controllers of the same names.
	return controller.Options{MaxConcurrentReconciles: concurrency, SkipNameValidation: new(true)}
}

func mapped(f func(context.Context, client.Object) []reconcile.Request) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(f)
}

// deletions lets only the events pass that say that an object is gone.
var deletions = predicate.Funcs{
	CreateFunc:  func(event.CreateEvent) bool { return false },
	UpdateFunc:  func(event.UpdateEvent) bool { return false },
	GenericFunc: func(event.GenericEvent) bool { return false },
}

func (r *base) setUpClasses(mgr manager.Manager, concurrency int) error {
	return builder.ControllerManagedBy(mgr).Named("infrastructureclass").
		For(&infrav1.InfrastructureClass{}, builder.WithPredicates(updated(notStatus))).
		Watches(&infrav1.HookgateCluster{}, mapped(classOf), builder.WithPredicates(deletions)).
		Watches(&infrav1.HookgateMachine{}, mapped(classOf), builder.WithPredicates(deletions)).
		Watches(&infrav1.HookgateMachinePool{}, mapped(classOf), builder.WithPredicates(deletions)).
		WithOptions(options(concurrency)).
		Complete(quiet{&classes{base: r, pace: newScheduler(r.now)}})
}

// watchSecrets adds the watch of the metadata of the Secrets in the namespace of the controllers to a manager.
func (r *base) watchSecrets(mgr manager.Manager) error {
	var err error
	if r.watch, err = cache.New(mgr.GetConfig(), cache.Options{
		HTTPClient: mgr.GetHTTPClient(), Mapper: mgr.GetRESTMapper(),
		DefaultNamespaces: map[string]cache.Config{r.namespace: {}}, DefaultTransform: cache.TransformStripManagedFields(),
	}); err != nil {
		return fmt.Errorf("watch Secrets: %w", err)
	}
	return mgr.Add(r.watch)
}

// secretsOf returns the source of the objects whose identity has a Secret that changes.
func (r *base) secretsOf(byIdentity func(context.Context, client.Object) []reconcile.Request) source.Source {
	return source.Kind(r.watch, secretMetadata(), handler.TypedEnqueueRequestsFromMapFunc(r.rotated(byIdentity)))
}

func (r *base) setUpIdentities(mgr manager.Manager, concurrency int) error {
	return builder.ControllerManagedBy(mgr).Named("hookgateclusteridentity").
		For(&infrav1.HookgateClusterIdentity{}, builder.WithPredicates(updated(notStatus))).
		WatchesRawSource(r.secretsOf(itself)).
		WithOptions(options(concurrency)).
		Complete(quiet{&identities{base: r}})
}

func (r *base) setUpClusters(mgr manager.Manager, concurrency int) error {
	return builder.ControllerManagedBy(mgr).Named("hookgatecluster").
		For(&infrav1.HookgateCluster{}, builder.WithPredicates(updated(notStatus))).
		Watches(&clusterv1.Cluster{}, mapped(clusterToInfra), builder.WithPredicates(updated(clusterChanged))).
		Watches(&infrav1.InfrastructureClass{}, mapped(func(ctx context.Context, o client.Object) []reconcile.Request {
			return r.recorded(ctx, &infrav1.HookgateClusterList{}, o.GetName())
		}), builder.WithPredicates(updated(classChanged))).
		Watches(&infrav1.HookgateClusterIdentity{}, mapped(r.byIdentity(itself)), builder.WithPredicates(updated(notStatus))).
		WatchesRawSource(r.secretsOf(r.byIdentity(itself))).
		Watches(&infrav1.HookgateMachine{}, mapped(r.toClusters), builder.WithPredicates(deletions)).
		Watches(&infrav1.HookgateMachinePool{}, mapped(r.toClusters), builder.WithPredicates(deletions)).
		WithOptions(options(concurrency)).
		Complete(quiet{requeued[infrav1.HookgateCluster](r, &clusters{base: r, pace: newScheduler(r.now)})})
}

func (r *base) setUpMachines(mgr manager.Manager, concurrency int) error {
	return builder.ControllerManagedBy(mgr).Named("hookgatemachine").
		For(&infrav1.HookgateMachine{}, builder.WithPredicates(updated(notStatus))).
		Watches(&clusterv1.Machine{}, mapped(machineToInfra), builder.WithPredicates(updated(notStatus))).
		Watches(&clusterv1.Cluster{}, mapped(r.toMachines), builder.WithPredicates(updated(clusterChanged))).
		Watches(&infrav1.HookgateCluster{}, mapped(r.toMachines), builder.WithPredicates(updated(infraChanged))).
		Watches(&infrav1.HookgateClusterIdentity{}, mapped(r.byIdentity(r.toMachines)),
			builder.WithPredicates(updated(notStatus))).
		WatchesRawSource(r.secretsOf(r.byIdentity(r.toMachines))).
		Watches(&infrav1.InfrastructureClass{},
			mapped(r.byClass(func() client.ObjectList { return &infrav1.HookgateMachineList{} })),
			builder.WithPredicates(updated(classChanged))).
		WithOptions(options(concurrency)).
		Complete(quiet{requeued[infrav1.HookgateMachine](r,
			&machines{base: r, pace: newScheduler(r.now), creation: newCreation()})})
}

func (r *base) setUpPools(mgr manager.Manager, concurrency int) error {
	return builder.ControllerManagedBy(mgr).Named("hookgatemachinepool").
		For(&infrav1.HookgateMachinePool{}, builder.WithPredicates(updated(notStatus))).
		Watches(&clusterv1.MachinePool{}, mapped(machinePoolToInfra), builder.WithPredicates(updated(notStatus))).
		Watches(&infrav1.HookgateMachine{}, mapped(poolOf), builder.WithPredicates(updated(memberChanged))).
		Watches(&clusterv1.Machine{}, mapped(r.toPool), builder.WithPredicates(updated(wishChanged))).
		Watches(&clusterv1.Cluster{}, mapped(r.toPools), builder.WithPredicates(updated(clusterChanged))).
		Watches(&infrav1.HookgateCluster{}, mapped(r.toPools), builder.WithPredicates(updated(infraChanged))).
		Watches(&infrav1.HookgateClusterIdentity{}, mapped(r.byIdentity(r.toPools)),
			builder.WithPredicates(updated(notStatus))).
		WatchesRawSource(r.secretsOf(r.byIdentity(r.toPools))).
		Watches(&infrav1.InfrastructureClass{},
			mapped(r.byClass(func() client.ObjectList { return &infrav1.HookgateMachinePoolList{} })),
			builder.WithPredicates(updated(capacitiesChanged))).
		WithOptions(options(concurrency)).
		Complete(quiet{requeued[infrav1.HookgateMachinePool](r,
			&pools{base: r, pace: newScheduler(r.now), missing: newMissing(), absent: newMissing()})})
}

func (r *base) setUpTemplates(mgr manager.Manager, concurrency int) error {
	return builder.ControllerManagedBy(mgr).Named("hookgatemachinetemplate").
		For(&infrav1.HookgateMachineTemplate{}, builder.WithPredicates(updated(notStatus))).
		Watches(&clusterv1.Cluster{}, mapped(r.toTemplates), builder.WithPredicates(updated(clusterChanged))).
		Watches(&infrav1.HookgateCluster{}, mapped(r.toTemplates), builder.WithPredicates(updated(infraChanged))).
		Watches(&infrav1.InfrastructureClass{}, mapped(r.throughClusters(classIndex, r.toTemplates)),
			builder.WithPredicates(updated(capacitiesChanged))).
		WithOptions(options(concurrency)).
		Complete(quiet{&templates{base: r}})
}
