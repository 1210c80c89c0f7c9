// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package machines

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/hookgate/hookgate/catalog"
	machinesv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/machines/v1alpha1"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/base/text"
	remediationv1 "github.com/hookgate/hookgate/machines/v1alpha1"
)

// remediationOwner is the field manager of the condition by which the owner of a Machine is asked to remediate it. It
// stays when the controllers apply other conditions.
const remediationOwner = "hookgate-remediation"

// remediation remediates Machines, one HookgateRemediation each.
type remediation struct {
	*base
	before, remediate *catalog.Hook
}

// lookForKinds is how often the controllers look for kinds that are not installed.
const lookForKinds = time.Minute

// errInstalled ends the controllers, which start again with what has been installed.
var errInstalled = errors.New("the kinds of machines.hookgate.dev have been installed")

func (b *base) setUpRemediation(mgr manager.Manager) error {
	kind := remediationv1.GroupVersion.WithKind(remediationv1.HookgateRemediationKind)
	_, err := mgr.GetRESTMapper().RESTMapping(kind.GroupKind(), kind.Version)
	switch {
	case meta.IsNoMatchError(err):
		b.config.Logger.Info("there are no HookgateRemediations, whose kinds are not installed",
			"advice", "to remediate Machines by hooks, install deploy/crd/machines")
		return mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
			tick := time.NewTicker(lookForKinds)
			defer tick.Stop()
			for {
				select {
				case <-ctx.Done():
					return nil
				case <-tick.C:
				}
				if _, err := mgr.GetRESTMapper().RESTMapping(kind.GroupKind(), kind.Version); err == nil {
					return errInstalled
				}
			}
		}))
	case err != nil:
		return fmt.Errorf("look for %s: %w", kind.Kind, err)
	}
	r := &remediation{base: b}
	if r.before, err = b.hook(&machinesv1alpha1.BeforeMachineRemediationRequest{}); err != nil {
		return err
	}
	if r.remediate, err = b.hook(&machinesv1alpha1.RemediateMachineRequest{}); err != nil {
		return err
	}
	return builder.ControllerManagedBy(mgr).Named("machine-remediation").
		For(&remediationv1.HookgateRemediation{}).
		// A remediation has the name of its Machine. It waits for nothing of the Machine but the end of a pause.
		Watches(&clusterv1.Machine{}, &handler.EnqueueRequestForObject{},
			builder.WithPredicates(predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
				return notStatus(e.ObjectOld, e.ObjectNew)
			}})).
		Watches(&clusterv1.Cluster{}, handler.EnqueueRequestsFromMapFunc(b.ofCluster),
			builder.WithPredicates(predicate.Funcs{UpdateFunc: clusterChanged})).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: b.config.Concurrency, SkipNameValidation: new(true),
		}).
		Complete(quiet{r})
}

// Reconcile implements reconcile.Reconciler.
func (r *remediation) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	o := &remediationv1.HookgateRemediation{}
	if err := r.client.Get(ctx, req.NamespacedName, o); err != nil {
		return reconcile.Result{}, err
	}
	m, err := r.machineOf(ctx, o)
	if err != nil || m == nil || !r.watched(m) || !o.DeletionTimestamp.IsZero() || !m.DeletionTimestamp.IsZero() {
		return reconcile.Result{}, err
	}
	s, err := r.subjectOf(ctx, m)
	if err != nil {
		return reconcile.Result{}, err
	}
	if paused, err := r.pause(ctx, o, s); err != nil || paused {
		return reconcile.Result{}, err
	}
	state := decision{status: *o.Status.DeepCopy()}
	switch o.Status.Phase {
	case remediationv1.OwnerRemediating:
		return r.handOver(ctx, o, m)
	case remediationv1.Remediating:
		if !state.timedOut(o, r.now()) {
			answer, holders, err := r.config.Hooks.Call(ctx, r.remediate, &machinesv1alpha1.RemediateMachineRequest{
				Handler: o.Spec.Handler, Settings: o.Spec.Settings, Machine: s.rawMachine, Cluster: s.rawCluster,
				RemediationId: string(o.UID), Attempt: o.Status.Attempt,
			})
			state.remediated(o, outcomeOf(answer, holders, err), r.now())
		}
	case remediationv1.Verifying:
		state.timedOut(o, r.now())
	default:
		answer, holders, err := r.ask(ctx, o, s)
		state.approve(o, outcomeOf(answer, holders, err), r.now())
	}
	if state.status.Phase == remediationv1.OwnerRemediating {
		if state.next, err = r.handOver(ctx, o, m); err != nil {
			return reconcile.Result{}, err
		}
	}
	return state.next, r.write(ctx, o, &state)
}

// ask asks the handlers of BeforeMachineRemediation. The answer is nil if there are none.
func (r *remediation) ask(
	ctx context.Context, o *remediationv1.HookgateRemediation, s *subject,
) (answer proto.Message, holders []string, err error) {
	return r.config.Hooks.Call(ctx, r.before, &machinesv1alpha1.BeforeMachineRemediationRequest{
		Settings: o.Spec.Settings, Machine: s.rawMachine, Cluster: s.rawCluster, RemediationId: string(o.UID),
	})
}

// machineOf returns the Machine that a remediation is for, or nil if it does not exist.
func (r *remediation) machineOf(
	ctx context.Context, o *remediationv1.HookgateRemediation,
) (*clusterv1.Machine, error) {
	for _, ref := range o.OwnerReferences {
		if ref.Kind != "Machine" {
			continue
		}
		m := &clusterv1.Machine{}
		err := r.client.Get(ctx, client.ObjectKey{Namespace: o.Namespace, Name: ref.Name}, m)
		if err != nil || m.UID != ref.UID {
			return nil, client.IgnoreNotFound(err)
		}
		return m, nil
	}
	return nil, nil
}

// handOver asks the owner of a Machine to remediate it, unless it has been asked. The MachineHealthCheck makes the
// remediation before it says on the Machine that it is unhealthy: until then, the result says when to look again.
func (r *remediation) handOver(
	ctx context.Context, o *remediationv1.HookgateRemediation, m *clusterv1.Machine,
) (reconcile.Result, error) {
	asked := meta.FindStatusCondition(m.Status.Conditions, clusterv1.MachineOwnerRemediatedCondition)
	switch {
	case asked != nil && asked.Status == metav1.ConditionFalse:
		return reconcile.Result{}, nil
	case !meta.IsStatusConditionFalse(m.Status.Conditions, clusterv1.MachineHealthCheckSucceededCondition):
		return failing(o.Status.AttemptStartTime.Time, r.now()), nil
	}
	return reconcile.Result{}, applyConditions(ctx, r.client, m, remediationOwner, []metav1.Condition{{
		Type: clusterv1.MachineOwnerRemediatedCondition, Status: metav1.ConditionFalse,
		Reason:             clusterv1.MachineOwnerRemediatedWaitingForRemediationReason,
		LastTransitionTime: metav1.NewTime(r.now()),
	}})
}

// write writes the status if it has changed, and an event when what is waited for has.
func (r *remediation) write(ctx context.Context, o *remediationv1.HookgateRemediation, d *decision) error {
	condition := metav1.Condition{
		Type: remediationv1.RemediatingCondition, Status: metav1.ConditionTrue, Reason: string(d.status.Phase),
		Message: text.Printable(d.message), ObservedGeneration: o.Generation,
	}
	if d.status.Phase == remediationv1.OwnerRemediating {
		condition.Status = metav1.ConditionFalse
	}
	old := meta.FindStatusCondition(o.Status.Conditions, condition.Type)
	said := old != nil && old.Reason == condition.Reason && old.Message == condition.Message
	if said && d.status.Attempt == o.Status.Attempt {
		return nil
	}
	meta.SetStatusCondition(&d.status.Conditions, condition)
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": o.ResourceVersion}, "status": d.status,
	})
	if err != nil {
		return fmt.Errorf("write the status: %w", err)
	}
	if err := r.client.Status().Patch(ctx, o.DeepCopy(), client.RawPatch(types.MergePatchType, patch),
		client.FieldOwner(fieldOwner)); err != nil {
		return err
	}
	kind := corev1.EventTypeNormal
	if d.failed {
		kind = corev1.EventTypeWarning
	}
	r.events.Eventf(o, nil, kind, condition.Reason, "Remediate", "%s", text.Cut(condition.Message, limits.EventNoteBytes))
	return nil
}
