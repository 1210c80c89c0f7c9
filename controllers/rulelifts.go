// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"bytes"
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"

	"github.com/hookgate/hookgate/api/v1alpha1"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/base/text"
	"github.com/hookgate/hookgate/internal/contract/redact"
	"github.com/hookgate/hookgate/internal/kinds/hookrule"
)

// holdLiftedReason is the reason of events about Clusters that an annotation lets go on.
const holdLiftedReason = "HoldLifted"

// lift is a hold of a Cluster by a HookRule.
type lift struct {
	rule    string
	cluster types.NamespacedName
}

// Lifted implements hookrule.Places. The event is written by record.
func (p *rulePlaces) Lifted(rule string, cluster types.NamespacedName, message string) {
	if p.readOnly {
		return
	}
	p.lifts.add(lift{rule, cluster}, redact.Bounded(message, limits.EventNoteBytes))
}

// record writes an event for each hold that was lifted, until ctx is done. The Cluster is read first: the event has
// its UID, and says which field manager has set the annotation, which is all that an object tells about it.
func (p *rulePlaces) record(ctx context.Context, recorder events.EventRecorder) {
	p.lifts.each(ctx, func(of lift, message string) {
		o, err := p.params.get(ctx, hookrule.ClusterReference(), of.cluster)
		if err != nil || o == nil {
			if ctx.Err() == nil {
				p.logger.Warn("no event is written about a hold that an annotation has lifted", "hookRule", of.rule,
					"namespace", of.cluster.Namespace, "name", of.cluster.Name, "message", message, "error", err)
			}
			return
		}
		rule := &corev1.ObjectReference{APIVersion: v1alpha1.GroupVersion.String(), Kind: hookrule.Kind, Name: of.rule}
		recorder.Eventf(o, rule, corev1.EventTypeWarning, holdLiftedReason, "SkipHold", "%s",
			text.Cut(fmt.Sprintf("Goes on although HookRule %q holds it, by the annotation %s%s; the rule says: %s",
				of.rule, v1alpha1.SkipHoldAnnotation, setBy(o.GetManagedFields()), message), limits.EventNoteBytes))
	})
}

// setBy says which field manager has set the annotation.
func setBy(fields []metav1.ManagedFieldsEntry) string {
	for i := range fields {
		of := fields[i].FieldsV1
		if of != nil && bytes.Contains(of.GetRawBytes(), []byte(`"f:`+v1alpha1.SkipHoldAnnotation+`"`)) {
			return fmt.Sprintf(", which the field manager %q has set", text.Printable(fields[i].Manager))
		}
	}
	return ""
}
