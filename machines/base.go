// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package machines

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"google.golang.org/protobuf/proto"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/events"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/hookgate/hookgate/catalog"
	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
)

// base is what the controllers share.
type base struct {
	client  client.Client // reads from the cache
	live    client.Reader // reads from the API server
	events  events.EventRecorder
	config  *Config
	metrics *metrics
	now     func() time.Time
}

// setUp adds the controllers to a manager.
func (b *base) setUp(ctx context.Context, mgr manager.Manager) error {
	if b.config.Clusters {
		return b.setUpClusters(mgr)
	}
	return errors.Join(
		b.setUpLifecycle(ctx, mgr),
		b.setUpRemediation(mgr),
	)
}

// hook returns the hook of a request.
func (b *base) hook(request proto.Message) (*catalog.Hook, error) {
	h, ok := b.config.Catalog.ByRequest(request)
	if !ok {
		return nil, fmt.Errorf("the catalog has no hook of %s", request.ProtoReflect().Descriptor().FullName())
	}
	return h, nil
}

// options returns the options of a controller. Managers of one process, as after a lost Lease, have controllers of the
// same name.
func (b *base) options() controller.Options {
	return controller.Options{MaxConcurrentReconciles: b.config.Concurrency, SkipNameValidation: new(true)}
}

// watched reports whether an object is one of those that these controllers are for.
func (b *base) watched(o client.Object) bool {
	return b.config.WatchFilter == "" || o.GetLabels()[clusterv1.WatchLabel] == b.config.WatchFilter
}

// subject is a Machine and its Cluster, and both as requests have them.
type subject struct {
	machine *clusterv1.Machine
	cluster *unstructured.Unstructured // nil if it does not exist

	rawMachine, rawCluster *hooksv1alpha1.RawExtension
}

// subjectOf reads the Cluster of a Machine.
func (b *base) subjectOf(ctx context.Context, m *clusterv1.Machine) (*subject, error) {
	s := &subject{machine: m}
	var err error
	if s.rawMachine, err = rawOf(m.DeepCopy(), "Machine"); err != nil {
		return nil, err
	}
	c := anyCluster()
	if err := b.client.Get(ctx, client.ObjectKey{Namespace: m.Namespace, Name: m.Spec.ClusterName}, c); err != nil {
		return s, client.IgnoreNotFound(err)
	}
	s.cluster = c
	s.rawCluster, err = rawOf(c, "Cluster")
	return s, err
}

// anyCluster returns an empty Cluster that keeps members of newer releases of Cluster API, as requests have the whole
// Cluster: a rule reads the versions of pinned workers.
func anyCluster() *unstructured.Unstructured {
	c := &unstructured.Unstructured{}
	c.SetGroupVersionKind(clusterv1.GroupVersion.WithKind("Cluster"))
	return c
}

// paused reports whether nothing may be done about the Machine.
func (s *subject) paused() bool {
	_, machine := s.machine.Annotations[clusterv1.PausedAnnotation]
	return machine || s.clusterPaused()
}

// clusterPaused reports whether the Cluster exists and is paused.
func (s *subject) clusterPaused() bool {
	if s.cluster == nil {
		return false
	}
	// The API server lets nothing but a bool be there.
	paused, _, _ := unstructured.NestedBool(s.cluster.Object, "spec", "paused")
	return paused
}

// released reports whether the hooks that hold Machines are off for the Cluster.
func (s *subject) released() bool {
	if s.cluster == nil {
		return false
	}
	_, released := s.cluster.GetAnnotations()[ReleasedAnnotation]
	return released
}

// rawOf returns an object of Cluster API as requests have it. It changes the object.
func rawOf(o client.Object, kind string) (*hooksv1alpha1.RawExtension, error) {
	o.GetObjectKind().SetGroupVersionKind(clusterv1.GroupVersion.WithKind(kind))
	o.SetManagedFields(nil)
	data, err := json.Marshal(o)
	if err != nil {
		return nil, fmt.Errorf("write %s: %w", kind, err)
	}
	return &hooksv1alpha1.RawExtension{Raw: data}, nil
}

// The bounds of the time between two calls about one object.
const (
	leastWait = time.Second
	mostWait  = time.Hour   // that a handler may ask for
	slowest   = time.Minute // after failures
)

// requeueAfter returns when to call again a handler that has said so.
func requeueAfter(seconds int32) reconcile.Result {
	return reconcile.Result{RequeueAfter: min(max(time.Duration(seconds)*time.Second, leastWait), mostWait)}
}

// failing returns when to call again what has failed since then: soon at first, and once a minute in the end. It grows
// with the time since the beginning, so that a restart need not remember it.
func failing(since, now time.Time) reconcile.Result { return again(since, now, slowest) }

// again is failing with another longest time.
func again(since, now time.Time, most time.Duration) reconcile.Result {
	wait := min(max(now.Sub(since)/4, leastWait), most)
	return reconcile.Result{RequeueAfter: wait + rand.N(wait/10)} //nolint:gosec // replicas need not guess
}

// quiet is a reconciler whose conflicts are no errors: another writer was faster, and everything is decided again from
// what that wrote. Nor are objects that are gone.
type quiet struct{ reconcile.Reconciler }

// Reconcile implements reconcile.Reconciler.
func (q quiet) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	result, err := q.Reconciler.Reconcile(ctx, req)
	switch {
	case apierrors.IsConflict(err):
		return reconcile.Result{RequeueAfter: leastWait}, nil
	case apierrors.IsNotFound(err):
		return reconcile.Result{}, nil
	}
	return result, err
}
