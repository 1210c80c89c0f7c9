// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"bytes"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"

	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/base/text"
)

// notice is an event that informs operators of a change.
type notice struct {
	kind, reason, action, note string
	// constant reports whether the note is always the same, so that repetitions can be counted in one event.
	constant bool
}

// warningActions are the actions of events about the conditions that are there only while something is wrong.
var warningActions = map[string]string{
	lossyCondition: "Convert", severalCondition: "Offer", deprecatedCondition: "Discover", collisionCondition: "Offer",
}

// notices returns the events for a change of an ExtensionConfig.
func notices(before, after *runtimev1.ExtensionConfig) []notice {
	var all []notice
	add := func(kind, reason, action, note string) {
		note = text.Cut(note, limits.EventNoteBytes)
		all = append(all, notice{kind: kind, reason: reason, action: action, note: note})
	}
	if !bytes.Equal(before.Spec.ClientConfig.CABundle, after.Spec.ClientConfig.CABundle) {
		all = append(all, notice{
			kind: corev1.EventTypeNormal, reason: "CABundleInjected", action: "InjectCABundle", constant: true,
			note: "caBundle is now set from the Secret in annotation " + runtimev1.InjectCAFromSecretAnnotation,
		})
	}
	for _, c := range after.Status.Conditions {
		old := meta.FindStatusCondition(before.Status.Conditions, c.Type)
		same := old != nil && old.Status == c.Status && old.Message == c.Message
		isTrue := c.Status == metav1.ConditionTrue
		switch c.Type {
		case clusterv1.PausedCondition:
			if isTrue && !same {
				add(corev1.EventTypeNormal, c.Reason, "Discover", c.Message)
			} else if old != nil && !same {
				add(corev1.EventTypeNormal, c.Reason, "Discover", "annotation "+clusterv1.PausedAnnotation+" is gone")
			}
		case runtimev1.ExtensionConfigDiscoveredCondition:
			if !isTrue && !same {
				add(corev1.EventTypeWarning, c.Reason, "Discover", c.Message)
			} else if isTrue && (!same || !slices.Equal(before.Status.Handlers, after.Status.Handlers)) {
				kind := corev1.EventTypeNormal
				note := fmt.Sprintf("the extension has %d handlers", len(after.Status.Handlers))
				if c.Message != "" {
					kind, note = corev1.EventTypeWarning, note+"; "+c.Message
				}
				add(kind, c.Reason, "Discover", note)
			}
		case availableCondition:
			if c.Status == metav1.ConditionFalse && !same {
				add(corev1.EventTypeWarning, c.Reason, "Call", c.Message)
			} else if isTrue && old != nil && !same {
				add(corev1.EventTypeNormal, c.Reason, "Call", "calls to the extension succeed again")
			}
		default:
			if action, warns := warningActions[c.Type]; warns && !same {
				add(corev1.EventTypeWarning, c.Reason, action, c.Message)
			}
		}
	}
	return all
}
