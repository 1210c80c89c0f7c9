// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package machines

import (
	"context"
	"fmt"
	"reflect"
	"time"

	"google.golang.org/protobuf/proto"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/hookgate/hookgate/catalog"
	machinesv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/machines/v1alpha1"
)

// phase is a place in the deletion of a Machine at which Cluster API waits for hooks.
type phase struct {
	hook       *catalog.Hook
	annotation string
	// reason is that of the Machine's condition Deleting while Cluster API waits.
	reason  string
	request func(s *subject) proto.Message
	// since returns when Cluster API began to wait.
	since func(*clusterv1.MachineDeletionStatus) time.Time
}

// lifecycle keeps the annotations of Machines, and calls the hooks of their lifecycle.
type lifecycle struct {
	*base
	phases      []phase // in the order in which Cluster API comes to them
	provisioned *catalog.Hook
}

func (b *base) newLifecycle() (*lifecycle, error) {
	r := &lifecycle{base: b}
	var err error
	if r.provisioned, err = b.hook(&machinesv1alpha1.AfterMachineProvisionedRequest{}); err != nil {
		return nil, err
	}
	r.phases = []phase{{
		annotation: DrainAnnotation, reason: clusterv1.MachineDeletingWaitingForPreDrainHookReason,
		request: func(s *subject) proto.Message {
			return &machinesv1alpha1.BeforeMachineDrainRequest{Machine: s.rawMachine, Cluster: s.rawCluster}
		},
		since: func(d *clusterv1.MachineDeletionStatus) time.Time { return d.WaitForPreDrainHookStartTime.Time },
	}, {
		annotation: TerminateAnnotation, reason: clusterv1.MachineDeletingWaitingForPreTerminateHookReason,
		request: func(s *subject) proto.Message {
			return &machinesv1alpha1.BeforeMachineTerminateRequest{Machine: s.rawMachine, Cluster: s.rawCluster}
		},
		since: func(d *clusterv1.MachineDeletionStatus) time.Time { return d.WaitForPreTerminateHookStartTime.Time },
	}}
	for i := range r.phases {
		if r.phases[i].hook, err = b.hook(r.phases[i].request(&subject{})); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// clusterIndex is the name of the index of Machines by their Cluster.
const clusterIndex = "spec.clusterName"

func (b *base) setUpLifecycle(ctx context.Context, mgr manager.Manager) error {
	r, err := b.newLifecycle()
	if err != nil {
		return err
	}
	if err := mgr.GetFieldIndexer().IndexField(ctx, &clusterv1.Machine{}, clusterIndex, func(o client.Object) []string {
		return []string{o.(*clusterv1.Machine).Spec.ClusterName} //nolint:forcetypeassert // it is one
	}); err != nil {
		return fmt.Errorf("index Machines: %w", err)
	}
	return builder.ControllerManagedBy(mgr).Named("machine-hooks").
		For(&clusterv1.Machine{}, builder.WithPredicates(predicate.Funcs{UpdateFunc: machineChanged})).
		Watches(anyCluster(), handler.EnqueueRequestsFromMapFunc(r.ofCluster),
			builder.WithPredicates(predicate.Funcs{UpdateFunc: clusterChanged})).
		WatchesRawSource(b.sweep(func(ctx context.Context, _ bool) ([]reconcile.Request, error) {
			list := &clusterv1.MachineList{}
			err := b.client.List(ctx, list, client.UnsafeDisableDeepCopy)
			return requestsFor(list.Items, err)
		})).
		WithOptions(b.options()).Complete(quiet{r})
}

// machineChanged reports whether anything has changed by which handlers may be chosen, or for which hooks are called.
func machineChanged(e event.UpdateEvent) bool {
	before, ok := e.ObjectOld.(*clusterv1.Machine)
	after, okAfter := e.ObjectNew.(*clusterv1.Machine)
	return !ok || !okAfter || notStatus(before, after) || !reflect.DeepEqual(before.Status, after.Status)
}

func clusterChanged(e event.UpdateEvent) bool { return notStatus(e.ObjectOld, e.ObjectNew) }

// notStatus reports whether more than the status of an object has changed.
func notStatus(before, after client.Object) bool {
	return before.GetGeneration() != after.GetGeneration() ||
		!reflect.DeepEqual(before.GetLabels(), after.GetLabels()) ||
		!reflect.DeepEqual(before.GetAnnotations(), after.GetAnnotations()) ||
		before.GetDeletionTimestamp().IsZero() != after.GetDeletionTimestamp().IsZero()
}

// ofCluster returns the Machines of a Cluster.
func (b *base) ofCluster(ctx context.Context, c client.Object) []reconcile.Request {
	list := &clusterv1.MachineList{}
	if err := b.client.List(ctx, list, client.InNamespace(c.GetNamespace()),
		client.MatchingFields{clusterIndex: c.GetName()}, client.UnsafeDisableDeepCopy); err != nil {
		b.config.Logger.Error("the Machines of a Cluster cannot be listed", "namespace", c.GetNamespace(),
			"cluster", c.GetName(), "error", err)
		return nil
	}
	requests, _ := requestsFor(list.Items, nil)
	return requests
}

// Reconcile implements reconcile.Reconciler.
func (r *lifecycle) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	m := &clusterv1.Machine{}
	if err := r.client.Get(ctx, req.NamespacedName, m); err != nil {
		r.metrics.gone(req.NamespacedName)
		return reconcile.Result{}, err
	}
	if !r.watched(m) {
		return reconcile.Result{}, nil
	}
	s, err := r.subjectOf(ctx, m)
	if err != nil || s.paused() {
		return reconcile.Result{}, err
	}
	if !m.DeletionTimestamp.IsZero() {
		return r.reconcileDelete(ctx, s)
	}
	if err := r.annotate(ctx, s); err != nil {
		return reconcile.Result{}, err
	}
	return r.tell(ctx, s)
}

// annotate puts the annotations on a Machine for which there are handlers, and takes them off others. What is not known
// stays as it is.
func (r *lifecycle) annotate(ctx context.Context, s *subject) error {
	change := map[string]any{}
	for i := range r.phases {
		p := &r.phases[i]
		wanted := false
		if !s.released() {
			names, err := r.config.Hooks.Targets(ctx, p.hook, p.request(s))
			if err != nil {
				r.metrics.unknown.WithLabelValues(p.hook.Hook).Inc()
				r.config.Logger.Debug("it is not known which handlers a Machine has", "hook", p.hook.Hook,
					"namespace", s.machine.Namespace, "machine", s.machine.Name, "error", err)
				continue
			}
			wanted = len(names) > 0
		}
		switch _, has := s.machine.Annotations[p.annotation]; {
		case wanted && !has:
			change[p.annotation] = hookgate
		case has && !wanted:
			change[p.annotation] = nil
		}
	}
	if len(change) == 0 {
		return nil
	}
	// Not on a Machine that is being deleted by now.
	return annotate(ctx, r.client, s.machine, change, true)
}

// tell calls AfterMachineProvisioned until it has succeeded.
func (r *lifecycle) tell(ctx context.Context, s *subject) (reconcile.Result, error) {
	m := s.machine
	_, told := m.Annotations[ProvisionedAnnotation]
	if told || !ptr.Deref(m.Status.Initialization.InfrastructureProvisioned, false) {
		return reconcile.Result{}, nil
	}
	request := &machinesv1alpha1.AfterMachineProvisionedRequest{Machine: s.rawMachine, Cluster: s.rawCluster}
	names, err := r.config.Hooks.Targets(ctx, r.provisioned, request)
	if err != nil || len(names) == 0 {
		return reconcile.Result{}, nil //nolint:nilerr // the next sweep looks again
	}
	answer, holders, err := r.config.Hooks.Call(ctx, r.provisioned, request)
	if _, refused := catalog.FailureOf(answer); err != nil || refused {
		since := m.CreationTimestamp.Time
		if c := meta.FindStatusCondition(m.Status.Conditions, clusterv1.InfrastructureReadyCondition); c != nil {
			since = c.LastTransitionTime.Time
		}
		r.warn(m, r.provisioned, "Failed", said(answer, holders, err))
		return failing(since, r.now()), nil
	}
	return reconcile.Result{}, annotate(ctx, r.client, m, map[string]any{ProvisionedAnnotation: hookgate}, false)
}
