// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package machines

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	remediationv1 "github.com/hookgate/hookgate/machines/v1alpha1"
)

// pause reports whether a remediation is paused, and writes the condition Paused if it has changed.
func (r *remediation) pause(ctx context.Context, o *remediationv1.HookgateRemediation, s *subject) (bool, error) {
	condition := metav1.Condition{
		Type: clusterv1.PausedCondition, Status: metav1.ConditionFalse, Reason: clusterv1.NotPausedReason,
		ObservedGeneration: o.Generation,
	}
	causes := s.pausedBy(o)
	if len(causes) > 0 {
		condition.Status, condition.Reason = metav1.ConditionTrue, clusterv1.PausedReason
		condition.Message = strings.Join(causes, ", and ")
	}
	if !meta.SetStatusCondition(&o.Status.Conditions, condition) {
		return len(causes) > 0, nil
	}
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": o.ResourceVersion},
		"status":   map[string]any{"conditions": o.Status.Conditions},
	})
	if err != nil {
		return false, fmt.Errorf("write the status: %w", err)
	}
	err = r.client.Status().Patch(ctx, o, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(fieldOwner))
	return len(causes) > 0, err
}

// pausedBy lists what pauses a remediation of the Machine.
func (s *subject) pausedBy(o *remediationv1.HookgateRemediation) []string {
	var causes []string
	if s.clusterPaused() {
		causes = append(causes, "spec.paused of the Cluster is true")
	}
	if _, ok := s.machine.Annotations[clusterv1.PausedAnnotation]; ok {
		causes = append(causes, "the Machine has the annotation "+clusterv1.PausedAnnotation)
	}
	if _, ok := o.Annotations[clusterv1.PausedAnnotation]; ok {
		causes = append(causes, "the object has the annotation "+clusterv1.PausedAnnotation)
	}
	return causes
}
