// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hookgate/hookgate/api/v1alpha1"
	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/text"
	"github.com/hookgate/hookgate/registry"
)

// Verdict says whether a policy is in effect, or a chain can be called, and why. The same objects give the same text.
type Verdict struct {
	Reason  string // one of the reasons of the condition Accepted, or Ready
	Message string
}

// Verdictf returns a Verdict with a message.
func Verdictf(reason, format string, args ...any) Verdict {
	return Verdict{Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// Accepted reports whether the policy is in effect.
func (v Verdict) Accepted() bool { return v.Reason == v1alpha1.AcceptedReason }

// AcceptedCondition returns the verdict as the condition Accepted of that generation of the policy, without a time.
func (v Verdict) AcceptedCondition(generation int64) metav1.Condition {
	return v.condition(v1alpha1.AcceptedCondition, v.Accepted(), generation)
}

func (v Verdict) condition(of string, isTrue bool, generation int64) metav1.Condition {
	status := metav1.ConditionFalse
	if isTrue {
		status = metav1.ConditionTrue
	}
	return metav1.Condition{
		Type: of, Status: status, ObservedGeneration: generation, Reason: v.Reason, Message: v.Message,
	}
}

// Ready reports whether the chain that v is the verdict on can be called.
func (v Verdict) Ready() bool {
	switch v.Reason {
	case v1alpha1.ReadyReason, v1alpha1.SeveralOfferedReason, v1alpha1.AuditReason, v1alpha1.AbortedReason:
		return true
	}
	return false
}

// ReadyCondition returns the verdict on a chain as the condition Ready of that generation of it, without a time.
func (v Verdict) ReadyCondition(generation int64) metav1.Condition {
	return v.condition(v1alpha1.ReadyCondition, v.Ready(), generation)
}

// maxOffered is how many handlers a message names that are offered beside each other.
const maxOffered = 10

// SeveralOffered says which handlers of h are offered, and more that are offered besides, if Cluster API takes fewer.
// It returns nothing otherwise.
func SeveralOffered(s *registry.Snapshot, h *catalog.Hook, more ...string) string {
	if !h.OneHandler {
		return ""
	}
	return SeveralOf(s, h.GroupHook(), more...)
}

// SeveralOf is SeveralOffered for a hook of which Cluster API takes one handler.
func SeveralOf(s *registry.Snapshot, gh hook.GroupHook, more ...string) string {
	offered := append(s.OfferedOf(gh), more...)
	if len(offered) < 2 {
		return ""
	}
	return fmt.Sprintf("Cluster API accepts only one handler of %s, but %d are offered: %s; put them into one %s",
		gh.Hook, len(offered), text.Join(offered, ", ", maxOffered), registry.ChainKind)
}
