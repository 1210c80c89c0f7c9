// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package infrastructure

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/hookgate/hookgate/infrastructure/v1alpha1"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/base/text"
)

// The reasons of events that are not those of conditions.
const (
	provisionedEvent = "Provisioned"
	deletedEvent     = "Deleted"
	abandonedEvent   = "Abandoned"
	notReadyEvent    = "NotReadyForLong"
)

const (
	// notReadyAfter is how long an object is not ready before an event says so. Machines boot in minutes.
	notReadyAfter = 15 * time.Minute
	// eventsKept is how many events are remembered. An event of one that is forgotten is repeated.
	eventsKept = 10_000
	// eventReason is the length of the longest reason of an event.
	eventReason = 128
)

// calm are the reasons of Ready for which an object is not ready in the course of things.
var calm = []string{
	infrav1.ProvisioningReason, infrav1.ScalingReason, infrav1.RollingOutReason, infrav1.DeletingReason,
	infrav1.WaitingForOwnerReason, infrav1.WaitingForClusterInfrastructureReason, infrav1.WaitingForBootstrapDataReason,
}

// notice is an event to be.
type notice struct{ kind, reason, action, note string }

// notices returns the events of a change of an object that has just been written, and of what has not changed for long.
func notices(before, after object, now time.Time) []notice {
	var list []notice
	add := func(kind, reason, action, note string) {
		if !slices.ContainsFunc(list, func(n notice) bool { return n.kind == kind && n.reason == reason }) {
			list = append(list, notice{kind, reason, action, note})
		}
	}
	if !wasProvisioned(before) && wasProvisioned(after) {
		add(corev1.EventTypeNormal, provisionedEvent, "Provision", "the extension has made it"+providerIDOf(after))
	}
	ready := func(o object) *metav1.Condition {
		return meta.FindStatusCondition(o.GetConditions(), infrav1.ReadyCondition)
	}
	was, is := ready(before), ready(after)
	switch {
	case is == nil:
	case is.Status == metav1.ConditionFalse && differs(was, is) && is.Reason == infrav1.DeletingReason:
		add(corev1.EventTypeNormal, is.Reason, "Delete", is.Message)
	case is.Status == metav1.ConditionFalse && differs(was, is) && !slices.Contains(calm, is.Reason):
		add(corev1.EventTypeWarning, is.Reason, "Reconcile", is.Message)
	case is.Status == metav1.ConditionTrue && was != nil && differs(was, is) && wasProvisioned(before):
		add(corev1.EventTypeNormal, is.Reason, "Reconcile", "the object is ready again")
	}
	synced := func(o object) *metav1.Condition {
		return meta.FindStatusCondition(o.GetConditions(), infrav1.SyncedCondition)
	}
	wasSynced, isSynced := synced(before), synced(after)
	switch {
	case isSynced == nil || !differs(wasSynced, isSynced):
	case isSynced.Status == metav1.ConditionFalse:
		add(corev1.EventTypeWarning, isSynced.Reason, "Call", isSynced.Message)
	case wasSynced != nil:
		add(corev1.EventTypeNormal, isSynced.Reason, "Call", "the extension answers again")
	}
	if is != nil && is.Status == metav1.ConditionFalse && now.Sub(is.LastTransitionTime.Time) >= notReadyAfter &&
		!meta.IsStatusConditionTrue(after.GetConditions(), infrav1.PausedCondition) {
		add(corev1.EventTypeWarning, notReadyEvent, "Reconcile", fmt.Sprintf("not ready for more than %d minutes: %s: %s",
			int(notReadyAfter.Minutes()), is.Reason, is.Message))
	}
	return list
}

// differs reports whether a condition says something else than before, apart from its message.
func differs(before, after *metav1.Condition) bool {
	return before == nil || before.Status != after.Status || before.Reason != after.Reason
}

// wasProvisioned reports whether what an object stands for has been provisioned.
func wasProvisioned(o object) bool {
	switch o := o.(type) {
	case *infrav1.HookgateCluster:
		return provisioned(o.Status.Initialization)
	case *infrav1.HookgateMachine:
		return provisioned(o.Status.Initialization)
	case *infrav1.HookgateMachinePool:
		return provisioned(o.Status.Initialization)
	}
	return false
}

// providerIDOf returns the provider ID of a machine for a text.
func providerIDOf(o object) string {
	if m, ok := o.(*infrav1.HookgateMachine); ok {
		return ": " + m.Spec.ProviderID
	}
	return ""
}

// recorder records events, of an object and a reason at most one in limits.EventInterval: a failure that comes and goes
// must not fill the API server. It is safe for concurrent use.
type recorder struct {
	events events.EventRecorder
	now    func() time.Time

	mu   sync.Mutex
	last *lru.Cache // the time of the last event, by eventKey
}

type eventKey struct {
	object types.UID
	reason string
}

func newRecorder(r events.EventRecorder, now func() time.Time) *recorder {
	return &recorder{events: r, now: now, last: lru.New(eventsKept)}
}

// record records an event of an object, if it is due.
func (r *recorder) record(o client.Object, n notice) {
	key := eventKey{o.GetUID(), n.reason}
	r.mu.Lock()
	last, ok := r.last.Get(key)
	if at, isTime := last.(time.Time); ok && isTime && r.now().Sub(at) < limits.EventInterval {
		r.mu.Unlock()
		return
	}
	r.last.Add(key, r.now())
	r.mu.Unlock()
	note := text.Cut(text.Printable(cmp.Or(n.note, n.reason)), limits.EventNoteBytes)
	r.events.Eventf(o, nil, n.kind, text.Cut(n.reason, eventReason), n.action, "%s", note)
}
