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
	"github.com/hookgate/hookgate/internal/kinds/extensionpolicy"
	"github.com/hookgate/hookgate/internal/kinds/hookrule"
)

// holdLiftedReason is the reason of events about Clusters that an annotation or an ExtensionPolicy lets go on.
const holdLiftedReason = "HoldLifted"

// lift is a hold of a Cluster: by a HookRule, or else by the handler of an extension, which a policy lifts.
type lift struct {
	rule            string
	policy, handler string
	cluster         types.NamespacedName
}

// Lifted implements hookrule.Places. The event is written by record.
func (p *rulePlaces) Lifted(rule string, cluster types.NamespacedName, message string) {
	if p.readOnly {
		return
	}
	p.lifts.add(lift{rule: rule, cluster: cluster}, redact.Bounded(message, limits.EventNoteBytes))
}

// Lifted makes the Source write an event about a hold of an extension that an ExtensionPolicy has lifted, unless
// ReadOnly is set. It does not block.
func (s *Source) Lifted(policy, handler, namespace, cluster, message string) {
	if !s.config.ReadOnly {
		of := types.NamespacedName{Namespace: namespace, Name: cluster}
		s.places.lifts.add(lift{policy: policy, handler: handler, cluster: of},
			redact.Bounded(message, limits.EventNoteBytes))
	}
}

// record writes an event for each hold that was lifted, until ctx is done. The Cluster is read first: the event has
// its UID, and says which field manager has set the annotation, which is all that an object tells about it.
func (p *rulePlaces) record(ctx context.Context, recorder events.EventRecorder) {
	p.lifts.each(ctx, func(of lift, message string) {
		o, err := p.params.get(ctx, hookrule.ClusterReference(), of.cluster)
		if err != nil || o == nil {
			if ctx.Err() == nil {
				p.logger.Warn("no event is written about a hold that was lifted", "hookRule", of.rule,
					"policy", of.policy, "handler", of.handler, "namespace", of.cluster.Namespace, "name", of.cluster.Name,
					"message", message, "error", err)
			}
			return
		}
		by, note := of.said(setBy(o.GetManagedFields()), message)
		recorder.Eventf(o, by, corev1.EventTypeWarning, holdLiftedReason, "SkipHold", "%s",
			text.Cut(note, limits.EventNoteBytes))
	})
}

// said returns the object that the event of a lift is related to, and its text. setBy says who has set the annotation.
func (l *lift) said(setBy, message string) (*corev1.ObjectReference, string) {
	by := &corev1.ObjectReference{APIVersion: v1alpha1.GroupVersion.String(), Kind: hookrule.Kind, Name: l.rule}
	if l.rule != "" {
		return by, fmt.Sprintf("HookRule %q holds the Cluster, but the Cluster goes on because of the annotation "+
			"%s%s; the rule says: %s",
			l.rule, v1alpha1.SkipHoldAnnotation, setBy, message)
	}
	by.Kind, by.Name = extensionpolicy.Kind, l.policy
	return by, fmt.Sprintf("Handler %q holds the Cluster, but the Cluster goes on because of spec.liftedHolds of "+
		"ExtensionPolicy %q; the handler says: %s", l.handler, l.policy, message)
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
