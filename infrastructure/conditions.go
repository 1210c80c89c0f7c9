// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package infrastructure

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/infrastructure/v1alpha1"
	infrav1 "github.com/hookgate/hookgate/infrastructure/v1alpha1"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/contract/redact"
)

// object is an object of one of the kinds.
type object interface {
	client.Object
	GetConditions() []metav1.Condition
	SetConditions(conditions []metav1.Condition)
}

// owned are the conditions that the controllers write themselves. The others are the extension's.
var owned = []string{
	infrav1.ReadyCondition, infrav1.SyncedCondition, infrav1.ParametersValidCondition,
	infrav1.CredentialsMovableCondition, infrav1.PausedCondition,
}

// set sets a condition, whose time changes with its status alone.
func set(o object, kind string, status metav1.ConditionStatus, reason, message string) {
	list := slices.Clone(o.GetConditions())
	meta.SetStatusCondition(&list, metav1.Condition{
		Type: kind, Status: status, Reason: reason, ObservedGeneration: o.GetGeneration(),
		Message: redact.Bounded(message, limits.ConditionMessageBytes),
	})
	slices.SortFunc(list, func(a, b metav1.Condition) int {
		return cmp.Or(cmp.Compare(rank(a.Type), rank(b.Type)), cmp.Compare(a.Type, b.Type))
	})
	o.SetConditions(list)
}

// saysReady reports whether the condition Ready is true.
func saysReady(o object) bool {
	return meta.IsStatusConditionTrue(o.GetConditions(), infrav1.ReadyCondition)
}

// setPaused sets the condition Paused.
func setPaused(o object, cause string) {
	if cause == "" {
		set(o, infrav1.PausedCondition, metav1.ConditionFalse, infrav1.NotPausedReason, "")
		return
	}
	set(o, infrav1.PausedCondition, metav1.ConditionTrue, infrav1.PausedReason, cause)
}

// setMovable sets the condition CredentialsMovable: stays says why the Secret stays behind.
func setMovable(o object, stays string) {
	if stays != "" {
		set(o, infrav1.CredentialsMovableCondition, metav1.ConditionFalse, infrav1.NotMovableReason, stays)
		return
	}
	set(o, infrav1.CredentialsMovableCondition, metav1.ConditionTrue, infrav1.MovableReason, "")
}

// setSynced records that the last call was answered.
func setSynced(o object) {
	set(o, infrav1.SyncedCondition, metav1.ConditionTrue, infrav1.SyncedReason, "")
}

// setUnsynced records why there is no answer to use. Everything else stays as it was seen last.
func setUnsynced(o object, reason, message string) {
	set(o, infrav1.SyncedCondition, metav1.ConditionFalse, reason, message)
}

// answered is what the answers about existing infrastructure have.
type answered interface {
	GetPhase() hooksv1alpha1.Phase
	GetReason() string
	GetMessage() string
	GetConditions() []*hooksv1alpha1.Condition
}

// setSeen records what an answer says about the infrastructure: Ready, and the conditions of the extension.
func setSeen(o object, a answered) {
	switch a.GetPhase() {
	case hooksv1alpha1.Phase_PHASE_READY:
		set(o, infrav1.ReadyCondition, metav1.ConditionTrue, infrav1.ReadyReason, "")
	case hooksv1alpha1.Phase_PHASE_FAILED:
		set(o, infrav1.ReadyCondition, metav1.ConditionFalse, a.GetReason(), a.GetMessage())
	default:
		reason := infrav1.ProvisioningReason
		if a.GetReason() != "" {
			reason = a.GetReason()
		}
		set(o, infrav1.ReadyCondition, metav1.ConditionFalse, reason, a.GetMessage())
	}
	seen := map[string]bool{}
	for _, c := range a.GetConditions() {
		set(o, c.GetType(), metav1.ConditionStatus(c.GetStatus()), c.GetReason(), c.GetMessage())
		seen[c.GetType()] = true
	}
	keep := slices.DeleteFunc(slices.Clone(o.GetConditions()), func(c metav1.Condition) bool {
		return !seen[c.Type] && !slices.Contains(owned, c.Type)
	})
	o.SetConditions(keep)
}

// rank orders the controllers' conditions before the extension's.
func rank(kind string) int {
	if i := slices.Index(owned, kind); i >= 0 {
		return i
	}
	return len(owned)
}

// block is why the extension is not called.
type block struct {
	reason, message string
	// synced says that the object can no longer be kept in sync, which it may have been: Synced shows it.
	synced bool
	// parameters says that the parameters are the cause, with the status of ParametersValid.
	parameters metav1.ConditionStatus
}

func waits(reason, message string) *block { return &block{reason: reason, message: message} }

func stops(reason, message string) *block {
	return &block{reason: reason, message: message, synced: true}
}

// apply records a block. What was provisioned stays Ready: nothing new was seen of it.
func (b *block) apply(o object, provisioned bool) {
	if b.parameters != "" {
		set(o, infrav1.ParametersValidCondition, b.parameters, b.reason, b.message)
	}
	if b.synced {
		setUnsynced(o, b.reason, b.message)
	}
	if !provisioned {
		set(o, infrav1.ReadyCondition, metav1.ConditionFalse, b.reason, b.message)
	}
}
