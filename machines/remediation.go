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
	"k8s.io/apimachinery/pkg/api/equality"
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
		b.config.Logger.Info("there are no HookgateRemediations, because their kinds are not installed",
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
		// Its own writes of conditions are no reason to call anyone again.
		For(&remediationv1.HookgateRemediation{}, builder.WithPredicates(predicate.Funcs{
			UpdateFunc: func(e event.UpdateEvent) bool { return notStatus(e.ObjectOld, e.ObjectNew) },
		})).
		// A remediation has the name of its Machine. It waits for nothing of the Machine but the end of a pause.
		Watches(&clusterv1.Machine{}, &handler.EnqueueRequestForObject{},
			builder.WithPredicates(predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
				return notStatus(e.ObjectOld, e.ObjectNew)
			}})).
		Watches(anyCluster(), handler.EnqueueRequestsFromMapFunc(b.ofCluster),
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
	switch {
	case o.Spec.Progress == nil:
		return reconcile.Result{}, r.begin(ctx, o, m) // the write wakes it up
	case len(o.OwnerReferences) == 0:
		return reconcile.Result{RequeueAfter: leastWait}, r.begin(ctx, o, m)
	}
	state := decision{progress: *o.Spec.Progress}
	switch state.progress.Phase {
	case remediationv1.OwnerRemediating:
		state.next, err = r.handOver(ctx, o, m)
		if err != nil || meta.FindStatusCondition(o.Status.Conditions, remediationv1.RemediatingCondition) != nil {
			return state.next, err
		}
		state.message = ownerIsTo // a move or a backup has lost why
		return state.next, r.write(ctx, o, &state)
	case remediationv1.Remediating:
		if !state.timedOut(o, r.now()) {
			answer, holders, err := r.config.Hooks.Call(ctx, r.remediate, &machinesv1alpha1.RemediateMachineRequest{
				Handler: o.Spec.Handler, Settings: o.Spec.Settings, Machine: s.rawMachine, Cluster: s.rawCluster,
				RemediationId: state.progress.ID, Attempt: state.progress.Attempt,
			})
			state.remediated(o, outcomeOf(answer, holders, err), r.now())
		}
	case remediationv1.Verifying:
		state.timedOut(o, r.now())
	default:
		answer, holders, err := r.ask(ctx, o, s)
		state.approve(o, outcomeOf(answer, holders, err), r.now())
	}
	if state.progress.Phase == remediationv1.OwnerRemediating {
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
		Settings: o.Spec.Settings, Machine: s.rawMachine, Cluster: s.rawCluster, RemediationId: o.Spec.Progress.ID,
	})
}

// begin notes what does not change while a remediation is moved or comes back from a backup: the id in its requests,
// which is the UID that it has now. It makes the Machine own a remediation whose owners a backup has lost.
func (r *remediation) begin(ctx context.Context, o *remediationv1.HookgateRemediation, m *clusterv1.Machine) error {
	change := map[string]any{}
	if len(o.OwnerReferences) == 0 {
		change["metadata"] = map[string]any{"ownerReferences": []metav1.OwnerReference{{
			APIVersion: clusterv1.GroupVersion.String(), Kind: "Machine", Name: m.Name, UID: m.UID,
		}}}
	}
	if o.Spec.Progress == nil {
		change["spec"] = map[string]any{
			"progress": remediationv1.RemediationProgress{ID: string(o.UID), Phase: remediationv1.Pending},
		}
	}
	return r.patch(o, change, func(patch client.Patch) error {
		return r.client.Patch(ctx, o.DeepCopy(), patch, client.FieldOwner(fieldOwner))
	})
}

// patch makes a merge patch of a change, which fails with a conflict if the remediation is not as it was read.
func (*remediation) patch(
	o *remediationv1.HookgateRemediation, change map[string]any, apply func(client.Patch) error,
) error {
	metadata, _ := change["metadata"].(map[string]any)
	if metadata == nil {
		metadata = map[string]any{}
		change["metadata"] = metadata
	}
	metadata["resourceVersion"] = o.ResourceVersion
	patch, err := json.Marshal(change)
	if err != nil {
		return fmt.Errorf("write a patch: %w", err)
	}
	return apply(client.RawPatch(types.MergePatchType, patch))
}

// machineOf returns the Machine that a remediation is for, or nil if it does not exist. A remediation without owners,
// which has come back from a backup, is for the Machine with its name.
func (r *remediation) machineOf(
	ctx context.Context, o *remediationv1.HookgateRemediation,
) (*clusterv1.Machine, error) {
	owners := o.OwnerReferences
	if len(owners) == 0 {
		owners = []metav1.OwnerReference{{Kind: "Machine", Name: o.Name}}
	}
	for _, ref := range owners {
		if ref.Kind != "Machine" {
			continue
		}
		m := &clusterv1.Machine{}
		err := r.client.Get(ctx, client.ObjectKey{Namespace: o.Namespace, Name: ref.Name}, m)
		if err != nil || ref.UID != "" && m.UID != ref.UID {
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
		return failing(o.Spec.Progress.AttemptStartTime.Time, r.now()), nil
	}
	return reconcile.Result{}, applyConditions(ctx, r.client, m, remediationOwner, []metav1.Condition{{
		Type: clusterv1.MachineOwnerRemediatedCondition, Status: metav1.ConditionFalse,
		Reason:             clusterv1.MachineOwnerRemediatedWaitingForRemediationReason,
		LastTransitionTime: metav1.NewTime(r.now()),
	}})
}

// write writes how far a remediation is and what it waits for, if either has changed, and an event about it.
func (r *remediation) write(ctx context.Context, o *remediationv1.HookgateRemediation, d *decision) error {
	condition := metav1.Condition{
		Type: remediationv1.RemediatingCondition, Status: metav1.ConditionTrue, Reason: string(d.progress.Phase),
		Message: text.Printable(d.message), ObservedGeneration: o.Generation,
	}
	if d.progress.Phase == remediationv1.OwnerRemediating {
		condition.Status = metav1.ConditionFalse
	}
	old := meta.FindStatusCondition(o.Status.Conditions, condition.Type)
	said := old != nil && old.Reason == condition.Reason && old.Message == condition.Message
	same := equality.Semantic.DeepEqual(&d.progress, o.Spec.Progress)
	if said && same {
		return nil
	}
	now := o.DeepCopy()
	if !said {
		meta.SetStatusCondition(&now.Status.Conditions, condition)
		err := r.patch(now, map[string]any{"status": map[string]any{"conditions": now.Status.Conditions}},
			func(patch client.Patch) error {
				return r.client.Status().Patch(ctx, now, patch, client.FieldOwner(fieldOwner))
			})
		if err != nil {
			return err
		}
	}
	if !same { // last, as it makes the remediation be looked at again
		err := r.patch(now, map[string]any{"spec": map[string]any{"progress": d.progress}},
			func(patch client.Patch) error { return r.client.Patch(ctx, now, patch, client.FieldOwner(fieldOwner)) })
		if err != nil {
			return err
		}
	}
	kind := corev1.EventTypeNormal
	if d.failed {
		kind = corev1.EventTypeWarning
	}
	r.events.Eventf(o, nil, kind, condition.Reason, "Remediate", "%s", text.Cut(condition.Message, limits.EventNoteBytes))
	return nil
}
