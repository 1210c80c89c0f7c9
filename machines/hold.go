// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package machines

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"google.golang.org/protobuf/proto"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/base/text"
	"github.com/hookgate/hookgate/internal/contract/redact"
)

// HeldCondition is the condition of a Machine that is being deleted, and held: the reason is the hook, and the message
// says who holds it. A Machine that is not held does not have it.
const HeldCondition = "HeldByHook"

// reconcileDelete calls the hook that Cluster API waits for.
func (r *lifecycle) reconcileDelete(ctx context.Context, s *subject) (reconcile.Result, error) {
	reason := ""
	if c := meta.FindStatusCondition(s.machine.Status.Conditions, clusterv1.MachineDeletingCondition); c != nil {
		reason = c.Reason
	}
	for i := range r.phases {
		p := &r.phases[i]
		if _, has := s.machine.Annotations[p.annotation]; has && p.reason == reason {
			return r.hold(ctx, s, p)
		}
	}
	r.metrics.gone(client.ObjectKeyFromObject(s.machine))
	return reconcile.Result{}, r.clear(ctx, s.machine)
}

// hold asks the handlers whether the Machine may go on.
func (r *lifecycle) hold(ctx context.Context, s *subject, p *phase) (reconcile.Result, error) {
	if s.released() {
		return r.letGo(ctx, s, p, "")
	}
	since := s.machine.DeletionTimestamp.Time
	if d := s.machine.Status.Deletion; d != nil && !p.since(d).IsZero() {
		since = p.since(d)
	}
	request := p.request(s)
	names, err := r.config.Hooks.Targets(ctx, p.hook, request)
	if err == nil && len(names) == 0 {
		return r.letGo(ctx, s, p, "")
	}
	var answer proto.Message
	var holders []string
	if err == nil {
		answer, holders, err = r.config.Hooks.Call(ctx, p.hook, request)
	}
	next := failing(since, r.now())
	if _, refused := catalog.FailureOf(answer); err == nil && !refused {
		blocking, ok := answer.(interface{ GetRetryAfterSeconds() int32 })
		if !ok || blocking.GetRetryAfterSeconds() == 0 {
			return r.letGo(ctx, s, p, "")
		}
		next = requeueAfter(blocking.GetRetryAfterSeconds())
	}
	message := said(answer, holders, err)
	if limit := r.config.MaxHold; limit > 0 {
		left := since.Add(limit).Sub(r.now())
		if left <= 0 {
			return r.letGo(ctx, s, p, message)
		}
		next.RequeueAfter = min(next.RequeueAfter, max(left, leastWait))
	}
	r.metrics.hold(client.ObjectKeyFromObject(s.machine), p.hook.Hook)
	return next, r.show(ctx, s.machine, p.hook, message)
}

// letGo takes the annotation off a Machine. overruled is what its holders said, if they did not let it go.
func (r *lifecycle) letGo(ctx context.Context, s *subject, p *phase, overruled string) (reconcile.Result, error) {
	m := s.machine
	if err := annotate(ctx, r.client, m, map[string]any{p.annotation: nil}, false); err != nil {
		return reconcile.Result{}, err
	}
	r.metrics.gone(client.ObjectKeyFromObject(m))
	if overruled != "" {
		r.metrics.ended.WithLabelValues(p.hook.Hook).Inc()
		r.warn(m, p.hook, "HoldEnded", fmt.Sprintf("released after %s, the longest time that the gateway holds a "+
			"Machine: %s", r.config.MaxHold, overruled))
	}
	return reconcile.Result{}, r.clear(ctx, m)
}

// said returns who does not let go, and why, as they say it.
func said(answer proto.Message, holders []string, err error) string {
	// Errors and Failures name their handlers.
	if err != nil {
		return redact.Bounded(err.Error(), limits.MergedMessageBytes)
	}
	message, refused := catalog.FailureOf(answer)
	if refused {
		return message
	}
	return redact.Bounded(strings.Join(holders, ", ")+": "+message, limits.MergedMessageBytes)
}

// show writes who holds a Machine into its condition, and an event when that changes.
func (r *lifecycle) show(ctx context.Context, m *clusterv1.Machine, h *catalog.Hook, message string) error {
	message = text.Printable(message)
	condition := metav1.Condition{
		Type: HeldCondition, Status: metav1.ConditionTrue, Reason: h.Hook, Message: message,
		ObservedGeneration: m.Generation, LastTransitionTime: metav1.NewTime(r.now()),
	}
	if old := meta.FindStatusCondition(m.Status.Conditions, HeldCondition); old != nil && old.Reason == h.Hook {
		if old.Status == condition.Status && old.Message == message {
			return nil
		}
		condition.LastTransitionTime = old.LastTransitionTime
	}
	if err := r.apply(ctx, m, []metav1.Condition{condition}); err != nil {
		return err
	}
	r.events.Eventf(m, nil, corev1.EventTypeNormal, "Held", h.Hook, "%s", text.Cut(message, limits.EventNoteBytes))
	return nil
}

// clear removes the condition from a Machine that is not held.
func (r *lifecycle) clear(ctx context.Context, m *clusterv1.Machine) error {
	if meta.FindStatusCondition(m.Status.Conditions, HeldCondition) == nil {
		return nil
	}
	return client.IgnoreNotFound(r.apply(ctx, m, []metav1.Condition{}))
}

// apply applies the conditions of the controllers' own.
func (r *lifecycle) apply(ctx context.Context, m *clusterv1.Machine, conditions []metav1.Condition) error {
	return applyConditions(ctx, r.client, m, fieldOwner, conditions)
}

// applyConditions makes these the conditions of a Machine that a field manager has.
func applyConditions(
	ctx context.Context, c client.Client, m *clusterv1.Machine, manager string, conditions []metav1.Condition,
) error {
	patch, err := json.Marshal(map[string]any{
		"apiVersion": clusterv1.GroupVersion.String(), "kind": "Machine",
		"metadata": map[string]any{"namespace": m.Namespace, "name": m.Name, "uid": m.UID},
		"status":   map[string]any{"conditions": conditions},
	})
	if err != nil {
		return fmt.Errorf("write conditions: %w", err)
	}
	return c.Status().Patch(ctx, m.DeepCopy(), client.RawPatch(types.ApplyPatchType, patch),
		client.FieldOwner(manager), client.ForceOwnership)
}

// warn writes an event about an object.
func (b *base) warn(o client.Object, h *catalog.Hook, reason, message string) {
	b.events.Eventf(o, nil, corev1.EventTypeWarning, reason, h.Hook, "%s",
		text.Cut(text.Printable(message), limits.EventNoteBytes))
}
